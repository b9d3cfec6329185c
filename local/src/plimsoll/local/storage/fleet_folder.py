"""Where the state of local fleets lives: one folder per fleet below `$PLIMSOLL_HOME`, or else below `~/.plimsoll`.

A folder is readable by its user only. The process that holds the lock runs the fleet; the system releases the lock when
that process ends, however it ends, so a lock is never stale.
"""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from plimsoll.local.storage.state_files import file_faults, make_private_folder


class FleetBusyError(RuntimeError):
    """Another process runs this fleet."""


def plimsoll_home() -> Path:
    """The folder of all fleets."""
    return Path(os.environ.get("PLIMSOLL_HOME") or "~/.plimsoll").expanduser()


@dataclass(frozen=True)
class FleetFolder:
    """The paths of one fleet's state."""

    path: Path

    @classmethod
    def of(cls, fleet: str) -> FleetFolder:
        """The folder of a fleet, which need not exist."""
        return cls(plimsoll_home() / fleet)

    @property
    def fleet(self) -> str:
        return self.path.name

    @property
    def store(self) -> Path:
        return self.path / "store.db"

    @property
    def keys(self) -> Path:
        return self.path / "keys"

    @property
    def authorized_keys(self) -> Path:
        return self.keys / "authorized_keys"

    @property
    def feed_readers(self) -> Path:
        return self.keys / "feed_readers"

    def config(self, broker: str) -> Path:
        return self.path / "configs" / f"{broker}.json"

    def log(self, broker: str) -> Path:
        return self.path / "logs" / f"{broker}.log"

    def head_log(self, broker: str) -> Path:
        """Where a head keeps its log, if its cluster asks for a disk; it stays when the fleet stops."""
        return self.path / "head-logs" / broker

    def second(self, head: str) -> str:
        """What the files of the second process of a head with a standby are called."""
        return f"{head}.1"

    def exists(self) -> bool:
        """Whether this fleet was ever started here."""
        return self.store.exists()

    def make(self) -> None:
        """Make the folders, readable by their user alone. Raises `StateWriteError`."""
        for folder in (self.path, self.keys, self.path / "configs", self.path / "logs"):
            make_private_folder(folder)

    @property
    def lock(self) -> Path:
        return self.path / "lock"

    def mark_written(self) -> None:
        """Note that what the supervisor sees is in the store now: it calls this each second.

        Raises:
            StateWriteError: the lock file cannot be touched.

        """
        with file_faults(self.lock):
            os.utime(self.lock)

    def written_at(self) -> float | None:
        """When the supervisor last wrote, in seconds since 1970; None if none ever ran here."""
        try:
            return self.lock.stat().st_mtime
        except FileNotFoundError:
            return None

    def running_pid(self) -> int | None:
        """The process that runs the fleet now."""
        try:
            descriptor = os.open(self.lock, os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return int(os.pread(descriptor, 32, 0) or 0)
        else:
            return None
        finally:
            os.close(descriptor)


def fleet_folders() -> list[FleetFolder]:
    """Every fleet that has state here, by name."""
    if not plimsoll_home().is_dir():
        return []
    folders = (FleetFolder(path) for path in sorted(plimsoll_home().iterdir()) if path.is_dir())
    return [folder for folder in folders if folder.exists()]


class FleetLock:
    """Held while a fleet runs; names the process that runs it. Raises `FleetBusyError`, `StateWriteError`."""

    def __init__(self, folder: FleetFolder) -> None:
        self._folder = folder
        self._descriptor = -1

    def __enter__(self) -> Self:
        with file_faults(self._folder.lock):
            descriptor = os.open(self._folder.lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 32, 0).decode() or "unknown"
            os.close(descriptor)
            raise FleetBusyError(
                f"fleet {self._folder.fleet} is already running (process {holder}): "
                f"change it with `plimsoll apply`, or stop it with `plimsoll down {self._folder.fleet}`"
            ) from None
        try:
            with file_faults(self._folder.lock):
                pid = str(os.getpid()).encode()
                os.pwrite(descriptor, pid, 0)
                os.ftruncate(descriptor, len(pid))
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)
