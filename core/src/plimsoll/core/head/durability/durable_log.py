"""The log of a head that is on a disk as well: what no longer fits into memory is read back from there.

`first` is the oldest position that the disk keeps. Reading is bounded: a slice at a time, as readers ask for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

from plimsoll.core.head.durability.records import Logged
from plimsoll.core.head.durability.store import UnreadableLogError
from plimsoll.core.head.log import ENTRY_OVERHEAD_BYTES, Kept, Log, LogEntry
from plimsoll.core.protocol.origins import Origin

READ_BYTES: Final = 64 * 1024


class LogArchive(Protocol):
    """Where older entries are: a `LogStore`."""

    def read(self, position: int, most_bytes: int) -> list[tuple[int, LogEntry]]: ...
    def records(self, position: int, most_bytes: int) -> list[tuple[int, Logged]]: ...
    def bytes_after(self, position: int) -> int: ...


class DurableLog(Log):
    """Positions `first` to `last`, of which those before `memory_first` are read from the archive.

    `written`: the last position that the archive can read. `unreadable`: positions given up because of damage.
    """

    def __init__(
        self, limit_bytes: int, archive: LogArchive, *, first: int, last: int, gone: dict[Origin, int]
    ) -> None:
        super().__init__(limit_bytes)
        self.archive = archive
        self.first, self.last, self.written = first, last, last
        self.memory_first = self._base = last + 1
        self.gone = dict(gone)
        self.unreadable = 0
        self._slice: dict[int, LogEntry] = {}

    @classmethod
    def of(cls, log: Log, limit_bytes: int, archive: LogArchive) -> DurableLog:
        """A log in memory, with an archive that has nothing of it yet. Do not use `log` afterwards."""
        made = cls(limit_bytes, archive, first=log.first, last=log.last, gone=log.gone)
        made.written, made.memory_first, made.bytes = log.first - 1, log.first, log.bytes
        made._entries, made._base, made._origins = log._entries, log._base, log._origins
        return made

    def removed(self, first: int, gone: dict[Origin, int]) -> None:
        """The archive keeps nothing before this position any more. `gone`: the last offsets of what it had."""
        if first > self.first:
            self.first, self.gone = first, dict(gone)
            self._slice.clear()

    def _append(self, kept: Kept, size: int) -> int:
        self.last += 1
        self._entries.append(kept)
        self.bytes += size + ENTRY_OVERHEAD_BYTES
        self._fit()
        return self.last

    def wrote(self, position: int) -> None:
        """The archive can read up to this position: a round that logged more than the memory takes is let go now."""
        self.written = position
        self._fit()

    def _fit(self) -> None:
        while self.bytes > self.limit_bytes and self.memory_first < self.written:
            self._let_go()

    def _let_go(self) -> None:
        """Forget the oldest entry in memory: the archive has it."""
        at = self.memory_first - self._base
        kept = self._entries[at]
        if kept is None:
            raise RuntimeError("an entry of the log was let go twice")
        self._entries[at] = None
        self.memory_first += 1
        if at >= 32 and 4 * at > len(self._entries):
            del self._entries[: at + 1]
            self._base = self.memory_first
        self.bytes -= len(kept[0]) + ENTRY_OVERHEAD_BYTES

    def lost(self, low: int, high: int) -> dict[Origin, int]:
        """As `Log.lost`: known only of all that is gone."""
        return dict(self.gone) if high >= self.first - 1 else {}

    def bytes_after(self, position: int) -> int:
        return self.archive.bytes_after(position) if position < self.last else 0

    def get(self, position: int) -> LogEntry | None:
        """The entry at a position; None if it is not kept, or cannot be read any more."""
        if position >= self.memory_first:
            return super().get(position)
        if not self.first <= position:
            return None
        if position not in self._slice:
            self._slice = dict(self._read(position))
        return self._slice.get(position)

    def after(self, position: int) -> Iterator[tuple[int, LogEntry]]:
        """The entries after a position, oldest first; ends early where the archive cannot be read.

        Then `first` is behind that place, and a reader that goes on from where this ended gets a gap.
        """
        at = max(position + 1, self.first)
        while at < self.memory_first:
            found = self._read(at)
            if not found:
                return
            for where, entry in found:
                if where >= self.memory_first:
                    break
                yield where, entry
                at = where + 1
        yield from super().after(at - 1)

    def _read(self, position: int) -> list[tuple[int, LogEntry]]:
        try:
            return self.archive.read(position, READ_BYTES)
        except UnreadableLogError as error:
            beyond = min(error.next_position, self.memory_first)
            self.unreadable += beyond - self.first
            self.first = beyond
            self._slice.clear()
            return []
