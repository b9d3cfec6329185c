"""get subscribers --away: who is away, how far behind, and what that holds back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli import asked
from tests.cli.conftest import Run

from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import ObjectStore

AWAY = {
    "name": "audit", "identity": "app", "awaySeconds": 120, "leaseSeconds": 3600, "behind": 7, "heldBytes": 900,
    "missed": 2, "subscriptions": 1,
}  # fmt: skip


@pytest.fixture
def folder(home: Path) -> Iterator[FleetFolder]:
    """A fleet of which cluster east keeps the place of a subscriber."""
    assert home.exists()
    for found in asked.fleet():
        with ObjectStore(found.store) as store:
            store.set_status("BrokerCluster", "east", lambda old: {**old.get("status", {}), "awaySubscribers": [AWAY]})
        yield found


def test_those_that_are_away_are_listed(run: Run, folder: FleetFolder):
    code, out, _ = run("get", "subscribers", "--away")
    assert code == 0
    assert out.splitlines()[1].split() == ["audit", "east", "app", "120s", "3600s", "7", "900", "2"]
    code, out, _ = run("get", "subscriber", "audit", "--away", "-o", "json")
    assert code == 0
    assert [item["heldBytes"] for item in json.loads(out)] == [900]


def test_all_subscribers_are_not_listed_and_it_says_what_to_write(run: Run, folder: FleetFolder):
    code, _, err = run("get", "subscribers")
    assert code == 2
    assert "plimsoll get subscribers --away" in err
