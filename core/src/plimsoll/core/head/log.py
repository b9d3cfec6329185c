"""The head's log: publications and gaps by position, bounded in bytes; the oldest are evicted first.

An entry is a message as it travels: a publication, or a gap that a neighbour reported. Of evicted entries only the
last offset per origin is remembered, which is what a gap over them must carry.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from plimsoll.core.protocol.origins import Origin, raise_to

ENTRY_OVERHEAD_BYTES = 200
"""Memory of an entry beside its message, at most: its tuple, the header of its bytes, its offset, its place in the list
and the allocator's rounding. `python -m bench.broker.memory` measures it."""

EVICTED_REMEMBERED = 16_384
"""Evicted entries whose offsets are remembered one by one, for gaps that end before the last evicted entry."""


class LogEntry(NamedTuple):
    """One entry. `last` are the offsets that it accounts for: one for a publication, any number for a gap."""

    record: bytes
    last: tuple[tuple[Origin, int], ...]
    is_gap: bool


Kept = LogEntry | tuple[bytes, Origin, int]


class LogGrowth:
    """How fast a log fills: how long a subscriber may be away without a gap."""

    def __init__(self) -> None:
        self._last, self._at = 0, 0.0

    def since_last(self, log: Log, now: float) -> tuple[float, float]:
        """Seconds since the last call, and the bytes per second that entered the log in them."""
        seconds = max(now - self._at, 1e-9)
        rate = (log.last - self._last) / seconds
        self._last, self._at = log.last, now
        return seconds, rate * (log.bytes / len(log) if len(log) else 0.0)


class Log:
    """Positions `first` to `last`, both included; empty when `first > last`.

    Publications are kept as three fields, since a log is as large as what it keeps besides records; `LogEntry` is made
    when one is read. Origins are few, and shared.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.first, self.last, self.bytes = 1, 0, 0
        self.gone: dict[Origin, int] = {}
        self._entries: list[Kept | None] = []
        self._base = 1  # the position of the first in the list; those before `first` are None
        self._evicted: dict[int, tuple[tuple[Origin, int], ...]] = {}
        self._origins: dict[Origin, Origin] = {}

    def __len__(self) -> int:
        return self.last - self.first + 1

    def append(self, entry: LogEntry) -> int:
        """Add an entry and return its position; evicts what no longer fits, but never the new one."""
        if not entry.is_gap and len(entry.last) == 1:
            return self.append_publication(entry.record, *entry.last[0])
        return self._append(entry, len(entry.record))

    def append_publication(self, record: bytes, origin: Origin, offset: int) -> int:
        """Add a publication and return its position. Its record is copied: encoders allocate more than they return."""
        kept = (bytes(memoryview(record)), self._origins.setdefault(origin, origin), offset)
        return self._append(kept, len(record))

    def _append(self, kept: Kept, size: int) -> int:
        self.last += 1
        self._entries.append(kept)
        self.bytes += size + ENTRY_OVERHEAD_BYTES
        while self.bytes > self.limit_bytes and self.first < self.last:
            self._evict()
        return self.last

    def _evict(self) -> None:
        at = self.first - self._base
        entry = _entry(self._entries[at])
        self._entries[at] = None
        self.first += 1
        if at >= 32 and 4 * at > len(self._entries):
            del self._entries[: at + 1]
            self._base = self.first
        self.bytes -= len(entry.record) + ENTRY_OVERHEAD_BYTES
        raise_to(self.gone, entry.last)
        self._evicted[self.first - 1] = entry.last
        if len(self._evicted) > EVICTED_REMEMBERED:
            del self._evicted[next(iter(self._evicted))]

    def lost(self, low: int, high: int) -> dict[Origin, int]:
        """The last offset per origin among evicted positions; among all that are evicted if `high` is the last one.

        Empty if that is no longer known: an offset too high would make the receiver ignore the gap that follows.
        """
        if high >= self.first - 1:
            return dict(self.gone)
        last: dict[Origin, int] = {}
        if low in self._evicted:
            for position in range(low, high + 1):
                raise_to(last, self._evicted[position])
        return last

    def bytes_after(self, position: int) -> int:
        """About how many bytes the entries after a position take, of those that are kept."""
        kept = self.last - max(position, self.first - 1)
        return kept * self.bytes // len(self) if kept > 0 else 0

    def get(self, position: int) -> LogEntry | None:
        """The entry at a position, or None if it has been evicted or is not there yet."""
        if not self.first <= position <= self.last:
            return None
        return _entry(self._entries[position - self._base])

    def after(self, position: int) -> Iterator[tuple[int, LogEntry]]:
        """The entries after a position, oldest first."""
        for at in range(max(position + 1, self.first), self.last + 1):
            yield at, _entry(self._entries[at - self._base])


def _entry(kept: Kept | None) -> LogEntry:
    if kept is None:
        raise RuntimeError("an evicted entry of the log was read")
    if isinstance(kept, LogEntry):
        return kept
    record, origin, offset = kept
    return LogEntry(record, ((origin, offset),), False)
