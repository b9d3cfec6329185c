"""Sessions by replay away from a saturated edge, one after another, in a fleet of one cluster.

The first edge of three is emulated hardware that all subscribers together are too much for. Once publications wait
there, some are moved to the second by replay, in one session or in several small ones, until the first is relieved;
when nothing waits there any more, those are drained back. The third serves a few that nobody touches, to compare with.
Only what goes by replay counts.
"""

from __future__ import annotations

import random
from typing import Final

from plimsoll.local.demo import quotes, workload
from plimsoll.local.demo.workload import Scenario
from plimsoll.local.soak.driver import Handover
from plimsoll.local.soak.ground import Ground, Shape
from plimsoll.local.soak.moving import Lane, Mix, Moving
from plimsoll.mediator.control import Reported

SOURCE, TARGET, BESIDE = "east-1", "east-2", "east-3"
BESIDE_SHARE: Final = 0.1
UTILIZATION: Final = 1.3
"""Of the source with everybody who is moved to and fro."""
MOST_SHARE: Final = 0.5
"""Of the subscribers, at the second edge, which so is never saturated."""
MOST_AT_ONCE: Final = 1000
WAITING_SECONDS: Final = 0.5
EMPTY_SECONDS: Final = 0.05


def shape(scenario: Scenario) -> Shape:
    """Edges of which one, with all but those beside, has to do more than it can."""
    here = scenario.subscribers * (1 - BESIDE_SHARE)
    return Shape({"east": 3}, emulated=(0.0, UTILIZATION / (a_second(scenario) * here)))


def a_second(scenario: Scenario) -> float:
    """Publications of all publishers."""
    return sum(one.rate_per_minute for one in workload.plan(scenario, quotes.load()).publishers) / 60


class Saturating(Moving):
    """Moves in turn: once to the third edge; then to the second when the first is behind, and back."""

    def __init__(self, ground: Ground, draw: random.Random, mix: Mix, subscribers: int) -> None:
        super().__init__(ground, draw, 1, mix)
        self._beside = round(subscribers * BESIDE_SHARE)
        self._most = round(subscribers * MOST_SHARE)
        self._waits: dict[str, float] = {}
        self._relieves = False

    @property
    def counted(self) -> list[Handover]:
        return [one for one in self.done if one.plan.replay]

    def _reported(self, said: Reported) -> None:
        super()._reported(said)
        self._waits[said.broker] = float(said.report["input_queue_delay_seconds"])

    def _choose(self, lane: Lane, now: float) -> None:
        waits, away = self._waits.get(SOURCE, 0.0), self._away
        if not self.done:
            self._ask(lane, SOURCE, BESIDE, now)
        elif away and (waits <= EMPTY_SECONDS or self._is_way_back(self.done[-1])):
            self._relieves = False
            self._ask(lane, TARGET, SOURCE, now)
        elif away < (self._most if not self._mix.members else 1) and (waits >= WAITING_SECONDS or self._relieves):
            self._relieves = True
            self._ask(lane, SOURCE, TARGET, now)

    @property
    def _away(self) -> int:
        """How many are at the second edge."""
        moved = [(one.plan, sum(outcome == "moved" for _, outcome in one.members)) for one in self.done]
        there = sum(count for plan, count in moved if plan.target == TARGET)
        return there - sum(count for plan, count in moved if plan.source == TARGET)

    @staticmethod
    def _is_way_back(one: Handover) -> bool:
        return one.plan.target == SOURCE

    def _size(self, served: int) -> int:
        if not self.done:
            return self._beside
        return min(served, MOST_AT_ONCE) if self._away and not self._relieves else super()._size(served)

    def _is_replay(self, source: str, target: str) -> bool:
        return target == TARGET
