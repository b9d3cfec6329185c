"""The live job on Spark as a process of this machine: started beside the collectors, judged by its snapshot's age.

If Java or PySpark is missing, one event says so and the fleet uses the collectors' fold. On one machine the job is a
process under any launcher that the fleet names, so the resources of a cluster can be tried out unchanged.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from plimsoll.core.spec.status.conditions import Condition
from plimsoll.core.spec.types.fleet import BrokerFleetSpec
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.supervision.process_session import kill_marked
from plimsoll.local.supervision.scheduled_jobs import ScheduledJobs
from plimsoll.local.supervision.sidecar import RecordFleetEvent, Sidecar
from plimsoll.sparkjobs.launch import local_process
from plimsoll.sparkjobs.launch.live_job_health import STATE_MESSAGES, LiveJobHealth, assess_live_job, next_restart
from plimsoll.sparkjobs.launch.spec import SparkLaunch
from plimsoll.telemetry.client.snapshot_poller import PollResult
from plimsoll.telemetry.schema import SetAsideList
from plimsoll.telemetry.snapshot import SnapshotSummary

SPARK_CONDITION: Final = "SparkReady"
SPARK_PROCESS_NAME: Final = "local.spark"
STOP_SECONDS: Final = 2.0
CHECKPOINT_WAIT_SECONDS: Final = 10
"""How long a job whose predecessor was killed waits for its checkpoint."""
MARK: Final = "PLIMSOLL_SPARK_DATA"
"""An environment variable of all processes of a fleet's jobs: the folder that they work in."""


def kill_leftovers(data: Path) -> int:
    """Kill what is left of a fleet's jobs after its supervisor was killed: a frozen Java virtual machine, for example.

    Returns the number of processes. `data`: the folder of the fleet's telemetry.
    """
    return kill_marked(MARK, str(data.resolve()))


def record_set_aside(found: SetAsideList, before: int, record: RecordFleetEvent) -> int:
    """Note files that were set aside since the last time; `before`: how many there were."""
    if found.count > before:
        record("Warning", "SparkFileSetAside", f"files set aside: {found.count}; the newest is {found.describe()}")
    return found.count


class SparkProcess:
    """The live job of one fleet, if any. `missing` names what this machine lacks; empty: nothing."""

    def __init__(
        self,
        folder: FleetFolder,
        fleet: str,
        spec: BrokerFleetSpec,
        data: Path,
        missing: Callable[[], str] = local_process.missing_requirement,
    ) -> None:
        telemetry = spec.telemetry
        self._launcher, self._folder, self._data = telemetry.launcher, folder, data
        self._missing: tuple[str, str] | None = None
        self._missing_recorded = self._leftovers_killed = False
        self._sidecar: Sidecar | None = None
        self._jobs: ScheduledJobs | None = None
        self._started = 0.0
        self._restarts: list[float] = []
        self._last: SnapshotSummary | None = None
        self._set_aside = 0
        self._health: LiveJobHealth | None = None
        if self._launcher == "None" or telemetry.spark is None:
            return
        if not telemetry.collectors.replicas:
            self._missing = "NoCollectors", "no collector stores load reports: set telemetry.collectors.replicas"
        elif lack := missing():
            self._missing = "NoSpark", f"{lack}; the fleet uses the collectors' fold"
        else:
            launch = SparkLaunch(
                fleet=fleet, namespace="", image="", trigger_seconds=max(1, round(telemetry.spark.trigger.seconds)),
                lag_seconds=max(1, round(telemetry.collectors.interval.seconds)),
            )  # fmt: skip
            command = [*local_process.live_command(launch, data), "--wait", str(CHECKPOINT_WAIT_SECONDS)]
            outer = {**local_process.job_environment(os.environ), MARK: str(data.resolve())}
            self._sidecar = Sidecar(folder, SPARK_PROCESS_NAME, "Spark", lambda: command, outer)
            self._jobs = ScheduledJobs(folder, fleet, data, outer)

    def poll(self, now: float, known: PollResult | None, record: RecordFleetEvent) -> None:
        """Keep it running, and restart it when it runs but writes no snapshots. `now` is of the monotonic clock."""
        if self._missing is not None and not self._missing_recorded:
            self._missing_recorded = True
            record("Warning", self._missing[0], self._missing[1])
        if self._sidecar is None:
            return
        if not self._leftovers_killed:
            self._leftovers_killed = True
            if left := kill_leftovers(self._data):
                record("Warning", "SparkKilled", f"processes left by an earlier run of this fleet were killed: {left}")
        before = self._sidecar.status().get("pid")
        self._sidecar.poll(now, record)
        if self._sidecar.status().get("pid") not in (None, before):
            self._started = now
        if known is not None:
            self._last = known.last or self._last
            if known.chosen is not None:  # a collector has answered
                self._set_aside = record_set_aside(known.set_aside, self._set_aside, record)
        now_us = time.time_ns() // 1000
        self._health = assess_live_job(now_us, self._last, now_us - round((now - self._started) * 1e6))
        answered = known is not None and known.chosen is not None
        if before is not None and answered and self._health.wants_restart and now >= next_restart(self._restarts, now):
            self._restarts = [*self._restarts[-9:], now]
            record("Warning", "SparkRestarting", f"the live job is restarted: {self._health.message}")
            self._sidecar.restart(now)
        if self._jobs is not None:
            self._jobs.poll(now, record, ready=self._health.state == "Fresh")

    def stop(self) -> None:
        """End it; the next one resumes from its checkpoint."""
        if self._jobs is not None:
            self._jobs.stop()
        if self._sidecar is not None:
            self._sidecar.terminate()
            self._sidecar.stop(time.monotonic() + STOP_SECONDS)

    def status(self) -> dict[str, Any]:
        """Its part of the fleet's status; empty without a live job."""
        if self._launcher == "None":
            return {}
        if self._missing is not None:
            return {"launcher": "Process", "state": "Missing", "message": self._missing[1]}
        kept = self._sidecar.status() if self._sidecar is not None else {}
        found = self._health
        told = {} if found is None else {"state": found.state, "message": found.message}
        jobs = self._jobs.status() if self._jobs is not None else {}
        return {"launcher": "Process", **kept, **told, **({"jobs": jobs} if jobs else {})}

    def conditions(self) -> list[Condition]:
        """The fleet's condition about it."""
        if self._missing is not None:
            return [Condition(SPARK_CONDITION, "False", *self._missing)]
        if self._health is None:
            return []
        state = self._health.state
        return [Condition(SPARK_CONDITION, "True" if state == "Fresh" else "False", state, STATE_MESSAGES[state])]
