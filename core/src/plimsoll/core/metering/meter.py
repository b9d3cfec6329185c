"""Rates, delays and utilisations of one broker: counted per publication or frame, folded into one report per interval.

All averaging of load lives here. Times are seconds, sizes bytes; a utilisation is a ratio. It may exceed 1 at the
input, where work queues up, but not at the output, which the bandwidth bounds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from plimsoll.core.metering.service_queue import ServicedItem


@dataclass(frozen=True, slots=True)
class LoadSample:
    """Load over one interval. Input utilisation = arrival rate x matching delay, output = bytes/s / bandwidth."""

    seconds: float
    input_rate: float
    output_rate: float
    output_bytes_per_second: float
    input_bytes_per_second: float
    match_delay_seconds: float
    index_delay_seconds: float
    input_utilization: float
    output_utilization: float
    input_queue_delay_seconds: float
    output_queue_delay_seconds: float
    downlink_utilization: float = 0.0


@dataclass(slots=True)
class FrameCounts:
    """Records sealed into frames since the last report, over all links of a node."""

    frames: int = 0
    records: int = 0
    bytes: int = 0


@dataclass(slots=True)
class SteadyService:
    """What publications cost, and with how many subscriptions: what a model of the matching delay is fitted to.

    `subscriptions`: those installed when a publication was served, summed over all served. Rounds in which
    subscriptions came or went are left out, since their time is not that of publications alone.
    """

    publications: int = 0
    subscriptions: int = 0
    deliveries: int = 0
    seconds: float = 0.0

    def add(self, publications: int, subscriptions: int, deliveries: int, seconds: float) -> None:
        """Count publications that were served with this number of subscriptions."""
        self.publications += publications
        self.subscriptions += publications * subscriptions
        self.deliveries += deliveries
        self.seconds += seconds


@dataclass(slots=True)
class LoadMeter:
    """Counts since the last report. The hot path adds to the fields; `sample` makes a `LoadSample` and starts over.

    `silent_matches`: matches for subscribers that another edge delivers to. They cost service time, and are no output.
    """

    started: float = 0.0
    arrivals: int = 0
    served: int = 0
    service_seconds: float = 0.0
    index_seconds: float = 0.0
    indexed: int = 0
    deliveries: int = 0
    silent_matches: int = 0
    bytes_out: int = 0
    bytes_in: int = 0
    input_wait_seconds: float = 0.0
    input_waits: int = 0
    output_wait_seconds: float = 0.0
    output_waits: int = 0
    total: dict[str, int] = field(default_factory=dict)
    total_served: int = 0
    total_service_seconds: float = 0.0
    steady: SteadyService = field(default_factory=SteadyService)
    _last_match_delay: float = 0.0
    _last_subscriptions: int = 0
    _round_subscriptions: int = 0
    _counted_matches: int = 0

    def count_serviced(self, done: ServicedItem[Any]) -> None:  # the item itself does not count
        """Count an item that an emulated or limited broker has finished."""
        self.input_wait_seconds += done.waited_seconds
        self.input_waits += 1
        if done.is_publication:
            self.service_seconds += done.cost_seconds
            self.served += 1
            self.steady.add(1, done.subscriptions, self._new_matches(), done.cost_seconds)

    def count_round(self, seconds: float, subscriptions: int = 0) -> None:
        """Count a round of a broker that is neither emulated nor limited: it has served all that has arrived."""
        served, delivered = self.arrivals - self.served, self._new_matches()
        if served and subscriptions == self._round_subscriptions:
            self.steady.add(served, subscriptions, delivered, seconds)
        self._round_subscriptions = subscriptions
        self.service_seconds += seconds
        self.served = self.arrivals

    def _new_matches(self) -> int:
        """Matches since this was asked last: those on standby are no output, but they take as long."""
        matches = self.deliveries + self.silent_matches
        found, self._counted_matches = matches - self._counted_matches, matches
        return found

    def set_aside(self, silent_matches: int) -> None:
        """Take these out of the deliveries, among which they have been counted."""
        self.deliveries -= silent_matches
        self.silent_matches += silent_matches

    def take_frame_counts(self, sealed: FrameCounts) -> None:
        """Add the counts of the node's links and reset them."""
        self.bytes_out += sealed.bytes
        self.output_waits += sealed.frames
        sealed.frames = sealed.records = sealed.bytes = 0

    def sample(
        self, now: float, bandwidth: float | None, subscriptions: int = 0, downlink: float | None = None
    ) -> LoadSample:
        """The load since the last sample. `bandwidth`: of the output in bytes per second, None if it is not limited.

        `downlink`: the same of the input.

        If nothing was served, the matching delay is the last known one, scaled with `subscriptions`.
        """
        seconds = max(now - self.started, 1e-9)
        if self.served:
            self._last_match_delay, self._last_subscriptions = self.service_seconds / self.served, subscriptions
        match_delay = self._last_match_delay
        if not self.served and self._last_subscriptions:
            match_delay *= subscriptions / self._last_subscriptions  # PADRES 2006, eq. 4
        bytes_out = self.bytes_out / seconds
        sample = LoadSample(
            seconds=seconds,
            input_rate=self.arrivals / seconds,
            output_rate=self.deliveries / seconds,
            output_bytes_per_second=bytes_out,
            input_bytes_per_second=self.bytes_in / seconds,
            match_delay_seconds=match_delay,
            index_delay_seconds=self.index_seconds / self.indexed if self.indexed else 0.0,
            # PADRES 2006, 3.2: I_r = rate of incoming messages / (1 / matching delay)
            input_utilization=self.arrivals / seconds * match_delay,
            output_utilization=bytes_out / bandwidth if bandwidth else 0.0,
            input_queue_delay_seconds=_mean(self.input_wait_seconds, self.input_waits),
            output_queue_delay_seconds=_mean(self.output_wait_seconds, self.output_waits),
            downlink_utilization=self.bytes_in / seconds / downlink if downlink else 0.0,
        )
        self._start_over(now)
        return sample

    def _start_over(self, now: float) -> None:
        for name in ("arrivals", "deliveries", "bytes_out"):
            self.total[name] = self.total.get(name, 0) + getattr(self, name)
        self.total_served += self.served
        self.total_service_seconds += self.service_seconds
        self.started = now
        self.arrivals = self.served = self.indexed = self.deliveries = self.silent_matches = 0
        self.bytes_out = self.bytes_in = 0
        self.steady, self._counted_matches = SteadyService(), 0
        self.service_seconds = self.index_seconds = 0.0
        self.input_wait_seconds = self.output_wait_seconds = 0.0
        self.input_waits = self.output_waits = 0


def _mean(total: float, count: int) -> float:
    return total / count if count else 0.0
