"""Collectors of a local fleet with real brokers: files appear, the fold answers, sessions arrive."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from tests.local.conftest import alive, wait_for
from tests.local.traffic import Traffic
from tests.telemetry.rows import expected_brokers

from plimsoll.core.spec import parse
from plimsoll.local import keys, manifests, runtime, store_edits
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import ObjectStore
from plimsoll.telemetry.schema import INCOMING, LOADS, OUTCOMES, SESSIONS
from plimsoll.telemetry.snapshot import TelemetrySnapshot, decode_snapshot
from plimsoll.telemetry.storage import parquet

QUICKSTART = (Path(__file__).parents[3] / "examples" / "quickstart.yaml").read_text()
WITH_COLLECTORS = "  name: quickstart\nspec: {telemetry: {collectors: {replicas: 2, interval: 1s}}}\n"
MOVE = {
    "scope": "Local", "source": {"name": "edge-0"}, "target": {"name": "edge-1"}, "mode": "Execute",
    "select": {"sharePercent": 100}, "limits": {"moveInterval": "0s"}, "deadline": "2m",
}  # fmt: skip


class Collected:
    """A fleet of real brokers whose reports are collected."""

    def __init__(self, folder: FleetFolder) -> None:
        self.folder = folder
        self.data = folder.path / "telemetry"

    def status(self) -> dict[str, Any]:
        with ObjectStore(self.folder.store) as store:
            found: dict[str, Any] = store.get("BrokerFleet", "quickstart").get("status", {})
        return found

    def collectors(self) -> list[dict[str, Any]]:
        return list(self.status().get("telemetry", {}).get("collectors", []))

    def folds(self) -> list[TelemetrySnapshot]:
        found = []
        for each in self.collectors():
            with urlopen(f"http://{each['http']}/v1/fold", timeout=60) as answer:
                found.append(decode_snapshot(answer.read()))
        return found

    def rows(self, folder: str = INCOMING) -> list[dict[str, Any]]:
        table = LOADS if folder == INCOMING else OUTCOMES
        return [
            row for path in sorted((self.data / folder).glob("*.parquet")) for row in parquet.read_rows(path, table)
        ]


@pytest.fixture
def collected(home: Path) -> Iterator[Collected]:
    assert os.environ["PLIMSOLL_HOME"] == str(home)
    text = QUICKSTART.replace("  name: quickstart\n", WITH_COLLECTORS)
    assert text != QUICKSTART
    runtime.up_detached(parse(manifests.parse_text(text, "quickstart.yaml")), lambda line: None)
    folder = FleetFolder.of("quickstart")
    fleet = Collected(folder)
    wait_for(lambda: all("http" in each for each in fleet.collectors()) and len(fleet.collectors()) == 2)
    pids = [each["pid"] for each in fleet.collectors()]
    yield fleet
    pids += [each.get("pid", 0) for each in fleet.collectors()]
    runtime.down(folder)
    wait_for(lambda: not any(pid and alive(pid) for pid in pids))


def test_reports_and_sessions_of_a_fleet_become_files(collected: Collected):
    brokers = wait_for(lambda: collected.status()["brokers"]["desired"])

    def all_seen() -> bool:
        folds = collected.folds()
        return sum(fold.seen for fold in folds) == sum(fold.expected for fold in folds) == brokers

    wait_for(all_seen)
    wait_for(lambda: collected.status()["telemetry"].get("brokersSeen") == brokers)
    said = collected.status()["telemetry"]
    assert (said["source"], said["reason"], said["brokersExpected"]) == (
        "Fold",
        "Missing: Spark has written none",
        brokers,
    )
    with Traffic(collected.folder, 5) as traffic:
        store_edits.create_session(collected.folder, "move", MOVE)
        wait_for(lambda: collected.rows(SESSIONS))
        verdict = traffic.verdict()
    assert verdict.ok, verdict
    (row,) = collected.rows(SESSIONS)
    assert (row["name"], row["phase"], row["fleet"]) == ("move", "Succeeded", "quickstart")
    assert row["moved"] == row["planned"]

    def heads() -> list[dict[str, Any]]:
        return [each for each in collected.rows() if each["role"] == "head" and each["publisher_rates"]]

    wait_for(heads)
    rows = collected.rows()
    assert len({(each["broker"], each["epoch"], each["seq"]) for each in rows}) == len(rows)
    assert all(each["event_us"] == each["at_us"] for each in rows), "brokers say the time of day"
    assert {each["broker"] for each in rows} == {
        name for names in expected_brokers(collected.data).clusters.values() for name in names
    }
    counts = [fold.counts for fold in collected.folds()]
    assert sum(each.invalid + each.late + each.duplicate for each in counts) == 0


@pytest.mark.sweep
def test_a_collector_that_dies_is_started_again_and_repeats_nothing(collected: Collected):
    wait_for(collected.rows)
    busy = collected.rows()[0]["collector"]
    (before,) = [each for each in collected.collectors() if each["name"] == busy]
    os.kill(before["pid"], signal.SIGKILL)

    def again() -> bool:
        now = next(each for each in collected.collectors() if each["name"] == busy)
        return bool(now["restarts"]) and now.get("pid", before["pid"]) != before["pid"] and now != before

    wait_for(again)
    written = len(collected.rows())
    wait_for(lambda: len(collected.rows()) > written)
    rows = collected.rows()
    assert len({(each["broker"], each["epoch"], each["seq"]) for each in rows}) == len(rows)
    with ObjectStore(collected.folder.store) as store:
        assert "CollectorExited" in {event.reason for event in store.events()}
    assert {c["type"]: c["status"] for c in collected.status()["conditions"]}["Ready"] == "True"


def test_keys_of_collectors_may_listen_and_no_more(home: Path):
    folder = FleetFolder.of("f")
    folder.make()
    keys.write_authorized_keys(folder, [("h", "head")], keys.collector_names(2))
    lines = [line.split()[1:] for line in folder.authorized_keys.read_text().splitlines()]
    assert [line for line in lines if line[0] == "collector"] == [
        ["collector", "local.collector-0"],
        ["collector", "local.collector-1"],
    ]
