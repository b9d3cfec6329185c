"""Sessions back to back between random pairs of edges, a few at a time; each broker takes part in one at most.

Sessions of a fixed size go back and forth with a herd: their source is an edge that serves so many.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from plimsoll.core import records as r
from plimsoll.local.soak.driver import Book, Driver, Handover, Listings
from plimsoll.local.soak.ground import Ground
from plimsoll.mediator.control import Reported, Told

SIZES: Final = (1, 2, 3, 5, 8, 13, 21, 34)
PREPARE_SECONDS: Final = 5.0
DRAIN_SECONDS: Final = 10.0


@dataclass(frozen=True)
class Mix:
    """What sessions are like. `members` of each, 0 for various small sizes.

    `replay_share`: of the sessions within a cluster; across there is only drain. `abort_share`: of all, when ready.
    """

    members: int = 0
    replay_share: float = 0.3
    abort_share: float = 0.05


@dataclass
class Loads:
    """The highest that brokers have reported of themselves, by broker and measure."""

    highest: dict[str, dict[str, float]] = field(default_factory=dict)
    sums: Counter[tuple[str, str]] = field(default_factory=Counter)
    reports: Counter[str] = field(default_factory=Counter)

    def take(self, said: Reported) -> None:
        of = self.highest.setdefault(said.broker, {})
        self.reports[said.broker] += 1
        for name in ("input_utilization", "output_utilization", "cpu_ratio"):
            value = float(said.report.get(name, 0.0))
            of[name] = max(of.get(name, 0.0), value)
            self.sums[said.broker, name] += value  # type: ignore[assignment]

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
class Lane:
    """One session after another. `pair`: source and target of the one that is under way."""

    pair: tuple[str, str] | None = None
    session: str = ""


class Moving:
    """`done`: hand-overs that have ended, in order."""

    def __init__(self, ground: Ground, draw: random.Random, lanes: int, mix: Mix, epoch: int = 1) -> None:
        self._ground, self._draw, self._mix = ground, draw, mix
        self._lanes = [Lane() for _ in range(lanes)]
        self.listings = Listings(ground.control.send)
        self.driver = Driver(epoch, Book(), ground.control.send, self._moved_on)
        self.loads = Loads()
        self.done: list[Handover] = []

    @property
    def is_idle(self) -> bool:
        return all(lane.pair is None for lane in self._lanes)

    @property
    def counted(self) -> list[Handover]:
        """Those hand-overs that have ended and are what the soak is about."""
        return self.done

    def step(self, seconds: float, begin: int) -> None:
        """A moment; lanes that are free begin new sessions as long as there are fewer than `begin` under way."""
        now = time.monotonic()
        for lane in self._lanes:
            if lane.pair is None and begin > self._under_way():
                self._choose(lane, now)
            elif lane.pair is not None and not lane.session:
                self._begin(lane, now)
        for said in self._ground.poll(seconds):
            if isinstance(said, Reported):
                self._reported(said)
            elif isinstance(said, Told):
                self._heard(said)
        self.driver.tick(time.monotonic())
        self.listings.tick(time.monotonic())

    def told(self, head: str, outcome: r.Outcome) -> None:
        """An outcome that somebody else has taken from the line."""
        self.driver.heard(head, outcome, time.monotonic())

    def _reported(self, said: Reported) -> None:
        self.loads.take(said)

    def _under_way(self) -> int:
        return sum(lane.pair is not None for lane in self._lanes)

    def _heard(self, said: Told) -> None:
        if isinstance(said.said, r.Served):
            self.listings.heard(said.head, said.said, time.monotonic())
        elif isinstance(said.said, r.Outcome):
            self.told(said.head, said.said)

    def _choose(self, lane: Lane, now: float) -> None:
        busy = {edge for other in self._lanes for edge in other.pair or ()}
        free = [edge for edge in self._ground.edges() if edge not in busy]
        sources = [edge for edge in free if self._live(edge) >= self._mix.members]
        if not sources or len(free) < 2:
            return
        source = self._draw.choice(sources)
        self._ask(lane, source, self._draw.choice([edge for edge in free if edge != source]), now)

    def _ask(self, lane: Lane, source: str, target: str, now: float) -> None:
        lane.pair = (source, target)
        self.listings.ask(self._ground.head_of(source), source, now)

    def _live(self, edge: str) -> int:
        """How many it serves, as it has said last."""
        return int(self._ground.statuses.get(edge, {}).get("subscribers", {}).get("live", 0))

    def _begin(self, lane: Lane, now: float) -> None:
        """Once the head has said whom the source serves."""
        assert lane.pair is not None  # noqa: S101
        source, target = lane.pair
        served = self.listings.complete.get(source)
        if served is None:
            return
        size = self._size(len(served))
        if not 0 < size <= len(served):
            lane.pair = None
            return
        members = self._draw.sample(served, size)
        plan = plan_of(self._ground, source, target, members, replay=self._is_replay(source, target))
        head = self._ground.head_of(source)
        aborted = self._draw.random() < self._mix.abort_share
        one = self.driver.begin(head, self._ground.epoch_of(head), plan, now, until="ready" if aborted else "done")
        lane.session = one.session

    def _size(self, served: int) -> int:
        return self._mix.members or min(served, self._draw.choice(SIZES))

    def _is_replay(self, source: str, target: str) -> bool:
        local = self._ground.head_of(source) == self._ground.head_of(target)
        return local and self._draw.random() < self._mix.replay_share

    def _moved_on(self, one: Handover) -> None:
        if one.is_final:
            self.done.append(one)
            self.driver.book.forget(one.session)
            for lane in self._lanes:
                if lane.session == one.session:
                    lane.pair, lane.session = None, ""
        elif one.state == "ready" and one.until == "ready":
            self.driver.want(one.session, "abort", time.monotonic())


def plan_of(
    ground: Ground, source: str, target: str, members: Iterable[str], *, replay: bool,
    prepare_seconds: float = PREPARE_SECONDS, drain_seconds: float = DRAIN_SECONDS,
) -> r.HandoverPlan:  # fmt: skip
    """A plan on the wire."""
    head = ground.head_of(target)
    return r.HandoverPlan(source, target, head, list(members), replay, prepare_seconds, drain_seconds)
