"""A disk: files whose latest writes are lost, or torn, when the machine stops before they have been synced.

Each file is written back by itself: of one the last write may be safe, and of another one, though older, none.
"""

from __future__ import annotations

import errno
import random
from collections import defaultdict, deque
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DiskQuality:
    """`sync_seconds`: the range of the time that a sync takes. `bytes`: its size; 0 is no limit."""

    sync_seconds: tuple[float, float] = (0.0005, 0.004)
    bytes: int = 0


class SimulatedDisk:
    """The `LogFiles` of one head. Making and removing files is safe at once; what is written is not until `sync`."""

    def __init__(self, rng: random.Random, quality: DiskQuality) -> None:
        self.rng, self.quality = rng, quality
        self.files: dict[str, bytearray] = {}
        self.is_full = False
        self.syncs = self.torn = self.lost = 0
        self.writes = 0
        self._unsynced: deque[tuple[int, str, int, bytes]] = deque()
        self._safe: dict[str, bytearray] = {}

    # -- LogFiles

    def names(self) -> list[str]:
        return sorted(self.files)

    def read(self, name: str, start: int, size: int) -> bytes:
        return bytes(self.files[name][start : start + size])

    def create(self, name: str, size: int) -> None:
        used = sum(map(len, self.files.values()))
        if self.is_full or (self.quality.bytes and used + size > self.quality.bytes):
            raise OSError(errno.ENOSPC, "no space is left on the simulated disk")
        self.files[name], self._safe[name] = bytearray(size), bytearray(size)

    def write(self, name: str, start: int, data: bytes) -> None:
        _put(self.files[name], start, data)
        self.writes += 1
        self._unsynced.append((self.writes, name, start, data))

    def settle(self, name: str) -> None:
        waiting, self._unsynced = self._unsynced, deque()
        for each in waiting:
            if each[1] == name:
                self._keep(name, each[2], each[3])
            else:
                self._unsynced.append(each)

    def truncate(self, name: str, size: int) -> None:
        del self.files[name][size:]
        self._safe[name] = bytearray(self.files[name])

    def remove(self, name: str) -> None:
        del self.files[name], self._safe[name]

    # -- of the machine

    def sync(self, through: int) -> None:
        """The first `through` writes are safe from here on."""
        self.syncs += 1
        while self._unsynced and self._unsynced[0][0] <= through:
            _, name, start, data = self._unsynced.popleft()
            self._keep(name, start, data)

    def stop(self) -> None:
        """The machine stops: of each file some of what was not synced is lost, and the first of that may be torn."""
        by_file: defaultdict[str, list[tuple[int, bytes]]] = defaultdict(list)
        for _, name, start, data in self._unsynced:
            by_file[name].append((start, data))
        self._unsynced.clear()
        for name, writes in sorted(by_file.items()):
            kept = self.rng.randint(0, len(writes))
            for start, data in writes[:kept]:
                self._keep(name, start, data)
            if writes[kept:]:
                start, data = writes[kept]
                part = data[: self.rng.randint(0, len(data))]
                self.torn += 0 < len(part) < len(data)
                self._keep(name, start, part)
            self.lost += len(writes) - kept
        self.files = {name: bytearray(data) for name, data in self._safe.items()}

    def _keep(self, name: str, start: int, data: bytes) -> None:
        if name in self._safe:
            _put(self._safe[name], start, data)


def _put(file: bytearray, start: int, data: bytes) -> None:
    if len(file) < start:
        file.extend(bytes(start - len(file)))
    file[start : start + len(data)] = data
