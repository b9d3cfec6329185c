"""A full disk: the fleet goes on, says so once, and writes what it has kept as soon as it can."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.local.conftest import Fleet

from plimsoll.local import store_edits
from plimsoll.local.status_age import staleness_note
from plimsoll.local.storage.object_store import ObjectStore
from plimsoll.local.storage.state_files import StateWriteError
from plimsoll.local.supervision.fleet_events import FleetEvents
from plimsoll.local.supervision.fleet_status_writer import FleetStatusWriter
from plimsoll.local.supervision.write_faults import WriteFaults


class Place:
    """Events of a fleet whose store refuses to write while `is_full`."""

    def __init__(self, store: ObjectStore) -> None:
        self.is_full = False
        self.said: list[str] = []
        self._store = store
        self.events = FleetEvents(self, "quotes", {}, self.said.append)  # type: ignore[arg-type]  # it only records
        self.faults = WriteFaults(self.events)

    def record(self, *event: str) -> None:
        self.write()
        self._store.record(*event)

    def write(self) -> None:
        if self.is_full:
            raise StateWriteError(Path("store.db"), "no space is left on its disk", "free space there")

    def reasons(self) -> list[str]:
        return [event.reason for event in self._store.events()]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with ObjectStore(tmp_path / "store.db") as store:
        yield Place(store)


def test_a_fault_is_said_once_and_its_end_once(place: Place):
    place.is_full = True
    for _ in range(5):
        assert not place.faults.attempt("status", place.write)
        place.faults.settle()
    assert place.said == [
        "cannot write store.db: no space is left on its disk; free space there; "
        "brokers go on, and the supervisor tries again each second"
    ]
    place.is_full = False
    place.faults.settle()
    assert place.reasons() == ["WriteFailed"]  # the status is still to be written
    assert place.faults.attempt("status", place.write)
    for _ in range(2):
        place.faults.settle()
    assert place.reasons() == ["WriteFailed", "WritesResumed"]
    assert place.said[1:] == ["the state of the fleet is written again"]
    place.is_full = True
    place.faults.attempt("status", place.write)
    assert len(place.said) == 3


def test_a_fault_of_the_program_ends_nothing_and_is_said_ever_more_rarely(place: Place):
    def fail() -> None:
        raise OverflowError("cannot convert float infinity to integer")

    for _ in range(100):
        assert not place.faults.attempt("status", fail)
        assert place.faults.attempt("brokers", place.write)
        place.faults.settle()
    assert place.reasons() == ["PartFailed"] * 3
    first = place.said[0]
    assert first.startswith("status failed (1 times so far), and the rest goes on: OverflowError: cannot convert float")
    assert "(test_write_faults.py, line " in first


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [{"rate": float("-inf")}], {1, 2}])
def test_a_status_that_json_does_not_have_is_shown_as_such_and_ends_nothing(place: Place, value: object):
    store = place._store
    store.create(
        {"kind": "BrokerCluster", "metadata": {"name": "east", "generation": 1}, "spec": {}}, "2026-01-01T00:00:00Z"
    )
    parts: Any = None
    writer = FleetStatusWriter(
        store, {}, parts, parts, parts, parts, parts, pid=1, plain=True, on_fault=place.faults.note_fault
    )
    writer._set("BrokerCluster", "east", lambda old: {"subscribers": 7})
    writer._set("BrokerCluster", "east", lambda old: {"load": value})
    status = store.get("BrokerCluster", "east")["status"]
    (condition,) = status.pop("conditions")
    assert (condition["type"], condition["reason"]) == ("StatusUncomputed", "PartFailed")
    assert "cannot be written as JSON" in condition["message"]
    assert status == {"subscribers": 7}


def test_a_status_that_cannot_be_computed_is_shown_as_such_and_hinders_no_other(place: Place):
    store = place._store
    for name in ("east", "west"):
        meta = {"name": name, "generation": 1}
        store.create({"kind": "BrokerCluster", "metadata": meta, "spec": {}}, "2026-01-01T00:00:00Z")
    parts: Any = None
    writer = FleetStatusWriter(
        store, {}, parts, parts, parts, parts, parts, pid=1, plain=True, on_fault=place.faults.note_fault
    )

    def fail(old: dict[str, Any]) -> dict[str, Any]:
        raise ValueError("cannot convert float NaN to integer")

    writer._set("BrokerCluster", "east", lambda old: {"subscribers": 7})
    writer._set("BrokerCluster", "east", fail)
    writer._set("BrokerCluster", "west", lambda old: {"subscribers": 8})
    status = store.get("BrokerCluster", "east")["status"]
    (condition,) = status.pop("conditions")
    assert (condition["type"], condition["status"], condition["reason"]) == ("StatusUncomputed", "True", "PartFailed")
    assert "NaN" in condition["message"]
    assert status == {"subscribers": 7}  # as of before
    assert store.get("BrokerCluster", "west")["status"] == {"subscribers": 8}
    assert place.reasons() == ["PartFailed"]
    writer._set("BrokerCluster", "east", lambda old: {**old["status"], "subscribers": 9})
    assert store.get("BrokerCluster", "east")["status"] == {"subscribers": 9, "conditions": []}


def test_events_wait_in_order_and_within_bounds(place: Place, monkeypatch: pytest.MonkeyPatch):
    place.is_full = True
    for number in range(2000):
        place.events.record_fleet_event("Normal", f"E{number}", "text")
    assert not place.events.flush()
    place.is_full = False
    place.events.record_fleet_event("Normal", "Last", "text")
    assert place.reasons() == [*(f"E{number}" for number in range(1001, 2000)), "Last"]


def limit_files(pid: int, size: int) -> None:
    """Let no file of a process grow beyond a size: its writes fail as on a full disk, others do not."""
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


@pytest.mark.sweep
def test_a_supervisor_that_cannot_write_keeps_its_brokers_and_catches_up(fleet: Fleet):
    fleet.up()
    assert fleet.process is not None
    pids = fleet.brokers()
    limit_files(fleet.process.pid, 0)
    assert store_edits.set_cordoned(fleet.folder, "e-0", cordoned=True)  # so that it has something to do
    os.kill(pids["e-1"], signal.SIGSTOP)  # its status changes
    try:
        fleet.wait_for(lambda: "has written nothing for" in staleness_note(fleet.folder))
        assert fleet.process.poll() is None
        assert all(fleet.alive(pid) for pid in pids.values())
        os.kill(pids["e-1"], signal.SIGKILL)
        fleet.wait_for(lambda: not fleet.alive(pids["e-1"]))
        assert "WriteFailed" not in [reason for _, reason in fleet.reasons()]  # it is kept in memory
    finally:
        limit_files(fleet.process.pid, resource.RLIM_INFINITY)
    fleet.wait_for(lambda: ("quotes", "WritesResumed") in fleet.reasons())
    assert fleet.reasons().count(("quotes", "WriteFailed")) == 1
    fleet.wait_for(lambda: ("e-1", "Exited") in fleet.reasons())
    fleet.wait_for(lambda: fleet.brokers().get("e-1") not in (None, pids["e-1"]))
    assert staleness_note(fleet.folder) == ""
    code, out, err = fleet.end()
    assert (code, err) == (0, "")
    assert out.count("cannot write") == 1
    assert out.count("is written again") == 1


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of four MiB."""
    path = tmp_path / "disk"
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m,mode=700", "tmpfs", str(path)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("only root may mount a small disk")
    yield path
    subprocess.run(["umount", str(path)], check=True)


def fill(path: Path) -> Path:
    """Write until no byte fits."""
    file = path / "filler"
    with file.open("wb", buffering=0) as output:
        try:
            while True:
                output.write(b"x" * 4096)
        except OSError:
            return file


def cordon_until_full(fleet: Fleet) -> None:
    """Use up the space that the store still holds."""
    for number in range(1000):
        store_edits.set_cordoned(fleet.folder, "e-0", cordoned=number % 2 == 0)


def test_a_fleet_on_a_full_disk_goes_on_and_refuses_commands_in_one_line(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PLIMSOLL_HOME", str(small_disk))
    fleet = Fleet(small_disk)
    try:
        fleet.up()
        assert fleet.process is not None
        pids = fleet.brokers()
        filler = fill(small_disk)
        os.kill(pids["e-1"], signal.SIGKILL)
        fleet.wait_for(lambda: not fleet.alive(pids["e-1"]))
        fleet.wait_for(lambda: "has written nothing for" in staleness_note(fleet.folder))
        with pytest.raises(StateWriteError, match="no space is left on its disk; free space there"):
            cordon_until_full(fleet)
        assert fleet.process.poll() is None
        assert fleet.alive(pids["east-head"])
        filler.unlink()
        fleet.wait_for(lambda: ("quotes", "WritesResumed") in fleet.reasons())
        assert ("e-1", "Exited") in fleet.reasons()
        fleet.wait_for(lambda: fleet.condition("BrokerFleet", "quotes", "Ready") == "True")
        store_edits.set_cordoned(fleet.folder, "e-0", cordoned=True)
        code, _, err = fleet.end()
        assert (code, err) == (0, "")
    finally:
        fleet.clean()
