"""Bundles as objects: made, changed and deleted as the status of their cluster has them, at a bounded rate."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from plimsoll.operator import names
from plimsoll.operator.api import ApiError
from plimsoll.operator.objects.manifest import ref
from plimsoll.operator.reconcile import bundle_writer as module
from plimsoll.operator.reconcile.bundle_writer import WRITE_SECONDS, WRITES_AT_ONCE, BundleWriter
from plimsoll.operator.reconcile.observed import ObservedObjects

CLUSTER: dict[str, Any] = {"kind": "BrokerCluster", "metadata": {"name": "east", "namespace": "ns", "uid": "u-1"}}


class Stored:
    """The part of a namespace's client that is used, over objects in memory; `now` is the time."""

    namespace = "ns"

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}
        self.writes: list[tuple[str, str]] = []
        self.now, self.is_away = 0.0, False

    def observe(self) -> ObservedObjects:
        return ObservedObjects(self.objects)

    async def apply(self, item: dict[str, Any]) -> None:
        if self.is_away:
            raise ApiError(503, "away")
        self.writes.append(("apply", item["metadata"]["name"]))
        self.objects[ref(item)] = item

    async def delete(self, item: dict[str, Any]) -> bool:
        self.writes.append(("delete", item["metadata"]["name"]))
        del self.objects[ref(item)]
        return True


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> Stored:
    found = Stored()
    monkeypatch.setattr(module, "monotonic", lambda: found.now)
    return found


def row(number: int, **changes: Any) -> dict[str, Any]:
    load = dict.fromkeys(("topics", "sessions", "publicationsPerSecond", "deliveriesPerSecond", "bytesPerSecond"), 9)
    return {"name": f"0x{number:08x}_0x{number + 1:08x}", "edge": "e-0", **load, **changes}


def write(stored: Stored, writer: BundleWriter, *rows: dict[str, Any] | None, seconds: float = 1.0) -> list[Any]:
    """One round; returns its writes. `None` in place of rows: nothing is known of the cluster."""
    stored.now += seconds
    stored.writes.clear()
    clusters = [] if rows == (None,) else [(CLUSTER, {"bundles": list(rows)})]
    asyncio.run(writer.write(clusters, "stocks"))
    return list(stored.writes)


def writer_of(stored: Stored) -> BundleWriter:
    return BundleWriter(stored)  # type: ignore[arg-type]  # a stand-in for the part that is used


def test_they_are_made_changed_and_deleted(stored: Stored):
    writer = writer_of(stored)
    low, high = "east-00000001-00000002", "east-00000002-00000003"
    assert write(stored, writer, row(1), row(2)) == [("apply", low), ("apply", high)]
    assert stored.objects["Bundle", low]["metadata"]["labels"][names.CLUSTER] == "east"
    assert write(stored, writer, row(1), row(2), seconds=60) == [], "nothing has changed"
    assert write(stored, writer, row(1, edge="e-1"), row(2), seconds=60) == [("apply", low)]
    assert stored.objects["Bundle", low]["status"]["edge"] == "e-1"
    assert write(stored, writer, row(1, edge="e-1"), seconds=60) == [("delete", high)]
    assert write(stored, writer, seconds=60) == [("delete", low)], "the policy has bundles no more"


def test_a_cluster_that_is_not_known_keeps_its_objects(stored: Stored):
    writer = writer_of(stored)
    write(stored, writer, row(1))
    assert write(stored, writer, None, seconds=60) == []
    assert len(stored.objects) == 1


def test_what_a_user_has_changed_or_deleted_is_put_right(stored: Stored):
    writer = writer_of(stored)
    write(stored, writer, row(1))
    [(key, item)] = stored.objects.items()
    stored.objects[key] = {**item, "spec": {**item["spec"], "range": "0x00000000_0x00000001"}}
    assert len(write(stored, writer, row(1), seconds=60)) == 1
    assert stored.objects[key]["spec"] == item["spec"]
    stored.objects.clear()
    assert len(write(stored, writer, row(1), seconds=60)) == 1


def test_an_object_is_written_once_in_some_seconds_however_fast_it_changes(stored: Stored):
    writer, count = writer_of(stored), 0
    for number in range(100):
        count += len(write(stored, writer, row(1, sessions=number), seconds=1.0))
    assert count == 100 / WRITE_SECONDS


def test_many_objects_are_written_over_several_rounds(stored: Stored):
    writer, rows = writer_of(stored), [row(number) for number in range(40)]
    assert [len(write(stored, writer, *rows)) for _ in range(4)] == [WRITES_AT_ONCE, WRITES_AT_ONCE, 8, 0]


def test_an_api_server_that_is_away_is_asked_once_and_again_later(stored: Stored):
    writer = writer_of(stored)
    stored.is_away = True
    assert write(stored, writer, row(1), row(2)) == []
    stored.is_away = False
    assert len(write(stored, writer, row(1), row(2), seconds=120)) == 2
