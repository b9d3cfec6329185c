"""Sessions back to back between random pairs of edges, one in each lane; an edge is in at most one session at a time.

A session of a fixed size needs an edge that serves enough subscribers as its source, so one herd moves back and forth.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from plimsoll.core.protocol import messages as msg
from plimsoll.mediator.control_plane import HeadMessageReceived, LoadReportReceived
from plimsoll.soak.harness.fleet_harness import FleetHarness
from plimsoll.soak.harness.handover_driver import DrivenHandover, HandoverDriver, HandoverLedger, SoakListings

SIZES: Final = (1, 2, 3, 5, 8, 13, 21, 34)
PREPARE_SECONDS: Final = 5.0
DRAIN_SECONDS: Final = 10.0


@dataclass(frozen=True)
class SessionMix:
    """The mix of sessions. `members`: of each session; 0 for a random choice of `SIZES`.

    `replay_share`: by replay, of the sessions within a cluster; between clusters there is only drain. `abort_share`:
    aborted when ready, of all sessions.
    """

    members: int = 0
    replay_share: float = 0.3
    abort_share: float = 0.05


@dataclass
class PeakLoads:
    """The highest loads that brokers have reported, by broker and measure."""

    highest: dict[str, dict[str, float]] = field(default_factory=dict)
    sums: Counter[tuple[str, str]] = field(default_factory=Counter)
    reports: Counter[str] = field(default_factory=Counter)

    def take(self, event: LoadReportReceived) -> None:
        of = self.highest.setdefault(event.broker, {})
        self.reports[event.broker] += 1
        for name in ("input_utilization", "output_utilization", "cpu_ratio"):
            value = float(event.report.get(name, 0.0))
            of[name] = max(of.get(name, 0.0), value)
            self.sums[event.broker, name] += value  # type: ignore[assignment]  # typeshed has a Counter of whole numbers

    def as_dict(self) -> dict[str, dict[str, float]]:
        """By broker: the highest and the mean of each measure."""
        return {
            broker: {
                **{f"{name}_max": round(value, 3) for name, value in of.items()},
                **{f"{name}_mean": round(self.sums[broker, name] / self.reports[broker], 3) for name in of},
            }
            for broker, of in sorted(self.highest.items())
        }


@dataclass
class SessionLane:
    """Runs one session after another. `pair`: source and target of the current one."""

    pair: tuple[str, str] | None = None
    session: str = ""


class SessionLanes:
    """Runs sessions in some lanes at a time. `done`: finished hand-overs, in order."""

    def __init__(self, harness: FleetHarness, draw: random.Random, lanes: int, mix: SessionMix, epoch: int = 1) -> None:
        self._harness, self._draw, self._mix = harness, draw, mix
        self._lanes = [SessionLane() for _ in range(lanes)]
        self.listings = SoakListings(harness.control.send)
        self.driver = HandoverDriver(epoch, HandoverLedger(), harness.control.send, self._on_state)
        self.loads = PeakLoads()
        self.done: list[DrivenHandover] = []

    @property
    def is_idle(self) -> bool:
        return all(lane.pair is None for lane in self._lanes)

    @property
    def counted(self) -> list[DrivenHandover]:
        """The finished hand-overs that count as sessions of the soak."""
        return self.done

    def step(self, seconds: float, begin: int) -> None:
        """Read the control plane for `seconds`. Free lanes begin sessions while fewer than `begin` are running."""
        now = time.monotonic()
        for lane in self._lanes:
            if lane.pair is None and begin > self._active():
                self._choose(lane, now)
            elif lane.pair is not None and not lane.session:
                self._begin(lane, now)
        for event in self._harness.poll(seconds):
            if isinstance(event, LoadReportReceived):
                self._on_load_report(event)
            elif isinstance(event, HeadMessageReceived):
                self._on_reply(event)
        self.driver.tick(time.monotonic())
        self.listings.tick(time.monotonic())

    def on_outcome(self, head: str, outcome: msg.Outcome) -> None:
        """Take an outcome; also for callers that read the control plane themselves."""
        self.driver.on_outcome(head, outcome, time.monotonic())

    def _on_load_report(self, event: LoadReportReceived) -> None:
        self.loads.take(event)

    def _active(self) -> int:
        return sum(lane.pair is not None for lane in self._lanes)

    def _on_reply(self, event: HeadMessageReceived) -> None:
        if isinstance(event.said, msg.SubscriberPage):
            self.listings.on_page(event.head, event.said, time.monotonic())
        elif isinstance(event.said, msg.Outcome):
            self.on_outcome(event.head, event.said)

    def _choose(self, lane: SessionLane, now: float) -> None:
        busy = {edge for other in self._lanes for edge in other.pair or ()}
        free = [edge for edge in self._harness.edges() if edge not in busy]
        sources = [edge for edge in free if self._served_count(edge) >= self._mix.members]
        if not sources or len(free) < 2:
            return
        source = self._draw.choice(sources)
        self._reserve(lane, source, self._draw.choice([edge for edge in free if edge != source]), now)

    def _reserve(self, lane: SessionLane, source: str, target: str, now: float) -> None:
        lane.pair = (source, target)
        self.listings.request(self._harness.head_of(source), source, now)

    def _served_count(self, edge: str) -> int:
        """The number of subscribers in its last status."""
        return int(self._harness.statuses.get(edge, {}).get("subscribers", {}).get("live", 0))

    def _begin(self, lane: SessionLane, now: float) -> None:
        """Begin the session of a lane, once the head has listed the subscribers of the source."""
        assert lane.pair is not None  # noqa: S101  # lanes without a pair do not come here
        source, target = lane.pair
        served = self.listings.complete.get(source)
        if served is None:
            return
        size = self._size(len(served))
        if not 0 < size <= len(served):
            lane.pair = None
            return
        members = self._draw.sample(served, size)
        plan = handover_plan(self._harness, source, target, members, replay=self._is_replay(source, target))
        head = self._harness.head_of(source)
        aborted = self._draw.random() < self._mix.abort_share
        one = self.driver.begin(head, self._harness.epoch_of(head), plan, now, until="ready" if aborted else "done")
        lane.session = one.session

    def _size(self, served: int) -> int:
        return self._mix.members or min(served, self._draw.choice(SIZES))

    def _is_replay(self, source: str, target: str) -> bool:
        local = self._harness.head_of(source) == self._harness.head_of(target)
        return local and self._draw.random() < self._mix.replay_share

    def _on_state(self, one: DrivenHandover) -> None:
        if one.is_final:
            self.done.append(one)
            self.driver.ledger.forget(one.session)
            for lane in self._lanes:
                if lane.session == one.session:
                    lane.pair, lane.session = None, ""
        elif one.state == "ready" and one.until == "ready":
            self.driver.request_step(one.session, "abort", time.monotonic())


def handover_plan(
    harness: FleetHarness, source: str, target: str, members: Iterable[str], *, replay: bool,
    prepare_seconds: float = PREPARE_SECONDS, drain_seconds: float = DRAIN_SECONDS,
) -> msg.HandoverPlan:  # fmt: skip
    """A plan as a command carries it."""
    head = harness.head_of(target)
    return msg.HandoverPlan(source, target, head, list(members), replay, prepare_seconds, drain_seconds)
