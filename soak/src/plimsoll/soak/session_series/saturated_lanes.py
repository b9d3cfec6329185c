"""Sessions by replay away from a saturated edge, one after another, in a fleet of one cluster.

The first of three edges is emulated hardware that all subscribers together overload. When publications wait there,
subscribers are moved to the second edge by replay, in one session or in several small ones, until the first is
relieved; when its queue is empty, they are drained back. The third edge serves a few subscribers that never move, for
comparison. Only sessions by replay count.
"""

from __future__ import annotations

import random
from typing import Final

from plimsoll.demo import quotes, workload
from plimsoll.demo.workload import DemoScenario
from plimsoll.mediator.control_plane import LoadReportReceived
from plimsoll.soak.harness.fleet_harness import FleetHarness, HarnessLayout
from plimsoll.soak.harness.handover_driver import DrivenHandover
from plimsoll.soak.session_series.lanes import SessionLane, SessionLanes, SessionMix

SOURCE, TARGET, BESIDE = "east-1", "east-2", "east-3"
BYSTANDER_SHARE: Final = 0.1
UTILIZATION: Final = 1.3
"""Utilization of the source while it serves all subscribers but those of the third edge."""
MAX_MOVED_SHARE: Final = 0.5
"""Largest share of subscribers at the second edge: it must not be saturated as well."""
MAX_BATCH: Final = 1000
WAITING_SECONDS: Final = 0.5
EMPTY_SECONDS: Final = 0.05


def saturated_layout(scenario: DemoScenario) -> HarnessLayout:
    """Emulated edges that all subscribers but those of the third edge would overload."""
    here = scenario.subscribers * (1 - BYSTANDER_SHARE)
    return HarnessLayout({"east": 3}, emulated=(0.0, UTILIZATION / (publications_per_second(scenario) * here)))


def publications_per_second(scenario: DemoScenario) -> float:
    """The rate of all publishers together."""
    return sum(one.rate_per_minute for one in workload.plan_workload(scenario, quotes.load()).publishers) / 60


class SaturatedLanes(SessionLanes):
    """Moves some subscribers to the third edge once; then others to the second edge when the first has a queue, and
    back when it is empty."""

    def __init__(self, harness: FleetHarness, draw: random.Random, mix: SessionMix, subscribers: int) -> None:
        super().__init__(harness, draw, 1, mix)
        self._beside = round(subscribers * BYSTANDER_SHARE)
        self._most = round(subscribers * MAX_MOVED_SHARE)
        self._queue_delays: dict[str, float] = {}
        self._is_relieving = False

    @property
    def counted(self) -> list[DrivenHandover]:
        return [one for one in self.done if one.plan.replay]

    def _on_load_report(self, event: LoadReportReceived) -> None:
        super()._on_load_report(event)
        self._queue_delays[event.broker] = float(event.report["input_queue_delay_seconds"])

    def _choose(self, lane: SessionLane, now: float) -> None:
        waits, away = self._queue_delays.get(SOURCE, 0.0), self._moved_count
        if not self.done:
            self._reserve(lane, SOURCE, BESIDE, now)
        elif away and (waits <= EMPTY_SECONDS or self._is_way_back(self.done[-1])):
            self._is_relieving = False
            self._reserve(lane, TARGET, SOURCE, now)
        elif away < (self._most if not self._mix.members else 1) and (waits >= WAITING_SECONDS or self._is_relieving):
            self._is_relieving = True
            self._reserve(lane, SOURCE, TARGET, now)

    @property
    def _moved_count(self) -> int:
        """The number of subscribers that are at the second edge now."""
        moved = [(one.plan, sum(outcome == "moved" for _, outcome in one.members)) for one in self.done]
        there = sum(count for plan, count in moved if plan.target == TARGET)
        return there - sum(count for plan, count in moved if plan.source == TARGET)

    @staticmethod
    def _is_way_back(one: DrivenHandover) -> bool:
        return one.plan.target == SOURCE

    def _size(self, served: int) -> int:
        if not self.done:
            return self._beside
        return min(served, MAX_BATCH) if self._moved_count and not self._is_relieving else super()._size(served)

    def _is_replay(self, source: str, target: str) -> bool:
        return target == TARGET
