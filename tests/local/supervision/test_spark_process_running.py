"""A local fleet with real Spark: the live job's snapshot is used for decisions, and again after the job was killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.local.conftest import alive, wait_for
from tests.sparkjobs import needs  # noqa: F401  # skips this module where there is no Spark

from plimsoll.core.spec import parse
from plimsoll.local import manifests, runtime
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import ObjectStore

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]
QUICKSTART = (Path(__file__).parents[3] / "examples" / "quickstart.yaml").read_text()
WITH_SPARK = (
    "  name: quickstart\n"
    "spec: {telemetry: {collectors: {replicas: 1, interval: 1s}, spark: {trigger: 1s, launcher: SparkOperator}}}\n"
)
START_SECONDS = 300.0


@pytest.fixture
def folder(home: Path) -> Iterator[FleetFolder]:
    """In a cluster it would be run by a Spark operator; here it is a process."""
    text = QUICKSTART.replace("  name: quickstart\n", WITH_SPARK)
    runtime.up_detached(parse(manifests.parse_text(text, "quickstart.yaml")), lambda line: None)
    folder = FleetFolder.of("quickstart")
    yield folder
    pid = telemetry(folder).get("spark", {}).get("pid", 0)
    runtime.down(folder)
    wait_for(lambda: not (pid and alive(pid)))


def status(folder: FleetFolder) -> dict[str, Any]:
    with ObjectStore(folder.store) as store:
        found: dict[str, Any] = store.get("BrokerFleet", "quickstart").get("status", {})
    return found


def telemetry(folder: FleetFolder) -> dict[str, Any]:
    return dict(status(folder).get("telemetry", {}))


def condition(folder: FleetFolder) -> dict[str, str]:
    return next((each for each in status(folder)["conditions"] if each["type"] == "SparkReady"), {})


@pytest.mark.sweep
def test_the_live_job_decides(folder: FleetFolder):
    wait_for(lambda: telemetry(folder).get("source") == "Spark", START_SECONDS)
    found = telemetry(folder)
    assert found["brokersSeen"] == found["brokersExpected"] > 0
    assert found["snapshotAgeSeconds"] <= 45
    assert (found["spark"]["launcher"], found["spark"]["restarts"]) == ("Process", 0)
    wait_for(lambda: condition(folder).get("reason") == "Fresh")


@pytest.mark.sweep  # a second start of Spark; that a sidecar comes back is proved without it, in test_spark_process.py
def test_the_live_job_comes_back(folder: FleetFolder):
    wait_for(lambda: telemetry(folder).get("source") == "Spark", START_SECONDS)
    found = telemetry(folder)
    os.kill(found["spark"]["pid"], signal.SIGKILL)
    wait_for(lambda: telemetry(folder)["spark"]["restarts"] == 1)
    wait_for(lambda: telemetry(folder)["spark"].get("pid", found["spark"]["pid"]) != found["spark"]["pid"])
    before = (folder.path / "telemetry" / "agg" / "v1" / "latest.json").stat().st_ino
    wait_for(lambda: (folder.path / "telemetry" / "agg" / "v1" / "latest.json").stat().st_ino != before, START_SECONDS)
    wait_for(lambda: telemetry(folder).get("source") == "Spark", 300.0)
