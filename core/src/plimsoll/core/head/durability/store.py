"""The segments of a log: written a batch at a time, read back, sealed when there is a newer one, and removed by size.

A segment is a file named after the position of its first entry. It begins with a checkpoint, so that the segments
before it can go. Only the last one is written to; a batch at its end that is not whole was never waited for, and is
cut off (`recovery.py`).
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from plimsoll.core.head.durability.damage_note import DamageNote
from plimsoll.core.head.durability.log_state import entry_of
from plimsoll.core.head.durability.records import (
    HEADER_BYTES,
    Checkpoint,
    DamagedBatchError,
    DiskRecord,
    EpochBegan,
    Logged,
    SafeBefore,
    batch_at,
    batch_length,
    decode_batch,
    encode_batch,
    entries_of,
)
from plimsoll.core.head.durability.recovery import LogRecovery, Recovery
from plimsoll.core.head.durability.segments import (
    INDEX_BYTES,
    PROMISE,
    LogFiles,
    SafePlace,
    Segment,
    encode_promise,
    first_batch,
    name_of,
    seal,
)
from plimsoll.core.head.log import LogEntry
from plimsoll.core.protocol.origins import Origin

SEGMENT_BYTES: Final = 64 * 1024 * 1024
SEGMENTS_AT_LEAST: Final = 8
"""A log is divided into this many segments at least: what retention removes at once is an eighth of it at most."""


class NoRoomError(OSError):
    """The disk has no room for another segment; what has been written goes on."""


class UnreadableLogError(ValueError):
    """A place in the log cannot be read. `next_position`: the first one behind the segment that it is in."""

    def __init__(self, text: str, next_position: int) -> None:
        super().__init__(text)
        self.next_position = next_position


class LogStore:
    """The log of head `name` in these files, of at most `size` bytes. `recover` comes first."""

    def __init__(self, files: LogFiles, name: str, size: int, segment_bytes: int = SEGMENT_BYTES) -> None:
        self.files, self.name, self.size = files, name, size
        self.segment_bytes = min(segment_bytes, max(size // SEGMENTS_AT_LEAST, 4096))
        self.segments: list[Segment] = []
        self.position = 0
        self.read_faults: list[str] = []
        self.damage = DamageNote(files)
        self._safe = self._said_safe = 0
        self._promised = self._noted = SafePlace(0, 0, 0)
        self._has_note = False

    @property
    def first(self) -> int:
        """The oldest position that is kept."""
        return self.segments[0].first if self.segments else self.position + 1

    @property
    def bytes(self) -> int:
        return sum(segment.end for segment in self.segments)

    def recover(self) -> Recovery:
        """Find what the files hold: `LogRecovery.run`, with the same errors."""
        found = LogRecovery(self.files, self.name, self.damage)
        recovery = found.run()
        self.segments, self.position = found.segments, found.position
        return recovery

    def offsets_before(self) -> dict[Origin, int]:
        """The last offset of each origin before the oldest entry that is kept, for gaps over removed entries.

        Raises:
            OSError: it cannot be read.

        """
        found = first_batch(self.files, self.segments[0].name) if self.segments else None
        if found is None or not isinstance(checkpoint := found[1][0], Checkpoint):
            return {}
        return {(head, epoch): offset for head, epoch, offset in checkpoint.offsets}

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
        segment = self.segments[-1]
        if self._said_safe < self._safe:
            self._said_safe = self._safe
            records = [*records, SafeBefore(self._safe)]
        data = encode_batch(self.position + 1, records)
        self.files.write(segment.name, segment.end, data)
        segment.wrote(self.position + 1, data)
        self.position += sum(type(record) is Logged for record in records)
        if not self.damage.epoch:
            for began in [record for record in records if isinstance(record, EpochBegan)]:
                self.damage.began(began.epoch)

    @property
    def place(self) -> tuple[int, int]:
        """The end of what has been written: the first position of the last segment, and how many bytes that has."""
        return (self.segments[-1].first, self.segments[-1].end) if self.segments else (0, 0)

    def safe(self, place: tuple[int, int]) -> None:
        """What had been written up to this place is safe on the disk; the next batch says so."""
        if self.segments and place[0] == self.segments[-1].first:
            self._safe = max(self._safe, place[1])

    def promise(self, *, is_synced: bool = True) -> None:
        """Note beside the segments how far the last one is safe, so that a start that finds less says so.

        It is a few bytes that a later sync takes along; without `is_synced` they outlast the end of this process alone,
        and cost next to nothing. Without room for a new file there is no note.

        Raises:
            OSError: it could not be written.

        """
        if not self._safe:
            return
        promise = SafePlace(self.segments[-1].first, self._safe, self.position)
        if promise[:2] == self._noted[:2] if not is_synced else promise == self._promised:
            return
        data = encode_promise(promise)
        if not self._has_note and PROMISE not in self.files.names():
            try:
                self.files.create(PROMISE, len(data))
            except OSError:
                return  # the disk is full: that is said by what refuses publications, and this is tried again
        self._has_note, self._noted = True, promise
        if is_synced:
            self.files.write(PROMISE, 0, data)
            self._promised = promise
        else:
            self.files.note(PROMISE, data)

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
            NoRoomError: it cannot be made. The segment before it goes on.
            OSError: it could not be written; the log has to be recovered.

        """
        first = encode_batch(self.position + 1, [checkpoint])
        segment = Segment(name_of(self.position + 1), self.position + 1)
        try:
            self.files.create(segment.name, self.segment_bytes + self.segment_bytes // 4 + len(first))
        except OSError as error:
            raise NoRoomError(error.errno, error.strerror or str(error), error.filename) from error
        self._seal_all()
        self.files.write(segment.name, 0, first)
        segment.wrote(self.position + 1, first)
        self.segments.append(segment)
        self._safe = self._said_safe = 0

    def _seal_all(self) -> None:
        """Seal the last segment, which is settled, and those that an earlier process had no time to seal."""
        beyond = self.position + 1
        for segment in reversed(self.segments):
            if not segment.is_sealed:
                seal(self.files, segment, beyond)
            beyond = segment.first

    def remove_old(self) -> bool:
        """Remove whole segments until another one fits into its size; whether any was removed.

        What was set aside goes first: it may have the room that the log does not need.

        Raises:
            OSError: one could not be removed.

        """
        before = len(self.segments)
        self.files.bound_aside(max(self.size - self.bytes - self.segment_bytes, 0))
        while len(self.segments) > 1 and self.bytes + self.segment_bytes > self.size:
            self._remove_oldest()
        return len(self.segments) < before

    def _remove_oldest(self) -> None:
        self.files.remove(self.segments[0].name)
        del self.segments[0]

    def unchecked(self) -> list[Segment]:
        """Segments that were found by their seals, oldest first; `check_sealed` reads the rest of them."""
        return [segment for segment in self.segments if not segment.is_checked]

    def checked(self, name: str, fault: str) -> bool:
        """A segment has been read; with a fault the log is given up to its end, but for the last segment.

        Returns whether anything was given up.

        Raises:
            OSError: a file could not be moved.

        """
        found = next((i for i, segment in enumerate(self.segments) if segment.name == name), None)
        if found is None:
            return False  # it has gone by its age meanwhile
        self.segments[found].is_checked = True
        if not fault:
            return False
        why = f"{name}: {fault}; the log up to its end is given up, and set aside"
        self.read_faults.append(why)
        self.damage.add(why, self.position)
        for _ in range(min(found + 1, len(self.segments) - 1)):
            self.files.set_aside(self.segments.pop(0).name)
        return True

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
