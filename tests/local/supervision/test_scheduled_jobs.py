"""Scheduled jobs of a local fleet: one at a time, by the clock, with an event for each end."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.local.conftest import alive, wait_for
from tests.local.supervision.test_spark_process import Told

from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.supervision import scheduled_jobs
from plimsoll.local.supervision.scheduled_jobs import (
    HOUR_SECONDS,
    JOB_SECONDS,
    SCHEDULES,
    ScheduledJobs,
    job_command,
)


class Jobs:
    """Jobs that are scripts, in the order in which they were started."""

    def __init__(self, home: Path) -> None:
        self.started: list[tuple[str, Sequence[str]]] = []
        self.script = "print('rows 5')"
        folder = FleetFolder.of("f")
        folder.make()
        self.jobs = ScheduledJobs(folder, "f", home / "data", dict(os.environ), self.command)

    def command(self, job: str, arguments: Sequence[str]) -> Sequence[str]:
        self.started.append((job, arguments))
        return [sys.executable, "-c", self.script]

    @property
    def names(self) -> list[str]:
        return [job for job, _ in self.started]


@pytest.fixture
def made(home: Path) -> Jobs:
    return Jobs(home)


def finish(made: Jobs, now: float, told: Told) -> None:
    count = len(told.events)

    def ended() -> bool:
        made.jobs.poll(now, told, ready=False)
        return len(told.events) > count

    wait_for(ended)


@pytest.fixture(autouse=True)
def three(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `prepare`, which has nothing to do with the data."""
    monkeypatch.setattr(scheduled_jobs, "SCHEDULES", tuple(each for each in SCHEDULES if each.job != "prepare"))


def test_every_schedule_has_its_arguments(made: Jobs):
    assert set(made.jobs._arguments) == {each.job for each in SCHEDULES}


def test_jobs_run_by_the_clock_one_at_a_time_and_when_the_fleet_is_ready(made: Jobs, home: Path):
    told = Told()
    made.jobs.poll(100.0, told, ready=True)
    made.jobs.poll(100.0 + HOUR_SECONDS / 4 - 1, told, ready=True)
    made.jobs.poll(100.0 + HOUR_SECONDS / 4, told, ready=False)
    assert made.names == []
    made.jobs.poll(100.0 + HOUR_SECONDS / 4, told, ready=True)
    assert made.started == [("compact", [str(home / "data")])]
    assert made.jobs.status()["compact"]["pid"]
    finish(made, 2000.0, told)
    assert told.events == [("Normal", "SparkJobDone", "compact exited with code 0: rows 5")]
    status = made.jobs.status()["compact"]
    assert (status["succeeded"], status["message"]) == (True, "exited with code 0: rows 5")
    # Compaction and history are due; the second waits for the first.
    late = 100.0 + 2 * HOUR_SECONDS
    made.jobs.poll(late, told, ready=True)
    made.jobs.poll(late, told, ready=True)
    assert made.names == ["compact", "compact"]
    finish(made, late, told)
    made.jobs.poll(late, told, ready=True)
    finish(made, late, told)
    made.jobs.poll(late, told, ready=True)
    finish(made, late, told)
    made.jobs.poll(late, told, ready=True)
    assert made.names == ["compact", "compact", "history", "accuracy"]
    assert list(made.started[2][1]) == [str(home / "data"), "--fleet", "f"]
    made.jobs.stop()


def test_a_job_that_fails_or_hangs_is_an_event_and_runs_again_at_its_next_time(made: Jobs):
    told = Told()
    made.script = "raise SystemExit('compact: no space left on that disk')"
    made.jobs.poll(0.0, told, ready=True)
    made.jobs.poll(HOUR_SECONDS / 4, told, ready=True)
    finish(made, HOUR_SECONDS / 4, told)
    text = "compact exited with code 1: compact: no space left on that disk"
    assert told.events == [("Warning", "SparkJobFailed", text)]
    made.script = "import time; time.sleep(600)"
    start = 1.25 * HOUR_SECONDS
    made.jobs.poll(start, told, ready=True)
    pid = made.jobs.status()["compact"]["pid"]
    made.jobs.poll(start + JOB_SECONDS - 1, told, ready=True)
    assert alive(pid)
    made.jobs.poll(start + JOB_SECONDS, told, ready=True)
    assert not alive(pid)
    assert told.events[1] == ("Warning", "SparkJobFailed", "compact was killed: it had run for 50 minutes")


def test_a_running_job_ends_with_the_fleet(made: Jobs):
    made.script = "import time; time.sleep(600)"
    told = Told()
    made.jobs.poll(0.0, told, ready=True)
    made.jobs.poll(HOUR_SECONDS, told, ready=True)
    pid = made.jobs.status()["compact"]["pid"]
    made.jobs.stop()
    assert not alive(pid)
    assert "pid" not in made.jobs.status().get("compact", {})


def test_a_command_runs_the_job_of_this_installation():
    words = job_command("history", ["/data", "--fleet", "f"])
    assert list(words[-6:]) == ["-m", "plimsoll.sparkjobs", "history", "/data", "--fleet", "f"]
    assert sys.executable in words
