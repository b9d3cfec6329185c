"""The live job on Spark as a process of this machine: started beside the collectors, judged by its snapshot's age.

Where Java or PySpark is missing that is said once, and the fleet goes by the collectors' fold. Whatever launcher a
fleet names, on one machine it is a process: what is asked for in a cluster can be tried out as it stands.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from plimsoll.core.spec.conditions import Condition
from plimsoll.core.spec.fleets import BrokerFleetSpec
from plimsoll.local.home import FleetFolder
from plimsoll.local.keeper import Keeper, Record
from plimsoll.sparkjobs.launching import process
from plimsoll.sparkjobs.launching.health import SAID, Health, health, restart_at
from plimsoll.sparkjobs.launching.values import Launch
from plimsoll.telemetry.asking import Known
from plimsoll.telemetry.snapshot import Last

CONDITION: Final = "SparkReady"
NAME: Final = "local.spark"
END_SECONDS: Final = 2.0
WAIT_SECONDS: Final = 10
"""A job whose predecessor was killed waits so long for its checkpoint."""


class Sparking:
    """The live job of one fleet; none, if it asks for none. `missing` says what this machine lacks; empty: nothing."""

    def __init__(
        self,
        folder: FleetFolder,
        fleet: str,
        spec: BrokerFleetSpec,
        data: Path,
        missing: Callable[[], str] = process.missing,
    ) -> None:
        telemetry = spec.telemetry
        self._launcher, self._folder = telemetry.launcher, folder
        self._lack: tuple[str, str] | None = None
        self._said = False
        self._keeper: Keeper | None = None
        self._started = 0.0
        self._restarts: list[float] = []
        self._last: Last | None = None
        self._health: Health | None = None
        if self._launcher == "None" or telemetry.spark is None:
            return
        if not telemetry.collectors.replicas:
            self._lack = "NoCollectors", "nobody stores load reports: set telemetry.collectors.replicas"
        elif lack := missing():
            self._lack = "NoSpark", f"{lack}; the fleet goes by the collectors' fold"
        else:
            launch = Launch(
                fleet=fleet, namespace="", image="", trigger_seconds=max(1, round(telemetry.spark.trigger.seconds)),
                lag_seconds=max(1, round(telemetry.collectors.interval.seconds)),
            )  # fmt: skip
            command = [*process.live_command(launch, data), "--wait", str(WAIT_SECONDS)]
            outer = process.environment(os.environ)
            self._keeper = Keeper(folder, NAME, "Spark", lambda: command, outer)

    def step(self, now: float, known: Known | None, record: Record) -> None:
        """Keep it running, and start it anew when it runs and says nothing. `now` is of the monotonic clock."""
        if self._lack is not None and not self._said:
            self._said = True
            record("Warning", self._lack[0], self._lack[1])
        if self._keeper is None:
            return
        before = self._keeper.status().get("pid")
        self._keeper.step(now, record)
        if self._keeper.status().get("pid") not in (None, before):
            self._started = now
        if known is not None and known.last is not None:
            self._last = known.last
        now_us = time.time_ns() // 1000
        self._health = health(now_us, self._last, now_us - round((now - self._started) * 1e6))
        heard = known is not None and known.chosen is not None
        if before is not None and heard and self._health.wants_restart and now >= restart_at(self._restarts, now):
            self._restarts = [*self._restarts[-9:], now]
            record("Warning", "SparkRestarting", f"the live job is started anew: {self._health.message}")
            self._keeper.restart()

    def end(self) -> None:
        """End it; its checkpoint is what the next one goes on from."""
        if self._keeper is not None:
            self._keeper.terminate()
            self._keeper.end(time.monotonic() + END_SECONDS)

    def status(self) -> dict[str, Any]:
        """What status says of it; empty where none is asked for."""
        if self._launcher == "None":
            return {}
        if self._lack is not None:
            return {"launcher": "Process", "state": "Missing", "message": self._lack[1]}
        kept = self._keeper.status() if self._keeper is not None else {}
        found = self._health
        told = {} if found is None else {"state": found.state, "message": found.message}
        return {"launcher": "Process", **kept, **told}

    def conditions(self) -> list[Condition]:
        """What the fleet's conditions say of it."""
        if self._lack is not None:
            return [Condition(CONDITION, "False", *self._lack)]
        if self._health is None:
            return []
        state = self._health.state
        return [Condition(CONDITION, "True" if state == "Fresh" else "False", state, SAID[state])]
