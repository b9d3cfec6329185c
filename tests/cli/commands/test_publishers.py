"""rebalance --publishers and drain HEAD: what they write, and what they refuse to write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli import asked
from tests.cli.conftest import Run

from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import ObjectStore


@pytest.fixture
def folder(home: Path) -> Iterator[FleetFolder]:
    assert home.exists()
    yield from asked.fleet()


def reports(folder: FleetFolder, cluster: str, epoch: int) -> None:
    """The head of a cluster has reported."""
    with ObjectStore(folder.store) as store:
        store.set_status("BrokerCluster", cluster, lambda item: {**item.get("status", {}), "head": {"epoch": epoch}})


def cordoned_epoch(folder: FleetFolder, cluster: str) -> int:
    with ObjectStore(folder.store) as store:
        return int(store.get("BrokerCluster", cluster)["spec"]["head"].get("cordonedEpoch", 0))


def test_a_head_is_cordoned_until_a_later_one_is_there(run: Run, folder: FleetFolder):
    assert "has not reported yet" in run("cordon", "east-head")[2]
    reports(folder, "east", 5)
    assert run("cordon", "east-head")[:2] == (0, "head/east-head cordoned\n")
    assert run("cordon", "east-head")[1] == "head/east-head already cordoned\n"
    assert cordoned_epoch(folder, "east") == 5
    assert run("uncordon", "east-head")[1] == "head/east-head uncordoned\n"
    assert cordoned_epoch(folder, "east") == 0
    run("cordon", "east-head")
    reports(folder, "east", 6)
    assert run("uncordon", "east-head")[1] == "head/east-head already uncordoned\n"
    assert run("cordon", "east-head")[1] == "head/east-head cordoned\n"
    assert cordoned_epoch(folder, "east") == 6


def test_a_dry_run_of_a_drain_cordons_nothing(run: Run, folder: FleetFolder):
    reports(folder, "east", 5)
    assert run("drain", "east-head", "--name", "one", "--no-wait", "--dry-run")[0] == 0
    assert cordoned_epoch(folder, "east") == 0


def test_a_head_is_drained_of_publishers(run: Run, folder: FleetFolder):
    reports(folder, "east", 5)
    code, out, error = run("drain", "east-head", "--name", "one", "--no-wait", "--exclude", "p7")
    assert (code, error) == (0, "")
    assert "head/east-head cordoned" in out
    assert "loadbalancingsession/one created" in out
    assert cordoned_epoch(folder, "east") == 5
    spec = asked.sessions(folder)["one"]
    assert spec == {
        "scope": "Global", "source": {"name": "east"}, "action": "MovePublishers",
        "select": {"sharePercent": 100}, "mode": "Execute", "exclusions": {"subscribers": ["p7"]},
    }  # fmt: skip


def test_publishers_are_rebalanced_by_cluster_or_head(run: Run, folder: FleetFolder):
    ways = ["rebalance", "--publishers", "--from", "east", "--to", "west-head", "--share", "30%", "--dry-run"]
    assert run(*ways, "--name", "some", "--no-wait")[0] == 0
    assert run("rebalance", "--publishers", "--from", "west", "--name", "few", "--no-wait")[0] == 0
    found = asked.sessions(folder)
    assert found["some"] == {
        "scope": "Global", "source": {"name": "east"}, "target": {"name": "west"}, "action": "MovePublishers",
        "select": {"sharePercent": 30},
    }  # fmt: skip
    assert "select" not in found["few"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--from", "est"], 'no cluster or head "est"'),
        (["--from", "east", "--to", "east-head"], "--from and --to are both east"),
        (["--from", "east", "--subscribers", "5"], "--subscribers is of subscribers"),
        (["--from", "east", "--handover", "replay"], "--handover is of subscribers"),
    ],
)
def test_what_makes_no_sense_is_refused_and_writes_nothing(run: Run, folder: FleetFolder, words: list[str], said: str):
    code, _, error = run("rebalance", "--publishers", *words, "--no-wait")
    assert code != 0
    assert said in error
    assert asked.sessions(folder) == {}
