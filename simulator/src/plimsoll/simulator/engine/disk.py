"""A disk: files whose latest writes are lost, or torn, when the machine stops before they have been synced.

Writes land in pages, and each page is written back by itself, as it is at that moment: of what was not synced a later
write may be safe, and an earlier one, in the same file or in an older one, may not.
"""

from __future__ import annotations

import errno
import random
from collections import defaultdict, deque
from dataclasses import dataclass
from typing import Final, NamedTuple

PAGE_BYTES: Final = 256
"""Smaller than real ones, as the segments of simulated logs are."""

PROGRESS: Final = (0.0, 0.5, 0.95)
"""The share of the pages of a file that have been written back; the others may have been, too."""


@dataclass(frozen=True, slots=True)
class DiskQuality:
    """`sync_seconds`: the range of the time that a sync takes. `bytes`: its size; 0 is no limit."""

    sync_seconds: tuple[float, float] = (0.0005, 0.004)
    bytes: int = 0


class UnsyncedWrite(NamedTuple):
    """A write, or, without data, that a file ends at `start`."""

    number: int
    name: str
    start: int
    data: bytes | None


class SimulatedDisk:
    """The `LogFiles` of one head. Making and removing files is safe at once; what is written is not until `sync`."""

    def __init__(self, rng: random.Random, quality: DiskQuality) -> None:
        self.rng, self.quality = rng, quality
        self.files: dict[str, bytearray] = {}
        self.is_full = False
        self.syncs = self.torn = self.lost = 0
        self.writes = 0
        self._unsynced: deque[UnsyncedWrite] = deque()
        self._safe: dict[str, bytearray] = {}

    # -- LogFiles

    def names(self) -> list[str]:
        return sorted(self.files)

    def size(self, name: str) -> int:
        return len(self.files[name])

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
        self._unsynced.append(UnsyncedWrite(self.writes, name, start, data))

    def note(self, name: str, data: bytes) -> None:
        self.write(name, 0, data)

    def settle(self, name: str) -> None:
        waiting, self._unsynced = self._unsynced, deque()
        for each in waiting:
            if each.name == name:
                self._keep(each)
            else:
                self._unsynced.append(each)

    def erase(self, name: str, start: int, size: int) -> None:
        self.write(name, start, bytes(size))
        self.settle(name)

    def truncate(self, name: str, size: int) -> None:
        del self.files[name][size:]
        self.writes += 1
        self._unsynced.append(UnsyncedWrite(self.writes, name, size, None))

    def remove(self, name: str) -> None:
        del self.files[name], self._safe[name]

    def set_aside(self, name: str) -> None:
        self.remove(name)

    def keep_aside(self, name: str, data: bytes) -> None:
        """A simulation does not read what was set aside."""

    def bound_aside(self, most_bytes: int) -> None:
        """Nothing was set aside."""

    # -- of the machine

    def sync(self, through: int) -> None:
        """The first `through` writes are safe from here on."""
        self.syncs += 1
        while self._unsynced and self._unsynced[0].number <= through:
            self._keep(self._unsynced.popleft())

    def stop(self) -> None:
        """The machine stops: each page with what was not synced has what it had at some moment since it was."""
        pages: defaultdict[tuple[str, int], list[UnsyncedWrite]] = defaultdict(list)
        for each in self._unsynced:
            for page in _pages_of(each):
                pages[each.name, page].append(each)
        kept: defaultdict[int, int] = defaultdict(int)
        progress = {name: self.rng.choice(PROGRESS) for name in sorted({name for name, _ in pages})}
        for (name, page), writes in sorted(pages.items()):
            is_done = self.rng.random() < progress[name]
            for each in writes if is_done else writes[: self.rng.randint(0, len(writes))]:
                self._keep_page(name, page, each)
                kept[each.number] += 1
        for each in self._unsynced:
            self.lost += not kept[each.number]
            self.torn += 0 < kept[each.number] < len(_pages_of(each))
        self._unsynced.clear()
        self.files = {name: bytearray(data) for name, data in self._safe.items()}

    def _keep_page(self, name: str, page: int, each: UnsyncedWrite) -> None:
        if each.data is None:
            self._keep(each)
            return
        low = max(page * PAGE_BYTES, each.start)
        part = each.data[low - each.start : (page + 1) * PAGE_BYTES - each.start]
        self._keep(UnsyncedWrite(each.number, name, low, part))

    def _keep(self, each: UnsyncedWrite) -> None:
        if each.name not in self._safe:
            return
        if each.data is None:
            del self._safe[each.name][each.start :]
        else:
            _put(self._safe[each.name], each.start, each.data)


def _pages_of(write: UnsyncedWrite) -> range:
    """The pages that a write touches; that a file ends is in none of them, and stands for the last."""
    if write.data is None:
        return range(1 << 30, (1 << 30) + 1)
    return range(write.start // PAGE_BYTES, (write.start + len(write.data) - 1) // PAGE_BYTES + 1)


def _put(file: bytearray, start: int, data: bytes) -> None:
    if len(file) < start:
        file.extend(bytes(start - len(file)))
    file[start : start + len(data)] = data
