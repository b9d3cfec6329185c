"""The head's log: what has passed, by position, bounded in bytes; the oldest goes first.

An entry is the record as it travels (a publication, or the gap that a neighbour told of). What has been evicted is
remembered
only as the last offset per origin, which is what a gap needs to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

Origin = tuple[str, int]
"""The head that accepted a publication and its epoch: a space of offsets."""

ENTRY_OVERHEAD_BYTES = 200
"""What an entry costs beside its record: measured with 120-byte records, rounded up."""


EVICTED_REMEMBERED = 16_384
"""So many evicted entries are remembered by their offsets, for gaps that do not reach the end of what is evicted."""


class Entry(NamedTuple):
    """One entry. `last` are the offsets that it accounts for: one for a publication, any number for a gap."""

    record: bytes
    last: tuple[tuple[Origin, int], ...]
    is_gap: bool


class Log:
    """Positions `first` to `last`, both included; empty when `first > last`."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.first, self.last, self.bytes = 1, 0, 0
        self.gone: dict[Origin, int] = {}
        self._entries: dict[int, Entry] = {}
        self._evicted: dict[int, tuple[tuple[Origin, int], ...]] = {}

    def __len__(self) -> int:
        return self.last - self.first + 1

    def append(self, entry: Entry) -> int:
        """Add an entry and return its position; evicts what no longer fits, but never the new one."""
        self.last += 1
        self._entries[self.last] = entry
        self.bytes += len(entry.record) + ENTRY_OVERHEAD_BYTES
        while self.bytes > self.limit_bytes and self.first < self.last:
            self._evict()
        return self.last

    def _evict(self) -> None:
        entry = self._entries.pop(self.first)
        self.first += 1
        self.bytes -= len(entry.record) + ENTRY_OVERHEAD_BYTES
        raise_to(self.gone, entry.last)
        self._evicted[self.first - 1] = entry.last
        if len(self._evicted) > EVICTED_REMEMBERED:
            del self._evicted[next(iter(self._evicted))]

    def lost(self, low: int, high: int) -> dict[Origin, int]:
        """The last offset per origin among evicted positions; among all that are evicted if `high` is the last one.

        Empty if it is not known any more: an offset too many would hide the gap that follows from who is told of it.
        """
        if high >= self.first - 1:
            return dict(self.gone)
        last: dict[Origin, int] = {}
        if low in self._evicted:
            for position in range(low, high + 1):
                raise_to(last, self._evicted[position])
        return last

    def get(self, position: int) -> Entry | None:
        """The entry at a position, or None if it has been evicted or is not there yet."""
        return self._entries.get(position)

    def after(self, position: int) -> Iterator[tuple[int, Entry]]:
        """What is there after a position, oldest first."""
        for at in range(max(position + 1, self.first), self.last + 1):
            yield at, self._entries[at]


def raise_to(last: dict[Origin, int], found: Iterable[tuple[Origin, int]]) -> None:
    """Take the higher offset of each origin: a gap that is logged late may name lower ones than what is before it."""
    for origin, offset in found:
        if offset > last.get(origin, 0):
            last[origin] = offset
