"""The live job beside a local fleet: kept running, judged by its snapshot, or reported once as missing."""

from __future__ import annotations

import dataclasses
import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.local.conftest import alive, freeze, wait_for

from plimsoll.core.spec import parse
from plimsoll.core.spec.types.fleet import BrokerFleetSpec
from plimsoll.local import manifests
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.supervision import spark_process
from plimsoll.local.supervision.process_session import marked_processes
from plimsoll.local.supervision.spark_process import SparkProcess
from plimsoll.sparkjobs.launch import local_process
from plimsoll.telemetry.client.snapshot_choice import ChosenSnapshot
from plimsoll.telemetry.client.snapshot_poller import PollResult
from plimsoll.telemetry.schema import SetAsideFile, SetAsideList
from plimsoll.telemetry.snapshot import ReportCounts, SnapshotSummary, TelemetrySnapshot

FOLD = TelemetrySnapshot(
    source="fold", fleet="f", run_us=1, batch=1, window_end_us=1, written_us=1, windows_seconds=[5],
    seen_seconds=5, seen=4, expected=4, counts=ReportCounts(), clusters={},
)  # fmt: skip
AT_WORK = [sys.executable, "-c", "import time; print('at work', flush=True); time.sleep(600)"]


def spec(telemetry: dict[str, Any]) -> BrokerFleetSpec:
    fleet = {
        "apiVersion": "plimsoll.dev/v1alpha1", "kind": "BrokerFleet", "metadata": {"name": "f"},
        "spec": {"telemetry": telemetry},
    }  # fmt: skip
    return parse(manifests.parse_text(yaml.safe_dump(fleet), "f.yaml")).fleet.spec


def known(age: float) -> PollResult:
    now = time.time_ns() // 1000
    return PollResult(now, ChosenSnapshot(FOLD, "Stale: as said"), 0, SnapshotSummary(now - round(age * 1e6), 4, 4))


class Told:
    def __init__(self) -> None:
        self.events: list[tuple[str, str, str]] = []

    def __call__(self, type_: str, reason: str, message: str) -> None:
        self.events.append((type_, reason, message))

    @property
    def reasons(self) -> list[str]:
        return [reason for _, reason, _ in self.events]


def stepped(job: SparkProcess, now: float, found: PollResult, told: Told) -> bool:
    job.poll(now, found, told)
    return True


@pytest.fixture
def folder(home: Path) -> FleetFolder:
    folder = FleetFolder.of("f")
    folder.make()
    return folder


ASKED = {"collectors": {"replicas": 1, "interval": "3s"}, "spark": {"trigger": "2s"}}


@pytest.fixture
def job(folder: FleetFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkProcess]:
    monkeypatch.setattr(local_process, "live_command", lambda launch, root: AT_WORK)
    job = SparkProcess(folder, "f", spec(ASKED), tmp_path, missing=lambda: "")
    yield job
    job.stop()


def test_without_java_that_is_said_once_and_in_status(folder: FleetFolder, tmp_path: Path):
    told = Told()
    job = SparkProcess(folder, "f", spec(ASKED), tmp_path, missing=lambda: "there is no Java")
    for now in range(5):
        job.poll(float(now), None, told)
    assert told.events == [("Warning", "NoSpark", "there is no Java; the fleet uses the collectors' fold")]
    assert job.status()["state"] == "Missing"
    (condition,) = job.conditions()
    assert (condition.status, condition.reason) == ("False", "NoSpark")
    job.stop()


@pytest.mark.parametrize(
    ("telemetry", "reasons"),
    [({}, []), ({"spark": {"launcher": "None"}, "collectors": {"replicas": 1}}, []), ({"spark": {}}, ["NoCollectors"])],
)
def test_who_does_not_ask_has_none_and_who_lacks_collectors_is_told(
    telemetry: dict[str, Any], reasons: list[str], folder: FleetFolder, tmp_path: Path
):
    told = Told()
    job = SparkProcess(folder, "f", spec(telemetry), tmp_path, missing=lambda: "")
    job.poll(0.0, None, told)
    assert told.reasons == reasons
    assert [each.reason for each in job.conditions()] == reasons
    assert bool(job.status()) is bool(reasons)


def test_it_is_kept_running_and_fresh_by_its_snapshot(job: SparkProcess):
    told = Told()
    job.poll(0.0, None, told)
    first = job.status()["pid"]
    assert job.status()["state"] == "Starting"
    job.poll(1.0, known(5.0), told)
    assert job.status()["state"] == "Fresh"
    assert job.conditions()[0].status == "True"
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: stepped(job, 2.0, known(5.0), told) and "SparkExited" in told.reasons)
    job.poll(3.1, known(5.0), told)
    assert job.status()["pid"] != first
    assert told.reasons == ["SparkStarted", "SparkExited", "SparkStarted"]
    second = job.status()["pid"]
    job.stop()
    assert not alive(second)


def test_a_job_that_writes_nothing_is_restarted_ever_more_rarely(job: SparkProcess):
    told = Told()
    job.poll(1000.0, None, told)
    first = job.status()["pid"]
    job.poll(1100.0, known(500.0), told)
    assert job.status()["state"] == "Starting", "a start takes its time"
    job.poll(1200.0, PollResult(0, None, 1), told)
    assert "SparkRestarting" not in told.reasons, "collectors say nothing of it"
    job.poll(1201.0, known(500.0), told)
    assert told.reasons[-1] == "SparkRestarting"
    job.poll(1202.0, known(500.0), told)
    assert told.reasons.count("SparkRestarting") == 1
    wait_for(lambda: stepped(job, 1203.0, known(500.0), told) and not alive(first))
    later = itertools.count(1210.0)  # its end may be seen only now, and then a pause follows
    wait_for(lambda: stepped(job, next(later), known(500.0), told) and job.status().get("pid") not in (None, first))
    job.poll(next(later), known(500.0), told)
    assert job.status()["state"] == "Starting"
    assert told.reasons.count("SparkRestarting") == 1


def test_a_frozen_job_is_killed_and_replaced(job: SparkProcess):
    """A stopped process takes SIGTERM only when it is continued."""
    told = Told()
    job.poll(1000.0, None, told)
    first = job.status()["pid"]
    freeze(first)
    job.poll(1201.0, known(500.0), told)
    assert told.reasons[-1] == "SparkRestarting"
    job.poll(1205.9, known(500.0), told)
    assert alive(first)
    job.poll(1206.0, known(500.0), told)
    assert not alive(first)
    assert told.reasons[-2:] == ["SparkKilled", "SparkExited"]
    job.poll(1208.0, known(500.0), told)
    assert job.status()["pid"] != first
    assert (job.status()["killed"], job.status()["restarts"]) == (1, 1)


def test_files_set_aside_are_an_event_for_each_increase(job: SparkProcess):
    told = Told()
    about = SetAsideFile(file="a.parquet", folder="raw", reason="half written", size_bytes=1, at_us=1, by="live")
    found = dataclasses.replace(known(5.0), set_aside=SetAsideList(1, [about]))
    for now, result in enumerate([known(5.0), found, PollResult(0, None, 1), found]):
        job.poll(float(now), result, told)
    assert told.reasons == ["SparkStarted", "SparkFileSetAside"]
    assert told.events[1][2] == "files set aside: 1; the newest is a.parquet: half written"


def test_what_a_killed_supervisor_has_left_is_killed_first(job: SparkProcess, tmp_path: Path):
    told = Told()
    environment = {**os.environ, spark_process.MARK: str(tmp_path.resolve())}
    left = subprocess.Popen([*AT_WORK[:1], "-c", "import time; time.sleep(600)"], env=environment)
    os.kill(left.pid, signal.SIGSTOP)
    wait_for(lambda: marked_processes(spark_process.MARK, str(tmp_path.resolve())) == [left.pid])
    job.poll(0.0, None, told)
    assert left.wait() == -signal.SIGKILL
    assert told.reasons == ["SparkKilled", "SparkStarted"]
    assert told.events[0][2] == "processes left by an earlier run of this fleet were killed: 1"


def test_it_has_a_clean_environment_and_waits_for_the_one_before(
    folder: FleetFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SPARK_HOME", "/elsewhere")
    made: list[Any] = []
    monkeypatch.setattr(spark_process, "Sidecar", lambda *given: made.append(given))
    SparkProcess(folder, "f", spec(ASKED), tmp_path, missing=lambda: "")
    ((_, name, kind, command, environment),) = made
    assert (name, kind) == ("local.spark", "Spark")
    words = command()
    assert words[1:5] == ["-m", "plimsoll.sparkjobs", "live", str(tmp_path)]
    assert words[words.index("--lag") + 1 :][:1] == ["3"]
    assert words[-2:] == ["--wait", "10"]
    assert "SPARK_HOME" not in environment
    assert environment[spark_process.MARK] == str(tmp_path.resolve())
