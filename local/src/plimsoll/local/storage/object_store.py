"""The embedded store: objects with resource versions, compare-and-set, and a log of changes to watch.

It behaves as an API server does where the two can be compared: every write raises one counter, which becomes the
object's `resourceVersion`; a write that names another version than the stored one is refused; `generation` counts
changes of `spec` only; status is written separately; a watch starts at a version, and starts over when that is too old.
Several processes may have it open. Times are RFC 3339 text, given by the caller. Any method may raise
`StateWriteError`, those that read too, as SQLite writes beside them; then nothing has changed.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from plimsoll.core.printable import printable_lines
from plimsoll.local.storage.state_files import store_faults

Object = dict[str, Any]
CHANGES_KEPT = 2000
EVENTS_KEPT = 1000

_SCHEMA = """
CREATE TABLE IF NOT EXISTS objects (
    kind TEXT NOT NULL, name TEXT NOT NULL, object TEXT NOT NULL, PRIMARY KEY (kind, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS changes (
    version INTEGER PRIMARY KEY AUTOINCREMENT,
    type TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, object TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS events (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    type TEXT NOT NULL, reason TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL,
    message TEXT NOT NULL, first TEXT NOT NULL, last TEXT NOT NULL, count INTEGER NOT NULL
);
"""


class ObjectConflictError(RuntimeError):
    """The object was changed in between, or exists already; read it again."""


class ObjectMissingError(LookupError):
    """There is no such object."""


class UnwritableObjectError(ValueError):
    """A value that JSON does not have, such as NaN; nothing of the object was written."""


class ChangesExpiredError(RuntimeError):
    """The changes since that version are no longer kept; list again."""


@dataclass(frozen=True)
class ObjectChange:
    """One write: the object as it was afterwards, or as it was last."""

    version: int
    type: Literal["ADDED", "MODIFIED", "DELETED"]
    kind: str
    name: str
    object: Object


@dataclass(frozen=True)
class ObjectEvent:
    """An event about an object; repeats are counted, not stored again."""

    id: int
    type: str
    reason: str
    kind: str
    name: str
    message: str
    first: str
    last: str
    count: int


LOCK_SECONDS = 10.0
"""How long to wait for a lock of another process."""


def _restore_rights(path: Path) -> None:
    """Let the files beside a store be written if it may be: SQLite makes them with the rights of the store then."""
    for name in (f"{path.name}-shm", f"{path.name}-wal"):
        beside = path.with_name(name)
        with contextlib.suppress(OSError):  # of another user, or not there; SQLite says what it cannot open
            rights = path.stat().st_mode & 0o600
            if rights & 0o200 and not beside.stat().st_mode & 0o200:
                beside.chmod(rights)


class ObjectStore:
    """One fleet's objects. Use it in a `with` block, on one thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with store_faults(path):
            _restore_rights(path)
            self._db = sqlite3.connect(path, isolation_level=None, timeout=LOCK_SECONDS)
            try:
                self._enable_wal()
                self._db.execute("PRAGMA synchronous=NORMAL")
                self._db.executescript(_SCHEMA)
            except BaseException:
                self._db.close()
                raise

    def _enable_wal(self) -> None:
        """Turn on write-ahead logging. SQLite does not wait while another process switches modes, so this retries."""
        deadline = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                self._db.execute("PRAGMA journal_mode=WAL")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
            else:
                return

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._db.close()

    @contextlib.contextmanager
    def transaction(self, begin: Literal["IMMEDIATE", "DEFERRED"] = "IMMEDIATE") -> Iterator[None]:
        """A transaction: its writes become visible all at once or not at all; DEFERRED: consistent reads."""
        if self._db.in_transaction:
            yield
            return
        self._execute(f"BEGIN {begin}")
        try:
            yield
            self._execute("COMMIT")
        except BaseException:
            self._roll_back()
            raise

    def _roll_back(self) -> None:
        if self._db.in_transaction:  # after some faults SQLite has rolled back by itself
            self._execute("ROLLBACK")

    def _execute(self, statement: str, values: Sequence[object] = ()) -> list[Any]:
        """The rows of a statement; each is a tuple."""
        with store_faults(self._path):
            return self._db.execute(statement, values).fetchall()

    # -- reading

    def get(self, kind: str, name: str) -> Object:
        """One object; raises `ObjectMissingError`."""
        rows = self._execute("SELECT object FROM objects WHERE kind = ? AND name = ?", (kind, name))
        if not rows:
            raise ObjectMissingError(f'there is no {kind} "{name}"')
        return _decoded_object(rows[0][0])

    def objects(self, *kinds: str) -> tuple[int, list[Object]]:
        """All objects (of these kinds), by kind and name, and the version at which to start a watch."""
        some = f"WHERE kind IN ({', '.join('?' * len(kinds))})" if kinds else ""
        with self.transaction("DEFERRED"):
            rows = self._execute(f"SELECT object FROM objects {some} ORDER BY kind, name", kinds)  # noqa: S608  # only question marks are put in
            return self.version(), [_decoded_object(text) for (text,) in rows]

    def version(self) -> int:
        """The version of the last write."""
        rows = self._execute("SELECT seq FROM sqlite_sequence WHERE name = 'changes'")
        return int(rows[0][0]) if rows else 0

    def changes(self, since: int, kind: str | None = None) -> list[ObjectChange]:
        """Every write (to a kind) after a version; raises `ChangesExpiredError` when some are no longer kept."""
        ((oldest,),) = self._execute("SELECT min(version) FROM changes")
        if oldest is not None and since + 1 < oldest:
            raise ChangesExpiredError(f"changes since version {since} are no longer kept; the oldest is {oldest}")
        query = "SELECT * FROM changes WHERE version > ? AND (? IS NULL OR kind = ?) ORDER BY version"
        rows = self._execute(query, (since, kind, kind))
        return [ObjectChange(version, how, of, name, _decoded_object(text)) for version, how, of, name, text in rows]

    # -- writing

    def create(self, new: Mapping[str, Any], now: str) -> Object:
        """Store a new object; raises `ObjectConflictError` if it exists."""
        kind, name = new["kind"], new["metadata"]["name"]
        with self.transaction():
            if self._execute("SELECT 1 FROM objects WHERE kind = ? AND name = ?", (kind, name)):
                raise ObjectConflictError(f"{kind}/{name} already exists")
            metadata = {**new["metadata"], "uid": str(uuid.uuid4()), "generation": 1, "creationTimestamp": now}
            return self._write("ADDED", {**new, "metadata": metadata})

    def update(self, new: Mapping[str, Any]) -> Object:
        """Replace labels, annotations and spec; raises `ObjectConflictError` if `resourceVersion` is not the latest."""
        kind, name = new["kind"], new["metadata"]["name"]
        with self.transaction():
            old = self.get(kind, name)
            given, stored = new["metadata"].get("resourceVersion"), old["metadata"]["resourceVersion"]
            if given != stored:
                raise ObjectConflictError(f"{kind}/{name} is at version {stored}, not {given}: read it again")
            return self._replace(old, new)

    def apply(self, new: Mapping[str, Any], now: str) -> tuple[str, Object]:
        """Create or replace, without comparing versions; returns `created`, `configured` or `unchanged`.

        Raises `ObjectConflictError` for an object that is being deleted.
        """
        with self.transaction():
            try:
                old = self.get(new["kind"], new["metadata"]["name"])
            except ObjectMissingError:
                return "created", self.create(new, now)
            if "deletionTimestamp" in old["metadata"]:
                name = f"{old['kind']}/{old['metadata']['name']}"
                raise ObjectConflictError(f"{name} is being deleted: apply it again when it has gone")
            stored = self._replace(old, new)
            return ("unchanged" if stored is old else "configured"), stored

    def set_status(self, kind: str, name: str, change: Callable[[Object], Mapping[str, Any]]) -> Object:
        """Replace the status by the result of `change` for the object; an equal status is not written.

        Raises:
            UnwritableObjectError: JSON does not have it.

        """
        with self.transaction():
            old = self.get(kind, name)
            status = json.loads(_encoded(change(old)))
            return old if old.get("status") == status else self._write("MODIFIED", {**old, "status": status})

    def delete(self, kind: str, name: str, version: str | None = None) -> Object:
        """Delete an object; raises `ObjectMissingError`, or `ObjectConflictError` if `version` is stale."""
        with self.transaction():
            old = self.get(kind, name)
            if version is not None and old["metadata"]["resourceVersion"] != version:
                raise ObjectConflictError(
                    f"{kind}/{name} is at version {old['metadata']['resourceVersion']}, not {version}"
                )
            self._execute("DELETE FROM objects WHERE kind = ? AND name = ?", (kind, name))
            self._append_change("DELETED", kind, name, old)
            return old

    def mark_deleted(self, kind: str, name: str, now: str) -> Object:
        """Request an object's deletion: the supervisor deletes it once its brokers have left."""
        with self.transaction():
            old = self.get(kind, name)
            if "deletionTimestamp" in old["metadata"]:
                return old
            return self._write("MODIFIED", {**old, "metadata": {**old["metadata"], "deletionTimestamp": now}})

    def _replace(self, old: Object, new: Mapping[str, Any]) -> Object:
        ours = {key: value for key, value in new["metadata"].items() if key in ("labels", "annotations", "namespace")}
        kept = {
            key: value for key, value in old["metadata"].items() if key not in ("labels", "annotations", "namespace")
        }
        owners = new["metadata"].get("ownerReferences")
        if owners is not None:
            kept["ownerReferences"] = owners
        metadata = {**kept, **ours}
        if new.get("spec") != old.get("spec"):
            metadata["generation"] = old["metadata"]["generation"] + 1
        elif metadata == old["metadata"]:
            return old
        changed = {**old, "metadata": metadata, "spec": new.get("spec", {})}
        return self._write("MODIFIED", changed)

    def _write(self, change: str, new: Object) -> Object:
        kind, name = new["kind"], new["metadata"]["name"]
        version = self._append_change(change, kind, name, new)
        stored = {**new, "metadata": {**new["metadata"], "resourceVersion": str(version)}}
        text = _encoded(stored)
        self._execute("UPDATE changes SET object = ? WHERE version = ?", (text, version))
        self._execute("INSERT OR REPLACE INTO objects VALUES (?, ?, ?)", (kind, name, text))
        return stored

    def _append_change(self, change: str, kind: str, name: str, new: Object) -> int:
        row = (change, kind, name, _encoded(new))
        self._execute("INSERT INTO changes (type, kind, name, object) VALUES (?, ?, ?, ?)", row)
        ((version,),) = self._execute("SELECT last_insert_rowid()")
        self._execute("DELETE FROM changes WHERE version <= ?", (version - CHANGES_KEPT,))
        return int(version)

    # -- events

    def record(self, kind: str, name: str, type_: str, reason: str, message: str, now: str) -> None:
        """Record an event; a repeat of an object's last event raises its count."""
        message = printable_lines(message)
        with self.transaction():
            last = self._execute(
                "SELECT id, type, reason, message FROM events WHERE kind = ? AND name = ? ORDER BY id DESC LIMIT 1",
                (kind, name),
            )
            if last and tuple(last[0][1:]) == (type_, reason, message):
                self._execute("UPDATE events SET last = ?, count = count + 1 WHERE id = ?", (now, last[0][0]))
                return
            row = (type_, reason, kind, name, message, now, now)
            sql = "INSERT INTO events (type, reason, kind, name, message, first, last, count) VALUES (?,?,?,?,?,?,?,1)"
            self._execute(sql, row)
            self._execute("DELETE FROM events WHERE id <= (SELECT max(id) FROM events) - ?", (EVENTS_KEPT,))

    def events(self, kind: str | None = None, name: str | None = None) -> list[ObjectEvent]:
        """Events (of an object), oldest first."""
        rows = self._execute(
            "SELECT * FROM events WHERE (? IS NULL OR kind = ?) AND (? IS NULL OR name = ?) ORDER BY id",
            (kind, kind, name, name),
        )
        return [ObjectEvent(*row) for row in rows]


def check_writable(value: Mapping[str, Any]) -> None:
    """Refuse what a store cannot write.

    Raises:
        UnwritableObjectError: JSON does not have it.

    """
    _encoded(value)


def _encoded(value: Mapping[str, Any]) -> str:
    """As JSON, which has neither NaN nor infinity: other programs, and API servers, would not read them."""
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UnwritableObjectError(f"it cannot be written as JSON: {error}") from error


def _decoded_object(text: str) -> Object:
    value: Object = json.loads(text, parse_constant=_no_number)
    return value


def _no_number(_: str) -> None:
    """For NaN and infinity, which earlier versions wrote: an object that has them is read, and can be written again."""
