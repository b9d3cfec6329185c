"""The objects of a fleet of this machine, as commands see them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli import asked

from plimsoll.cli.local_backend import LocalBackend
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import CHANGES_KEPT, ObjectStore


@pytest.fixture
def folder(home: Path) -> Iterator[FleetFolder]:
    assert home.exists()
    yield from asked.fleet()


def test_changes_come_in_portions_and_none_is_missed(folder: FleetFolder):
    here = LocalBackend(folder)
    before, changes = here.watch("EdgeBroker")
    assert [item["metadata"]["name"] for item in before] == ["e-0", "e-1", "w"]
    assert here.set_cordoned("e-0", cordoned=True)
    assert not here.set_cordoned("e-0", cordoned=True)
    assert [(change.type, change.name) for change in next(changes)] == [("MODIFIED", "e-0")]
    assert next(changes) == []


def test_after_more_changes_than_are_kept_all_objects_are_listed_again(folder: FleetFolder):
    here = LocalBackend(folder)
    _, changes = here.watch("EdgeBroker")
    with ObjectStore(folder.store) as store, store.transaction():
        for number in range(CHANGES_KEPT + 5):
            store.set_status("EdgeBroker", "e-0", lambda item, n=number: {"subscribers": n})
    told = next(changes)
    assert [change.name for change in told] == ["e-0", "e-1", "w"]
    assert told[0].object["status"] == {"subscribers": CHANGES_KEPT + 4}


def test_of_a_session_all_is_in_its_object(folder: FleetFolder):
    assert LocalBackend(folder).with_plan({"status": {"record": {}}}) == {"status": {"record": {}}}
