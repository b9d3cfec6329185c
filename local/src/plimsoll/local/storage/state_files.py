"""The one place that writes and removes files of a fleet's folder, and the error for state that cannot be written.

A file appears whole or not at all. Every write that fails, of a file here or of the store, raises `StateWriteError`:
commands end with it, and the processes of a running fleet keep what they have and try again.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

NEARLY_FULL_BYTES = 64 * 1024
"""SQLite reports some writes to a full disk as an error of the disk; with less space than this they count as such."""

_FREE_SPACE = "free space there"
_CHECK_DISK = "free space there, and check the disk for errors"
_KNOWN_FAULTS = {
    errno.ENOSPC: ("no space is left on its disk", _FREE_SPACE),
    errno.EDQUOT: ("the disk quota of this user is used up", "free space there, or raise the quota"),
    errno.EFBIG: ("it would exceed the limit on the size of files", "raise that limit (`ulimit -f`)"),
    errno.EROFS: ("its disk is mounted read-only", "mount it writable"),
    errno.EACCES: ("this user may not write it", "change its owner or its rights"),
    errno.EPERM: ("this user may not write it", "change its owner or its rights"),
    errno.EIO: ("the disk reports an error", _CHECK_DISK),
}
_STORE_FAULTS = {
    sqlite3.SQLITE_FULL: _KNOWN_FAULTS[errno.ENOSPC],
    sqlite3.SQLITE_IOERR: _KNOWN_FAULTS[errno.EIO],
    sqlite3.SQLITE_READONLY: _KNOWN_FAULTS[errno.EACCES],
    sqlite3.SQLITE_PERM: _KNOWN_FAULTS[errno.EACCES],
    sqlite3.SQLITE_CANTOPEN: ("it cannot be opened", "check that its folder exists, is writable and has space"),
    sqlite3.SQLITE_BUSY: (
        "another process holds its lock",
        "continue or end that process (`plimsoll get bf -o wide` shows the supervisor)",
    ),
}


class StateWriteError(RuntimeError):
    """State of a fleet could not be written, and is as it was before. The message names the file and the remedy."""

    def __init__(self, path: Path, reason: str, remedy: str) -> None:
        super().__init__(f"cannot write {path}: {reason}; {remedy}")
        self.path = path


def is_write_fault(error: OSError) -> bool:
    """Whether a file could not be written for a reason that lies with its disk or its rights."""
    return error.errno in _KNOWN_FAULTS


@contextlib.contextmanager
def file_faults(path: Path) -> Iterator[None]:
    """Turn an OSError of the block, which writes `path`, into a `StateWriteError`."""
    try:
        yield
    except OSError as error:
        reason, remedy = _KNOWN_FAULTS.get(error.errno or 0, (str(error.strerror or error), "check that path"))
        raise StateWriteError(path, reason, remedy) from error


@contextlib.contextmanager
def store_faults(path: Path) -> Iterator[None]:
    """Turn an error of SQLite that concerns the file into a `StateWriteError`; errors of statements pass."""
    try:
        yield
    except sqlite3.OperationalError as error:
        code = error.sqlite_errorcode & 0xFF
        if code not in _STORE_FAULTS:
            raise
        known = _STORE_FAULTS[sqlite3.SQLITE_FULL if code == sqlite3.SQLITE_IOERR and _is_full(path) else code]
        raise StateWriteError(path, *known) from error


def write_private(path: Path, text: str) -> None:
    """Replace a file atomically; only its owner may read it. A file that holds this text already is left alone.

    Raises:
        StateWriteError: the file is as it was before.

    """
    data = text.encode()
    with file_faults(path):
        if _holds(path, data):
            return
        partial = path.with_name(path.name + ".new")
        try:
            _write_new(partial, data)
            partial.replace(path)
        except OSError:
            with contextlib.suppress(OSError):  # the same fault again; the first one is raised
                partial.unlink(missing_ok=True)
            raise


def remove(path: Path) -> None:
    """Remove a file, if it is there; raises `StateWriteError`."""
    with file_faults(path):
        path.unlink(missing_ok=True)


def make_private_folder(path: Path) -> None:
    """Make a folder that only its owner may read, unless it is there; raises `StateWriteError`."""
    with file_faults(path):
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(0o700)


def _write_new(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _holds(path: Path, data: bytes) -> bool:
    try:
        return path.stat().st_mode & 0o777 == 0o600 and path.read_bytes() == data
    except FileNotFoundError:
        return False


def _is_full(path: Path) -> bool:
    try:
        found = os.statvfs(path.parent)
    except OSError:  # the folder has gone; the first error says more
        return False
    return found.f_bavail * found.f_frsize < NEARLY_FULL_BYTES
