"""Sessions back to back between random pairs of edges, a few at a time; each broker takes part in at most one.

Sessions of a fixed size move a herd back and forth: their source is an edge that serves enough subscribers.
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
    """The mix of sessions. `members` of each, 0 for various small sizes.

    `replay_share`: of the sessions within a cluster; between clusters there is only drain. `abort_share`: of all, when
    ready.
    """

    members: int = 0
    replay_share: float = 0.3
    abort_share: float = 0.05


@dataclass
class PeakLoads:
    """The highest values that brokers have reported of themselves, by broker and measure."""

    highest: dict[str, dict[str, float]] = field(default_factory=dict)
    sums: Counter[tuple[str, str]] = field(default_factory=Counter)
    reports: Counter[str] = field(default_factory=Counter)

    def take(self, said: LoadReportReceived) -> None:
        of = self.highest.setdefault(said.broker, {})
        self.reports[said.broker] += 1
        for name in ("input_utilization", "output_utilization", "cpu_ratio"):
            value = float(said.report.get(name, 0.0))
            of[name] = max(of.get(name, 0.0), value)
            self.sums[said.broker, name] += value  # type: ignore[assignment]  # typeshed has a Counter of whole numbers

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
    """One session after another. `pair`: source and target of the one that is under way."""

    pair: tuple[str, str] | None = None
    session: str = ""


class SessionLanes:
    """`done`: finished hand-overs, in order."""

    def __init__(self, ground: FleetHarness, draw: random.Random, lanes: int, mix: SessionMix, epoch: int = 1) -> None:
        self._ground, self._draw, self._mix = ground, draw, mix
        self._lanes = [SessionLane() for _ in range(lanes)]
        self.listings = SoakListings(ground.control.send)
        self.driver = HandoverDriver(epoch, HandoverLedger(), ground.control.send, self._on_state)
        self.loads = PeakLoads()
        self.done: list[DrivenHandover] = []

    @property
    def is_idle(self) -> bool:
        return all(lane.pair is None for lane in self._lanes)

    @property
    def counted(self) -> list[DrivenHandover]:
        """The finished hand-overs that the soak measures."""
        return self.done

    def step(self, seconds: float, begin: int) -> None:
        """One step; free lanes begin new sessions while fewer than `begin` are under way."""
        now = time.monotonic()
        for lane in self._lanes:
            if lane.pair is None and begin > self._active():
                self._choose(lane, now)
            elif lane.pair is not None and not lane.session:
                self._begin(lane, now)
        for said in self._ground.poll(seconds):
            if isinstance(said, LoadReportReceived):
                self._on_load_report(said)
            elif isinstance(said, HeadMessageReceived):
                self._on_reply(said)
        self.driver.tick(time.monotonic())
        self.listings.tick(time.monotonic())

    def on_outcome(self, head: str, outcome: msg.Outcome) -> None:
        """An outcome that another reader has taken from the line."""
        self.driver.on_outcome(head, outcome, time.monotonic())

    def _on_load_report(self, said: LoadReportReceived) -> None:
        self.loads.take(said)

    def _active(self) -> int:
        return sum(lane.pair is not None for lane in self._lanes)

    def _on_reply(self, said: HeadMessageReceived) -> None:
        if isinstance(said.said, msg.SubscriberPage):
            self.listings.on_page(said.head, said.said, time.monotonic())
        elif isinstance(said.said, msg.Outcome):
            self.on_outcome(said.head, said.said)

    def _choose(self, lane: SessionLane, now: float) -> None:
        busy = {edge for other in self._lanes for edge in other.pair or ()}
        free = [edge for edge in self._ground.edges() if edge not in busy]
        sources = [edge for edge in free if self._served_count(edge) >= self._mix.members]
        if not sources or len(free) < 2:
            return
        source = self._draw.choice(sources)
        self._reserve(lane, source, self._draw.choice([edge for edge in free if edge != source]), now)

    def _reserve(self, lane: SessionLane, source: str, target: str, now: float) -> None:
        lane.pair = (source, target)
        self.listings.request(self._ground.head_of(source), source, now)

    def _served_count(self, edge: str) -> int:
        """The number of subscribers in its last status."""
        return int(self._ground.statuses.get(edge, {}).get("subscribers", {}).get("live", 0))

    def _begin(self, lane: SessionLane, now: float) -> None:
        """Once the head has listed the subscribers of the source."""
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
        plan = handover_plan(self._ground, source, target, members, replay=self._is_replay(source, target))
        head = self._ground.head_of(source)
        aborted = self._draw.random() < self._mix.abort_share
        one = self.driver.begin(head, self._ground.epoch_of(head), plan, now, until="ready" if aborted else "done")
        lane.session = one.session

    def _size(self, served: int) -> int:
        return self._mix.members or min(served, self._draw.choice(SIZES))

    def _is_replay(self, source: str, target: str) -> bool:
        local = self._ground.head_of(source) == self._ground.head_of(target)
        return local and self._draw.random() < self._mix.replay_share

    def _on_state(self, one: DrivenHandover) -> None:
        if one.is_final:
            self.done.append(one)
            self.driver.book.forget(one.session)
            for lane in self._lanes:
                if lane.session == one.session:
                    lane.pair, lane.session = None, ""
        elif one.state == "ready" and one.until == "ready":
            self.driver.request_step(one.session, "abort", time.monotonic())


def handover_plan(
    ground: FleetHarness, source: str, target: str, members: Iterable[str], *, replay: bool,
    prepare_seconds: float = PREPARE_SECONDS, drain_seconds: float = DRAIN_SECONDS,
) -> msg.HandoverPlan:  # fmt: skip
    """A plan on the wire."""
    head = ground.head_of(target)
    return msg.HandoverPlan(source, target, head, list(members), replay, prepare_seconds, drain_seconds)
