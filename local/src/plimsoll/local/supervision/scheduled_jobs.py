"""The scheduled jobs on Spark as processes of this machine, as CronJobs run them on Kubernetes: one at a time.

`compact` merges the many small files of the collectors into one for each hour, `history` and `accuracy` make the daily
figures; `prepare` makes starts faster. They wait until the live job is fresh, have a low priority, and end with the
fleet.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.supervision.child_process import ChildProcess, describe_exit
from plimsoll.local.supervision.sidecar import RecordFleetEvent
from plimsoll.local.timestamps import rfc3339_now
from plimsoll.telemetry.schema import MAJOR

HOUR_SECONDS: Final = 3600.0
JOB_SECONDS: Final = 3000.0
"""How long a job may take; then it is killed, and runs again at its next time."""
JobCommand = Callable[[str, Sequence[str]], Sequence[str]]
"""The command of a job with these arguments."""


@dataclass(frozen=True, slots=True)
class JobSchedule:
    """A job runs `first_seconds` after the start of the fleet, and then every `every_seconds`."""

    job: str
    first_seconds: float
    every_seconds: float


SCHEDULES: Final = (
    JobSchedule("prepare", 300.0, 24 * HOUR_SECONDS),
    JobSchedule("compact", HOUR_SECONDS / 4, HOUR_SECONDS),
    JobSchedule("history", HOUR_SECONDS, 24 * HOUR_SECONDS),
    JobSchedule("accuracy", HOUR_SECONDS * 1.25, 24 * HOUR_SECONDS),
)


def job_command(job: str, arguments: Sequence[str]) -> Sequence[str]:
    """The command that runs a job of this installation, at a low priority if the system has `nice`."""
    nice = shutil.which("nice")
    return (*((nice, "-n", "10") if nice else ()), sys.executable, "-m", "plimsoll.sparkjobs", job, *arguments)


class ScheduledJobs:
    """The jobs of one fleet. `now`: seconds of one monotonic clock; `data`: the folder of the fleet's telemetry."""

    def __init__(
        self,
        folder: FleetFolder,
        fleet: str,
        data: Path,
        environment: Mapping[str, str],
        command: JobCommand = job_command,
    ) -> None:
        self._folder, self._environment, self._command = folder, environment, command
        self._arguments = {
            "prepare": [],
            "compact": [str(data)],
            "history": [str(data), "--fleet", fleet],
            "accuracy": [str(data), str(data / f"model/v{MAJOR}/accuracy.json"), "--fleet", fleet],
        }
        self._due: dict[str, float] = {}
        self._running: tuple[JobSchedule, ChildProcess, float] | None = None
        self._last: dict[str, dict[str, Any]] = {}

    def poll(self, now: float, record: RecordFleetEvent, *, ready: bool) -> None:
        """Notice the end of a job, and start the next one that is due. `ready`: whether jobs may start now."""
        if not self._due:
            self._due = {each.job: now + each.first_seconds for each in SCHEDULES}
        if self._running is not None:
            self._watch(*self._running, now, record)
        elif ready:
            for each in SCHEDULES:
                if now >= self._due[each.job]:
                    self._start(each, now)
                    return

    def _start(self, schedule: JobSchedule, now: float) -> None:
        self._due[schedule.job] = now + schedule.every_seconds
        command = self._command(schedule.job, self._arguments[schedule.job])
        log = self._folder.log(f"local.spark-{schedule.job}")
        self._running = schedule, ChildProcess(command, log, self._environment), now

    def _watch(
        self, schedule: JobSchedule, process: ChildProcess, since: float, now: float, record: RecordFleetEvent
    ) -> None:
        code = process.exit_code()
        if code is None and now < since + JOB_SECONDS:
            return
        if code is None:
            process.kill()
            end = f"was killed: it had run for {JOB_SECONDS / 60:.0f} minutes"
        else:
            words = process.last_output_line()
            end = f"{describe_exit(code)}{f': {words}' if words else ''}"
        self._running = None
        self._last[schedule.job] = {"succeeded": code == 0, "endedAt": rfc3339_now(), "message": end}
        if code == 0:
            record("Normal", "SparkJobDone", f"{schedule.job} {end}")
        else:
            record("Warning", "SparkJobFailed", f"{schedule.job} {end}")

    def stop(self) -> None:
        """Kill a job that runs; what it has begun is finished or undone by its next run."""
        if self._running is not None:
            self._running[1].kill()
            self._running = None

    def status(self) -> dict[str, Any]:
        """The last end of each job, and the one that runs; empty before the first one."""
        found: dict[str, Any] = {job: dict(last) for job, last in self._last.items()}
        if self._running is not None:
            schedule, process, _ = self._running
            found.setdefault(schedule.job, {})["pid"] = process.pid
        return found
