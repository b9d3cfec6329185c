"""get consumers: what it shows of the groups of all clusters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli import asked
from tests.cli.conftest import Run

from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import ObjectStore

CONSUMER = {
    "name": "worker-1", "slices": 3, "lag": 9, "backlog": 7, "itemsPerSecond": 12, "microsecondsPerItem": 1250,
    "cpuPercent": 50, "memoryPercent": 25,
}  # fmt: skip
GROUPS = [{"name": "readings", "slices": 4, "consumers": [CONSUMER, {**CONSUMER, "name": "worker-2"}]}]


@pytest.fixture
def folder(home: Path) -> Iterator[FleetFolder]:
    """A fleet whose cluster east has a group with two consumers."""
    assert home.exists()
    for found in asked.fleet():
        with ObjectStore(found.store) as store:
            store.set_status("BrokerCluster", "east", lambda old: {**old.get("status", {}), "consumerGroups": GROUPS})
        yield found


def test_consumers_are_listed_with_their_slices_and_load(run: Run, folder: FleetFolder):
    code, out, _ = run("get", "consumers")
    assert code == 0
    assert out.splitlines()[0].split() == [
        "CONSUMER", "GROUP", "CLUSTER", "SLICES", "LAG", "BACKLOG", "ITEMS/S", "US/ITEM", "CPU", "MEMORY",
    ]  # fmt: skip
    assert out.splitlines()[1].split() == ["worker-1", "readings", "east", "3", "9", "7", "12", "1250", "50%", "25%"]


def test_one_by_name_as_json_and_by_names(run: Run, folder: FleetFolder):
    code, out, _ = run("get", "consumers", "worker-2", "-o", "json")
    assert code == 0
    assert [item["name"] for item in json.loads(out)] == ["worker-2"]
    assert run("get", "consumers", "-o", "name")[1].split() == ["worker-1", "worker-2"]


def test_one_that_is_not_there_is_said(run: Run, folder: FleetFolder):
    code, _, err = run("get", "consumer", "worker-9")
    assert code != 0
    assert "worker-9" in err
