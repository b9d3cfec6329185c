"""The embedded store: versions, compare-and-set, watching, events, several processes."""

import sqlite3
import threading

import pytest

from plimsoll.local.storage import object_store as store_module
from plimsoll.local.storage.object_store import (
    ChangesExpiredError,
    ObjectConflictError,
    ObjectMissingError,
    ObjectStore,
    UnwritableObjectError,
)
from plimsoll.local.storage.state_files import StateWriteError

NOW = "2026-01-01T00:00:00Z"


@pytest.fixture
def store(tmp_path):
    with ObjectStore(tmp_path / "store.db") as store:
        yield store


def make(name="a", **spec):
    return {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": name}, "spec": spec}


def test_an_object_is_stored_with_version_generation_and_identity(store):
    stored = store.create(make(x=1), NOW)
    assert store.get("Thing", "a") == stored
    assert stored["metadata"]["resourceVersion"] == "1"
    assert stored["metadata"]["generation"] == 1
    assert stored["metadata"]["creationTimestamp"] == NOW
    assert len(stored["metadata"]["uid"]) == 36
    with pytest.raises(ObjectConflictError, match="already exists"):
        store.create(make(), NOW)
    with pytest.raises(ObjectMissingError, match='no Thing "b"'):
        store.get("Thing", "b")


def test_a_write_that_names_another_version_is_refused(store):
    first = store.create(make(x=1), NOW)
    second = store.update({**first, "spec": {"x": 2}})
    assert (second["metadata"]["generation"], second["spec"]) == (2, {"x": 2})
    with pytest.raises(ObjectConflictError, match="at version 2, not 1"):
        store.update({**first, "spec": {"x": 3}})
    with pytest.raises(ObjectConflictError):
        store.delete("Thing", "a", version="1")
    assert store.get("Thing", "a") == second


def test_status_is_written_apart_and_raises_no_generation(store):
    store.create(make(x=1), NOW)
    stored = store.set_status("Thing", "a", lambda old: {"seen": old["spec"]["x"]})
    assert (stored["status"], stored["metadata"]["generation"]) == ({"seen": 1}, 1)
    assert stored["metadata"]["resourceVersion"] == "2"
    assert store.set_status("Thing", "a", lambda old: {"seen": 1})["metadata"]["resourceVersion"] == "2"
    assert store.update({**stored, "spec": {"x": 2}})["status"] == {"seen": 1}


def test_apply_says_what_it_did(store):
    assert store.apply(make(x=1), NOW)[0] == "created"
    assert store.apply(make(x=1), NOW)[0] == "unchanged"
    assert store.apply(make(x=2), NOW)[0] == "configured"
    labelled = {**make(x=2), "metadata": {"name": "a", "labels": {"k": "v"}}}
    assert store.apply(labelled, NOW)[0] == "configured"
    assert store.get("Thing", "a")["metadata"]["generation"] == 2
    assert store.apply(make(x=2), NOW)[0] == "configured"
    assert "labels" not in store.get("Thing", "a")["metadata"]


def test_a_watch_sees_every_write_in_order(store):
    version, objects = store.objects()
    assert (version, objects) == (0, [])
    store.create(make("a"), NOW)
    store.create(make("b"), NOW)
    store.set_status("Thing", "a", lambda old: {"ok": True})
    store.delete("Thing", "b")
    changes = store.changes(version)
    assert [(c.version, c.type, c.name) for c in changes] == [
        (1, "ADDED", "a"), (2, "ADDED", "b"), (3, "MODIFIED", "a"), (4, "DELETED", "b"),
    ]  # fmt: skip
    assert changes[2].object["status"] == {"ok": True}
    assert changes[2].object["metadata"]["resourceVersion"] == "3"
    assert store.changes(3)[0].type == "DELETED"
    assert store.version() == 4


def test_one_may_look_at_some_kinds_only(store):
    for kind in ("B", "A", "C"):
        store.create({**make(), "kind": kind}, NOW)
    version, found = store.objects("C", "A")
    assert [item["kind"] for item in found] == ["A", "C"]
    store.set_status("B", "a", lambda old: {"x": 1})
    store.set_status("C", "a", lambda old: {"x": 1})
    assert [change.kind for change in store.changes(version)] == ["B", "C"]
    assert [change.kind for change in store.changes(version, "C")] == ["C"]


def test_a_watch_from_too_old_a_version_starts_over(store, monkeypatch):
    monkeypatch.setattr(store_module, "CHANGES_KEPT", 5)
    store.create(make(x=0), NOW)
    for x in range(1, 20):
        store.apply(make(x=x), NOW)
    assert len(store.changes(store.version() - 5)) == 5
    with pytest.raises(ChangesExpiredError, match="no longer kept"):
        store.changes(3)
    assert store.objects()[0] == 20


def test_a_transaction_is_all_or_nothing(store):
    def half():
        with store.transaction():
            store.create(make("a"), NOW)
            store.create(make("a"), NOW)

    with pytest.raises(ObjectConflictError):
        half()
    assert store.objects() == (0, [])


def test_two_writers_lose_no_update(tmp_path):
    with ObjectStore(tmp_path / "store.db") as store:
        store.create(make(), NOW)

    def count():
        with ObjectStore(tmp_path / "store.db") as mine:
            for _ in range(50):
                mine.set_status("Thing", "a", lambda old: {"n": old.get("status", {}).get("n", 0) + 1})

    threads = [threading.Thread(target=count) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with ObjectStore(tmp_path / "store.db") as store:
        assert store.get("Thing", "a")["status"] == {"n": 100}


def test_deletion_can_be_asked_for_first(store):
    store.create(make(), NOW)
    marked = store.mark_deleted("Thing", "a", NOW)
    assert marked["metadata"]["deletionTimestamp"] == NOW
    assert store.mark_deleted("Thing", "a", "later") == marked
    with pytest.raises(ObjectConflictError, match="Thing/a is being deleted"):
        store.apply(make(x=1), NOW)
    store.delete("Thing", "a")
    assert store.objects()[1] == []


def test_repeated_events_are_counted_and_old_ones_go(store, monkeypatch):
    monkeypatch.setattr(store_module, "EVENTS_KEPT", 3)
    for time in ("1", "2"):
        store.record("Thing", "a", "Normal", "Started", "process 1", time)
    store.record("Thing", "b", "Normal", "Started", "process 1", "3")
    store.record("Thing", "a", "Warning", "Exited", "x", "4")
    [first, last] = store.events("Thing", "a")
    assert (first.count, first.first, first.last, last.reason) == (2, "1", "2", "Exited")
    for n in range(5):
        store.record("Thing", "c", "Normal", f"R{n}", "", "5")
    assert [event.reason for event in store.events()] == ["R2", "R3", "R4"]


def test_a_store_is_on_disk(tmp_path):
    with ObjectStore(tmp_path / "store.db") as store:
        store.create(make(x=1), NOW)
    with ObjectStore(tmp_path / "store.db") as store:
        assert store.get("Thing", "a")["spec"] == {"x": 1}
    with sqlite3.connect(tmp_path / "store.db") as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    db.close()


def test_a_store_opens_while_another_process_begins_or_ends(tmp_path, monkeypatch):
    """Turning the write-ahead log on may be refused at once, in spite of the time-out; it is tried again."""
    refusals: list[sqlite3.OperationalError] = []

    class Busy(sqlite3.Connection):
        def execute(self, sql, *args):
            if "journal_mode" in sql and len(refusals) < 2:
                error = sqlite3.OperationalError("database is locked")
                error.sqlite_errorcode = sqlite3.SQLITE_BUSY
                refusals.append(error)
                raise error
            return super().execute(sql, *args)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, factory=Busy, **k))
    with ObjectStore(tmp_path / "store.db") as store:
        assert store.objects("Thing")[1] == []
    assert len(refusals) == 2


def test_another_fault_of_the_store_is_not_tried_again(tmp_path):
    (tmp_path / "store.db").write_bytes(b"no database, but long enough to be taken for one" * 40)
    with pytest.raises(sqlite3.DatabaseError, match="not a database"):
        ObjectStore(tmp_path / "store.db")


def limited(store):
    """The store may not grow any more, as on a full disk."""
    ((pages,),) = store._db.execute("PRAGMA page_count").fetchall()
    store._db.execute(f"PRAGMA max_page_count = {pages}")


def test_a_full_disk_changes_nothing_and_the_store_goes_on_when_there_is_space(store):
    store.create(make("kept"), NOW)
    before = store.objects()
    limited(store)
    large = make("large", text="x" * 100_000)
    for _ in range(2):  # a transaction that has failed leaves none open
        with pytest.raises(StateWriteError, match=r"store.db: no space is left on its disk; free space there"):
            store.create(large, NOW)
        assert not store._db.in_transaction

    def change_both():
        with store.transaction():
            store.set_status("Thing", "kept", lambda item: {"x": 1})
            store.create(large, NOW)

    with pytest.raises(StateWriteError):
        change_both()
    assert store.objects() == before
    store._db.execute("PRAGMA max_page_count = 100000")
    store.create(large, NOW)
    assert store.get("Thing", "large")["spec"] == large["spec"]


def test_a_commit_that_fails_is_rolled_back(store):
    store.create(make(), NOW)
    refused: list[str] = []

    class Refusing:
        """A connection whose disk fills up at the commit."""

        def __getattr__(self, name):
            return getattr(real, name)

        def execute(self, statement, *values):
            if statement == "COMMIT" and not refused:
                refused.append(statement)
                error = sqlite3.OperationalError("database or disk is full")
                error.sqlite_errorcode = sqlite3.SQLITE_FULL
                raise error
            return real.execute(statement, *values)

    real, store._db = store._db, Refusing()
    with pytest.raises(StateWriteError):
        store.create(make("b"), NOW)
    assert [item["metadata"]["name"] for item in store.objects()[1]] == ["a"]
    store.create(make("b"), NOW)


def test_a_store_that_cannot_be_opened_is_named(tmp_path):
    with pytest.raises(StateWriteError, match=r"away/store.db: it cannot be opened; check that its folder exists"):
        ObjectStore(tmp_path / "away" / "store.db")


def test_a_process_that_holds_the_lock_is_no_traceback(store, tmp_path, monkeypatch):
    monkeypatch.setattr(store_module, "LOCK_SECONDS", 0.0)
    with (
        ObjectStore(tmp_path / "store.db") as other,
        store.transaction(),
        pytest.raises(StateWriteError, match="another process holds its lock; continue or end that process"),
    ):
        other.create(make(), NOW)


def test_files_beside_a_store_that_may_be_written_again_may_be_written_too(tmp_path):
    path = tmp_path / "store.db"
    with ObjectStore(path) as store:
        store.create(make(), NOW)
        beside = [path.with_name(f"store.db{name}") for name in ("-shm", "-wal")]
        for each in (path, *beside):
            each.chmod(0o400)
        kept = {each: each.read_bytes() for each in beside}
    for each, data in kept.items():  # as a process leaves them that is killed
        each.write_bytes(data)
        each.chmod(0o400)
    path.chmod(0o600)
    with ObjectStore(path) as store:
        assert store.get("Thing", "a")["metadata"]["name"] == "a"
        assert [each.stat().st_mode & 0o777 for each in beside] == [0o600, 0o600]


def test_nothing_is_written_that_json_does_not_have(store):
    store.create(make(), NOW)
    with pytest.raises(UnwritableObjectError, match="cannot be written as JSON"):
        store.set_status("Thing", "a", lambda old: {"load": float("nan")})
    with pytest.raises(UnwritableObjectError):
        store.create(make("b", x=float("inf")), NOW)
    assert [item["metadata"]["name"] for item in store.objects()[1]] == ["a"]
    assert "status" not in store.get("Thing", "a")


def test_a_number_that_an_earlier_version_wrote_is_read_as_none(store):
    store.create(make(), NOW)
    store.set_status("Thing", "a", lambda old: {"load": 7})
    store._execute("UPDATE objects SET object = replace(object, ': 7', ': NaN')")
    assert store.get("Thing", "a")["status"] == {"load": None}
