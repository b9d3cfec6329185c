"""The segments of a log: written a batch at a time, found again after a crash, read back, and removed by size.

A segment is a file named after the position of its first entry. It begins with a checkpoint, so that the segments
before it can go. Only the last one is written to; a batch at its end that is not whole was never waited for, and is
cut off.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from plimsoll.core.head.durability.log_state import LogState, entry_of
from plimsoll.core.head.durability.records import (
    HEADER_BYTES,
    Checkpoint,
    DamagedBatchError,
    DiskRecord,
    Logged,
    batch_at,
    batch_length,
    decode_batch,
    encode_batch,
    entries_of,
    scan,
)
from plimsoll.core.head.log import LogEntry
from plimsoll.core.protocol.origins import Origin

SEGMENT_BYTES: Final = 64 * 1024 * 1024
SEGMENTS_AT_LEAST: Final = 8
"""A log is divided into this many segments at least: what retention removes at once is an eighth of it at most."""

INDEX_BYTES: Final = 256 * 1024
"""The distance of the places of a segment that are remembered by position."""

SUFFIX: Final = ".log"


class LogFiles(Protocol):
    """The files of one log. Every method may raise OSError."""

    def names(self) -> list[str]: ...
    def read(self, name: str, start: int, size: int) -> bytes:
        """At most `size` bytes; fewer at the end of the file."""

    def create(self, name: str, size: int) -> None:
        """A new file with room for `size` bytes: writing into it does not fail for want of space."""

    def write(self, name: str, start: int, data: bytes) -> None: ...
    def settle(self, name: str) -> None:
        """All that has been written to this file is safe when this returns."""

    def truncate(self, name: str, size: int) -> None: ...
    def remove(self, name: str) -> None: ...


class UnreadableLogError(ValueError):
    """A place in the log cannot be read. `next_position`: the first one behind the segment that it is in."""

    def __init__(self, text: str, next_position: int) -> None:
        super().__init__(text)
        self.next_position = next_position


@dataclass(slots=True)
class Segment:
    """`end`: where the next batch goes. `positions` and `starts`: of a batch every `INDEX_BYTES`.

    They take 16 bytes each time, so the index of 100 GiB takes 6.6 MB.
    """

    name: str
    first: int
    end: int = 0
    positions: array[int] = field(default_factory=lambda: array("Q"))
    starts: array[int] = field(default_factory=lambda: array("Q"))

    def note(self, position: int, start: int) -> None:
        if not self.starts or start - self.starts[-1] >= INDEX_BYTES:
            self.positions.append(position)
            self.starts.append(start)

    def start_of(self, position: int) -> int:
        """Where a reader of this position begins."""
        i = bisect_right(self.positions, position) - 1
        return self.starts[max(i, 0)] if self.starts else 0


class Recovery(NamedTuple):
    """What was found. `torn_bytes`: cut off behind the last good batch; `damage`: segments given up, and why.

    `is_whole`: nothing that was written and synced is missing at the end of the log.
    """

    state: LogState
    segments: int
    bytes: int
    torn_bytes: int
    damage: tuple[str, ...]
    is_whole: bool


class LogStore:
    """The log of head `name` in these files, of at most `size` bytes. `recover` comes first."""

    def __init__(self, files: LogFiles, name: str, size: int, segment_bytes: int = SEGMENT_BYTES) -> None:
        self.files, self.name, self.size = files, name, size
        self.segment_bytes = min(segment_bytes, max(size // SEGMENTS_AT_LEAST, 4096))
        self.segments: list[Segment] = []
        self.position = 0
        self.read_faults: list[str] = []

    @property
    def first(self) -> int:
        """The oldest position that is kept."""
        return self.segments[0].first if self.segments else self.position + 1

    @property
    def bytes(self) -> int:
        return sum(segment.end for segment in self.segments)

    # -- recovery

    def recover(self) -> Recovery:
        """Find what the files hold; a torn end is cut off, and what lies before damage is given up.

        Raises:
            OSError: the files cannot be read, or the end not be cut off.

        """
        damage: list[str] = []
        is_whole = True
        names = sorted(name for name in self.files.names() if name.endswith(SUFFIX))
        torn = self._drop_empty_end(names)
        last_data, last_found = b"", scan(b"")
        for i, name in enumerate(names):
            is_last = i == len(names) - 1
            data = self.files.read(name, 0, 1 << 62)
            segment, found = Segment(name, _position_of(name)), scan(data)
            if self.segments and segment.first != self.position + 1:
                damage.append(f"{name}: positions {self.position + 1} to {segment.first - 1} before it are missing")
                self._give_up()
            if not found.batches and is_last:
                torn += found.torn
                damage.append(f"{name}: byte 0 is damaged; the segment is given up, and removed")
                is_whole = False
                self.files.remove(name)
                continue
            for batch in found.batches:
                segment.note(batch.first, batch.start)
            segment.end = found.end
            at_end = found.batches[-1] if found.batches else None
            self.position = at_end.first + at_end.entries - 1 if at_end else self.position
            self.segments.append(segment)
            last_data, last_found = data, found
            if found.torn and not is_last:
                damage.append(f"{name}: byte {found.end} is damaged; the log up to its end is given up, and removed")
                self._give_up()
            elif found.torn:
                torn += found.torn
                if _has_good_batch(data, found.end):
                    damage.append(f"{name}: byte {found.end} is damaged; what lies behind it is given up")
                    is_whole = False
                self.files.truncate(name, found.end)
        state = LogState(self.name)
        if self.segments:
            state.position = self.segments[-1].first - 1
            for batch in last_found.batches:
                state.apply(decode_batch(last_data, batch))
        elif damage:
            is_whole = False  # the end of the log itself was damaged
            state.position = self.position
        self.position = state.position
        return Recovery(state, len(self.segments), self.bytes, torn, tuple(damage), is_whole)

    def _drop_empty_end(self, names: list[str]) -> int:
        """Remove segments that were begun just before the end, and hold nothing yet; returns their torn bytes.

        They are no end of the log: what was not synced may have been torn in the segment before them.
        """
        torn = 0
        while names:
            _position_of(names[-1])  # a file that is no segment is not removed
            data = self.files.read(names[-1], 0, 1 << 62)
            if batch_at(memoryview(data), 0) is not None or _has_good_batch(data, 0):
                break
            torn += scan(data).torn
            self.files.remove(names.pop())
        return torn

    def _give_up(self) -> None:
        for segment in self.segments:
            self.files.remove(segment.name)
        self.segments.clear()

    def offsets_before(self) -> dict[Origin, int]:
        """The last offset of each origin before the oldest entry that is kept, for gaps over removed entries.

        Raises:
            OSError: it cannot be read.

        """
        if not self.segments:
            return {}
        oldest = self.segments[0]
        header = self.files.read(oldest.name, 0, HEADER_BYTES)
        data = self.files.read(oldest.name, 0, batch_length(header))
        batch = batch_at(memoryview(data), 0)
        records = decode_batch(data, batch) if batch is not None else []
        if not records or not isinstance(records[0], Checkpoint):
            return {}
        return {(head, epoch): offset for head, epoch, offset in records[0].offsets}

    # -- writing

    @property
    def is_full(self) -> bool:
        """Whether the next batch should be in a new segment: `begin` it."""
        return not self.segments or (
            self.segments[-1].end >= self.segment_bytes and self.position >= self.segments[-1].first
        )

    def write(self, records: list[DiskRecord]) -> None:
        """Append a batch to the last segment.

        Raises:
            OSError: it could not be written; the log has to be recovered.

        """
        data = encode_batch(self.position + 1, records)
        segment = self.segments[-1]
        segment.note(self.position + 1, segment.end)
        self.files.write(segment.name, segment.end, data)
        segment.end += len(data)
        self.position += sum(type(record) is Logged for record in records)

    def settle(self) -> None:
        """Make the last segment safe to its end, before there is a newer one.

        A system writes files back in any order: a newer segment on the disk beside a torn end of an older one would be
        taken for damage, and what lies before it would be given up.

        Raises:
            OSError: the disk has failed; what was written is not to be trusted, and trying again says nothing.

        """
        if self.segments:
            self.files.settle(self.segments[-1].name)

    def begin(self, checkpoint: Checkpoint) -> None:
        """Begin a segment; `settle` comes first. `checkpoint`: the state behind all that has been written.

        Raises:
            OSError: there is no room for it, or it cannot be made. The segment before it goes on.

        """
        first = encode_batch(self.position + 1, [checkpoint])
        name = f"{self.position + 1:020d}{SUFFIX}"
        self.files.create(name, self.segment_bytes + self.segment_bytes // 4 + len(first))
        self.files.write(name, 0, first)
        segment = Segment(name, self.position + 1, len(first))
        segment.note(self.position + 1, 0)
        self.segments.append(segment)

    def remove_old(self) -> bool:
        """Remove whole segments until another one fits into its size; whether any was removed.

        Raises:
            OSError: one could not be removed.

        """
        before = len(self.segments)
        while len(self.segments) > 1 and self.bytes + self.segment_bytes > self.size:
            self.files.remove(self.segments[0].name)
            del self.segments[0]
        return len(self.segments) < before

    # -- reading back

    def bytes_after(self, position: int) -> int:
        """The bytes of the segments from a position on, but for at most `INDEX_BYTES`."""
        i = max(bisect_right(self.segments, position, key=lambda segment: segment.first) - 1, 0)
        if not self.segments:
            return 0
        segment = self.segments[i]
        return segment.end - segment.start_of(position) + sum(later.end for later in self.segments[i + 1 :])

    def read(self, position: int, most_bytes: int) -> list[tuple[int, LogEntry]]:
        """Entries from a position on, as `records`.

        Raises:
            UnreadableLogError: as there.

        """
        return [(where, entry_of(logged)) for where, logged in self.records(position, most_bytes)]

    def records(self, position: int, most_bytes: int) -> list[tuple[int, Logged]]:
        """What was written from a position on: one batch, or several up to `most_bytes`; never across a segment.

        Raises:
            UnreadableLogError: the batch is damaged or its file cannot be read.

        """
        i = bisect_right(self.segments, position, key=lambda segment: segment.first) - 1
        if i < 0 or position > self.position:
            return []
        segment = self.segments[i]
        try:
            return self._read(segment, position, most_bytes)
        except (OSError, DamagedBatchError) as error:
            beyond = self.segments[i + 1].first if i + 1 < len(self.segments) else self.position + 1
            text = f"{segment.name}: position {position} cannot be read: {error}"
            self.read_faults.append(text)
            raise UnreadableLogError(text, beyond) from error

    def _read(self, segment: Segment, position: int, most_bytes: int) -> list[tuple[int, Logged]]:
        start = segment.start_of(position)
        # Several batches may begin at one position, if all but the last of them have no entry.
        data = memoryview(self.files.read(segment.name, start, min(INDEX_BYTES + most_bytes, segment.end - start)))
        found: list[tuple[int, Logged]] = []
        offset = size = 0
        while size < most_bytes and start + offset < segment.end:
            batch = batch_at(data, offset)
            if batch is None:
                wanted = batch_length(bytes(data[offset : offset + HEADER_BYTES]))
                if wanted > len(data) - offset and start + offset + wanted <= segment.end:  # read too little of it
                    if found:
                        break
                    start, offset = start + offset, 0
                    data = memoryview(self.files.read(segment.name, start, max(wanted, INDEX_BYTES)))
                    if batch_at(data, 0) is not None:
                        continue
                elif len(data) - offset < HEADER_BYTES and found:
                    break
                elif len(data) - offset < HEADER_BYTES and start + len(data) < segment.end:
                    start, offset = start + offset, 0
                    data = memoryview(self.files.read(segment.name, start, INDEX_BYTES))
                    continue
                raise DamagedBatchError(f"byte {start + offset}")
            if batch.first + batch.entries > position:
                for where, logged in entries_of(decode_batch(data, batch), batch.first):
                    if where >= position:
                        found.append((where, logged))
                        size += len(logged.record)
            offset = batch.end
        return found


def _position_of(name: str) -> int:
    try:
        return int(name.removesuffix(SUFFIX))
    except ValueError:
        raise OSError(f"{name} is no segment of a log; move it out of the folder") from None


def _has_good_batch(data: bytes, start: int) -> bool:
    """Whether a good batch lies behind bytes that are not good: then those were not the end."""
    view, at = memoryview(data), start
    while (at := data.find(b"PLB1", at + 1)) >= 0:
        if batch_at(view, at) is not None:
            return True
    return False
