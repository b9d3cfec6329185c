"""The files of a log in one folder: made with their room, written in place, synced by the thread that holds the folder.

Every new name is synced with its folder before it is used. One process at a time may have a folder open.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

LOCK: Final = "lock"


class LogFolderError(OSError):
    """The folder of a log cannot be used; says why and what to do."""


class LogFolder:
    """`LogFiles` in a folder. `sync`, `size` and `read` may run in other threads; everything else belongs to one."""

    def __init__(self, path: Path) -> None:
        """Open the folder, making it if need be.

        Raises:
            LogFolderError: it cannot be made or written, or another process has it open.

        """
        self.path = path
        self._open: dict[str, int] = {}
        self._dirty: set[str] = set()
        self._guard = threading.Lock()
        with _told(path, "make it, or name another one as the folder of this head's log"):
            path.mkdir(parents=True, exist_ok=True)
            self._folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            self._lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.close()
            raise LogFolderError(error.errno, "another head has this log open; stop it first", str(path)) from error

    def close(self) -> None:
        for fd in (*self._open.values(), self._folder, self._lock):
            os.close(fd)
        self._open.clear()

    # -- LogFiles

    def names(self) -> list[str]:
        return sorted(each.name for each in self.path.iterdir() if each.name != LOCK)

    def size(self, name: str) -> int:
        return (self.path / name).stat().st_size

    def read(self, name: str, start: int, size: int) -> bytes:
        with (self.path / name).open("rb", buffering=0) as file:
            file.seek(start)
            wanted = min(size, os.fstat(file.fileno()).st_size - start)
            parts = []
            while wanted > 0 and (part := file.read(wanted)):
                parts.append(part)
                wanted -= len(part)
        return b"".join(parts)

    def create(self, name: str, size: int) -> None:
        fd = os.open(self.path / name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.posix_fallocate(fd, 0, size)
            os.fsync(fd)
            os.fsync(self._folder)
        except OSError:
            os.close(fd)
            (self.path / name).unlink(missing_ok=True)
            raise
        self._open[name] = fd

    def write(self, name: str, start: int, data: bytes) -> None:
        fd = self._descriptor(name)
        view, at = memoryview(data), start
        while view:
            written = os.pwrite(fd, view, at)
            view, at = view[written:], at + written
        with self._guard:
            self._dirty.add(name)

    def _descriptor(self, name: str) -> int:
        """Of a file, which an earlier process may have made."""
        fd = self._open.get(name)
        if fd is None:
            fd = self._open[name] = os.open(self.path / name, os.O_RDWR)
        return fd

    def settle(self, name: str) -> None:
        os.fdatasync(self._descriptor(name))

    def erase(self, name: str, start: int, size: int) -> None:
        self.write(name, start, bytes(size))
        self.settle(name)

    def truncate(self, name: str, size: int) -> None:
        os.ftruncate(self._descriptor(name), size)

    def remove(self, name: str) -> None:
        with self._guard:
            self._dirty.discard(name)
            if (fd := self._open.pop(name, None)) is not None:
                os.close(fd)
        (self.path / name).unlink()

    # -- syncs

    def sync(self) -> None:
        """Make all that has been written safe; may run beside writes, which it may or may not take along.

        Raises:
            OSError: the disk has refused; what was written since the last sync may be lost, and is not to be trusted.

        """
        with self._guard:
            dirty, self._dirty = self._dirty, set()
            # A copy of each descriptor: the file may be removed meanwhile.
            copies = [os.dup(self._open[name]) for name in sorted(dirty)]
        try:
            for fd in copies:
                os.fdatasync(fd)
        finally:
            for fd in copies:
                os.close(fd)


@contextmanager
def _told(path: Path, remedy: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = error.strerror or errno.errorcode.get(error.errno or 0, "unknown")
        raise LogFolderError(error.errno, f"{why}; {remedy}", str(path)) from error
