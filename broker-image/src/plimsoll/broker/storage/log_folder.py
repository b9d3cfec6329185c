"""The files of a log in one folder: made with their room, written in place, synced by threads beside the writes.

Every new name is synced with its folder before it is used. One process at a time may have a folder open.

Syncs may overlap. Each thread has a descriptor of its own for each file, opened before the first write. Linux reports a
failed write once to each open file description (`errseq_t`), so a sync in one thread does not hide the error from the
others.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)

LOCK: Final = "lock"
DAMAGED: Final = "damaged"
"""The folder, inside that of the log, where damaged segments are kept and those that were given up with them."""

SYNCS_AT_ONCE: Final = 4
"""With as many going on, the next sync waits until one of them ends: about a fourth of the time that one takes."""


class LogFolderError(OSError):
    """The folder of a log cannot be used; says why and what to do."""


class _OpenFile:
    """The descriptors of a file: one to write, and one for each thread that syncs. `writes`: how many there were.

    A file that is removed while threads sync it is closed by the last of them.
    """

    def __init__(self, fd: int, path: Path) -> None:
        """Take a descriptor, which is closed if the others cannot be opened."""
        self.fd = fd
        self.by_thread: list[int] = []
        self.writes = self.syncs = 0
        self.is_removed = False
        try:
            for _ in range(SYNCS_AT_ONCE):
                self.by_thread.append(os.open(path, os.O_RDWR))
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        for fd in (self.fd, *self.by_thread):
            os.close(fd)


class LogFolder:
    """`LogFiles` in a folder. `sync`, `size` and `read` may run in other threads; everything else belongs to one."""

    def __init__(self, path: Path) -> None:
        """Open the folder, making it if need be.

        Raises:
            LogFolderError: it cannot be made or written, or another process has it open.

        """
        self.path = path
        self._open: dict[str, _OpenFile] = {}
        self._dirty: dict[str, _OpenFile] = {}  # of which no sync that began behind the last write has ended
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
        for each in self._open.values():
            each.close()
        self._open.clear()
        self._dirty.clear()
        for fd in (self._folder, self._lock):
            os.close(fd)

    # -- LogFiles

    def names(self) -> list[str]:
        return sorted(each.name for each in self.path.iterdir() if each.name not in (LOCK, DAMAGED))

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
        path = self.path / name
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            file = _OpenFile(fd, path)
        except OSError:
            path.unlink()
            raise
        try:
            os.posix_fallocate(fd, 0, size)
            os.fsync(fd)
            os.fsync(self._folder)
        except OSError:
            file.close()
            path.unlink(missing_ok=True)
            raise
        self._close_settled()
        self._open[name] = file

    def _close_settled(self) -> None:
        """Close what is safe: a log writes to its newest file, and the few writes to others open them again."""
        with self._guard:
            for name in [each for each, file in self._open.items() if each not in self._dirty and not file.syncs]:
                self._open.pop(name).close()

    def write(self, name: str, start: int, data: bytes) -> None:
        file = self._file(name)
        view, at = memoryview(data), start
        while view:
            written = os.pwrite(file.fd, view, at)
            view, at = view[written:], at + written
        with self._guard:
            file.writes += 1
            self._dirty[name] = file

    def note(self, name: str, data: bytes) -> None:
        os.pwrite(self._file(name).fd, data, 0)

    def _file(self, name: str) -> _OpenFile:
        """One that an earlier process may have made."""
        file = self._open.get(name)
        if file is None:
            path = self.path / name
            file = self._open[name] = _OpenFile(os.open(path, os.O_RDWR), path)
        return file

    def settle(self, name: str) -> None:
        os.fdatasync(self._file(name).fd)
        with self._guard:
            self._dirty.pop(name, None)

    def erase(self, name: str, start: int, size: int) -> None:
        self.write(name, start, bytes(size))
        self.settle(name)

    def truncate(self, name: str, size: int) -> None:
        os.ftruncate(self._file(name).fd, size)

    def remove(self, name: str) -> None:
        self._forget(name)
        (self.path / name).unlink()

    def _forget(self, name: str) -> None:
        with self._guard:
            self._dirty.pop(name, None)
            file = self._open.pop(name, None)
            if file is not None:
                file.is_removed = True
                if not file.syncs:
                    file.close()

    def set_aside(self, name: str) -> None:
        (self.path / DAMAGED).mkdir(exist_ok=True)
        self._forget(name)
        (self.path / name).rename(self._aside(name))

    def keep_aside(self, name: str, data: bytes) -> None:
        try:
            (self.path / DAMAGED).mkdir(exist_ok=True)
            self._aside(f"{name}.end").write_bytes(data)
        except OSError as error:
            log.warning("the damaged end of %s could not be kept in %s: %s", name, self.path / DAMAGED, error)

    def _aside(self, name: str) -> Path:
        """A path that no earlier damage has."""
        folder = self.path / DAMAGED
        number = 1 + max((int(each.name.split("-")[0]) for each in self._kept_aside()), default=0)
        return folder / f"{number:06d}-{name}"

    def _kept_aside(self) -> list[Path]:
        """What was set aside, oldest first; other files that someone has put there are let be."""
        folder = self.path / DAMAGED
        return sorted(each for each in folder.glob("[0-9][0-9][0-9][0-9][0-9][0-9]-*")) if folder.is_dir() else []

    def bound_aside(self, most_bytes: int) -> None:
        for each in reversed(self._kept_aside()):
            most_bytes -= each.stat().st_size
            if most_bytes < 0:
                log.warning("removing %s, as the log needs its room", each)
                each.unlink()

    # -- syncs

    def sync(self, thread: int = 0) -> None:
        """Make all that has been written safe; may run beside writes, which it may or may not take along.

        `thread`: which one this is, below `SYNCS_AT_ONCE`. What another one is just syncing is synced here as well, so
        it does not matter which of them ends first.

        Raises:
            OSError: the disk has refused; what was written since the last sync may be lost, and is not to be trusted.

        """
        taken, is_safe = self._take(), False
        try:
            for _, file, _ in taken:
                os.fdatasync(file.by_thread[thread])
            is_safe = True
        finally:
            self._give_back(taken, is_safe=is_safe)

    def _take(self) -> list[tuple[str, _OpenFile, int]]:
        """The files to sync, with how many writes they have had."""
        with self._guard:
            for file in self._dirty.values():
                file.syncs += 1
            return [(name, file, file.writes) for name, file in self._dirty.items()]

    def _give_back(self, taken: list[tuple[str, _OpenFile, int]], *, is_safe: bool) -> None:
        with self._guard:
            for name, file, writes in taken:
                file.syncs -= 1
                if file.is_removed and not file.syncs:
                    file.close()
                elif is_safe and file.writes == writes and not file.is_removed:
                    self._dirty.pop(name, None)


@contextmanager
def _told(path: Path, remedy: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = error.strerror or errno.errorcode.get(error.errno or 0, "unknown")
        raise LogFolderError(error.errno, f"{why}; {remedy}", str(path)) from error
