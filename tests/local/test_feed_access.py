"""Where the recorders of a local fleet serve, as the status of its feeds says."""

from __future__ import annotations

from pathlib import Path

from plimsoll.core.client import Address
from plimsoll.local import keys
from plimsoll.local.feed_access import has_no_keys, served_feeds
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import ObjectStore


def feed(name: str) -> dict[str, object]:
    metadata = {"name": name}
    return {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "Feed",
        "metadata": metadata,
        "spec": {"subscription": "[a,=,1]"},
    }


def test_the_feeds_that_are_served_have_the_key_of_recorders(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PLIMSOLL_HOME", str(tmp_path))
    folder = FleetFolder.of("quickstart")
    folder.make()
    with ObjectStore(folder.store) as store:
        for name in ("stocks", "trades"):
            store.create(feed(name), "2026-01-01T00:00:00Z")
        store.set_status("Feed", "stocks", lambda item: {"endpoint": "tcp://127.0.0.1:7421"})
    assert served_feeds(folder, plain=True) == {"stocks": Address("tcp://127.0.0.1:7421")}
    key = keys.key_pair(folder, keys.RECORDER).public
    assert served_feeds(folder, plain=False) == {"stocks": Address("tcp://127.0.0.1:7421", key)}


def test_whether_a_fleet_has_keys_is_in_its_specification(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PLIMSOLL_HOME", str(tmp_path))
    for name, security in (("keyed", {}), ("open", {"security": {"plain": True}})):
        folder = FleetFolder.of(name)
        folder.make()
        with ObjectStore(folder.store) as store:
            fleet = {**feed(name), "kind": "BrokerFleet", "spec": security}
            store.create(fleet, "2026-01-01T00:00:00Z")
        assert has_no_keys(folder) == (name == "open")
