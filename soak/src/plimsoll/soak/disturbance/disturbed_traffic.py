"""The demo's traffic with disturbances."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from plimsoll.demo.fleet import DemoFleet
from plimsoll.demo.live_display import LiveDisplay
from plimsoll.demo.traffic import DemoTraffic
from plimsoll.demo.workload import DemoScenario
from plimsoll.soak.disturbance.disturbance_plan import Disturbance


class DisturbedTraffic(DemoTraffic):
    """Carries out a plan of disturbances while the traffic runs; `done` are those so far. The exit wakes all processes
    that are frozen."""

    def __init__(
        self,
        scenario: DemoScenario,
        fleet: DemoFleet,
        folder: Path,
        clients: int,
        live: LiveDisplay,
        plan: Sequence[Disturbance],
    ) -> None:
        super().__init__(scenario, fleet, folder, clients, live)
        self._ahead = list(plan)
        self._frozen: list[tuple[float, int]] = []
        self.done: list[Disturbance] = []

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._wake(float("inf"))
        super().__exit__(kind, error, trace)

    def _look(self, left: float = 0.0, phase: str = "connecting") -> None:
        super()._look(left, phase)
        now = time.monotonic()
        self._wake(now)
        while left and self._ahead and now >= self.start + self._ahead[0].at:
            self._disturb(self._ahead.pop(0), now)

    def _disturb(self, disturbance: Disturbance, now: float) -> None:
        pid = self._pid(disturbance)
        if pid is None:
            return  # still recovering from the last disturbance
        self._live.say(str(disturbance))
        self.done.append(disturbance)
        if disturbance.kind.startswith("kill"):
            os.kill(pid, signal.SIGKILL)
        else:
            os.kill(pid, signal.SIGSTOP)
            self._frozen.append((now + disturbance.seconds, pid))

    def _pid(self, disturbance: Disturbance) -> int | None:
        if disturbance.kind == "freeze-subscribers":
            return self._subscribing[int(disturbance.target)].pid
        return self._fleet.pid(disturbance.target)

    def _wake(self, now: float) -> None:
        for _, pid in [each for each in self._frozen if each[0] <= now]:
            os.kill(pid, signal.SIGCONT)
        self._frozen = [each for each in self._frozen if each[0] > now]
