"""One segment of a log: its file, the places in it that are remembered, and the seal at its end.

A segment that has a successor ends with a seal: a batch with the index of the segment and a checksum of all before it.
A recovery reads the seal instead of the segment; the rest is checked when it is read, and by `check_sealed` afterwards.
"""

from __future__ import annotations

import struct
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from plimsoll.core.head.durability.records import (
    HEADER_BYTES,
    BatchPlace,
    DamagedBatchError,
    DiskRecord,
    SegmentSealed,
    batch_at,
    batch_length,
    decode_batch,
    encode_batch,
)

INDEX_BYTES: Final = 256 * 1024
"""The distance of the places of a segment that are remembered by position."""

CHECK_BYTES: Final = 1024 * 1024
"""Of a sealed segment that are read at a time when it is checked."""

SUFFIX: Final = ".log"
PROMISE: Final = "promised"
"""The file beside the segments that says how far the log was safe."""

_PROMISE = struct.Struct(">QQQ")
_CHECKSUM_BYTES: Final = 4
_PLACE_BYTES: Final = 8


class LogFiles(Protocol):
    """The files of one log. Every method may raise OSError."""

    def names(self) -> list[str]: ...
    def size(self, name: str) -> int:
        """The length of a file; the room that it was made with is part of it, where room is taken at all."""

    def read(self, name: str, start: int, size: int) -> bytes:
        """At most `size` bytes; fewer at the end of the file."""

    def create(self, name: str, size: int) -> None:
        """A new file with room for `size` bytes: writing into it does not fail for want of space."""

    def write(self, name: str, start: int, data: bytes) -> None: ...
    def note(self, name: str, data: bytes) -> None:
        """Write a file from its beginning; syncs need not take it along, so it outlasts the process alone."""

    def settle(self, name: str) -> None:
        """All that has been written to this file is safe when this returns."""

    def erase(self, name: str, start: int, size: int) -> None:
        """Put zeros there; they are safe when this returns, and the room stays."""

    def truncate(self, name: str, size: int) -> None:
        """Give back the room behind this size; what was there may come back if the system stops."""

    def remove(self, name: str) -> None: ...
    def set_aside(self, name: str) -> None:
        """Take a file out of the log, and keep it where it is not read."""

    def keep_aside(self, name: str, data: bytes) -> None:
        """Keep these bytes of a file, which are erased next; without room for them they are given up."""

    def bound_aside(self, most_bytes: int) -> None:
        """Of what was set aside, keep this much at most: the oldest goes first."""


@dataclass(slots=True)
class Segment:
    """`end`: where the next batch goes. `positions` and `starts`: of a batch every `INDEX_BYTES`.

    They take 16 bytes each time, so the index of 100 GiB takes 6.6 MB. `checksum`: of all bytes but its seal.
    `is_checked`: this process has written all of it, or has read it.
    """

    name: str
    first: int
    end: int = 0
    positions: array[int] = field(default_factory=lambda: array("Q"))
    starts: array[int] = field(default_factory=lambda: array("Q"))
    checksum: int = 0
    is_sealed: bool = False
    is_checked: bool = True

    def note(self, position: int, start: int) -> None:
        if not self.starts or start - self.starts[-1] >= INDEX_BYTES:
            self.positions.append(position)
            self.starts.append(start)

    def wrote(self, position: int, data: bytes) -> None:
        """A batch whose first entry has this position was written at the end."""
        self.note(position, self.end)
        self.end += len(data)
        self.checksum = zlib.crc32(data, self.checksum)

    def start_of(self, position: int) -> int:
        """Where a reader of this position begins."""
        i = bisect_right(self.positions, position) - 1
        return self.starts[max(i, 0)] if self.starts else 0


class SafePlace(NamedTuple):
    """The log was safe up to byte `end` of the segment with this first position.

    `position`: of the last entry when this was written, which may be behind that place while publications come.
    """

    segment: int
    end: int
    position: int


def encode_promise(promise: SafePlace) -> bytes:
    """The whole file. It is written in place, so one that is torn has another checksum, and promises nothing."""
    data = _PROMISE.pack(*promise)
    return data + zlib.crc32(data).to_bytes(_CHECKSUM_BYTES, "big")


def read_promise(files: LogFiles) -> SafePlace | None:
    """How far the log was safe when that was written last; None if that is not known.

    Raises:
        OSError: the file cannot be read.

    """
    if PROMISE not in files.names():
        return None
    data = files.read(PROMISE, 0, _PROMISE.size + _CHECKSUM_BYTES)
    if len(data) < _PROMISE.size + _CHECKSUM_BYTES:
        return None
    promise = SafePlace(*_PROMISE.unpack_from(data))
    return promise if data == encode_promise(promise) else None


def name_of(first: int) -> str:
    """The file of the segment whose first entry has this position."""
    return f"{first:020d}{SUFFIX}"


def first_of(name: str) -> int:
    """The position of the first entry of a segment, by its name.

    Raises:
        OSError: it is no segment.

    """
    try:
        return int(name.removesuffix(SUFFIX))
    except ValueError:
        raise OSError(f"{name} is not a segment of a log: move it out of the folder") from None


def seal(files: LogFiles, segment: Segment, beyond: int) -> None:
    """End a segment whose bytes are safe; `beyond`: the position behind its last. Without room it stays as it is.

    The seal itself need not be safe: a segment without one is read from its beginning.
    """
    place = segment.end.to_bytes(_PLACE_BYTES, "big")
    sealed = SegmentSealed(segment.first, segment.checksum, list(segment.positions), list(segment.starts), place)
    data = encode_batch(beyond, [sealed])
    if segment.end + len(data) <= files.size(segment.name):
        files.write(segment.name, segment.end, data)
        segment.end += len(data)
        segment.is_sealed = True
        files.truncate(segment.name, segment.end)


def place_of_seal(sealed: SegmentSealed) -> int:
    """Where its batch begins, as a seal says."""
    return int.from_bytes(sealed.start, "big")


def read_seal(files: LogFiles, name: str) -> tuple[Segment, int] | None:
    """A segment by its seal, and the position behind its last; None if it has no good seal.

    Raises:
        OSError: the file cannot be read, or is no segment.

    """
    first, size = first_of(name), files.size(name)
    start = int.from_bytes(files.read(name, max(size - _PLACE_BYTES, 0), _PLACE_BYTES), "big")
    if not 0 < start < size - HEADER_BYTES:
        return None
    data = files.read(name, start, size - start)
    batch = batch_at(memoryview(data), 0)
    if batch is None or batch.end != len(data):
        return None
    record = decode_batch(data, batch)[-1]
    if not isinstance(record, SegmentSealed) or record.first != first:
        return None
    positions, starts = array("Q", record.positions), array("Q", record.starts)
    segment = Segment(name, first, size, positions, starts, record.checksum, is_sealed=True, is_checked=False)
    return segment, batch.first


def check_sealed(files: LogFiles, name: str, checksum: int) -> Iterator[int]:
    """Read a sealed segment in slices, and yield the bytes of each; ends when all is good.

    Raises:
        DamagedBatchError: it is not what was written.
        OSError: it cannot be read.

    """
    found = read_seal(files, name)
    if found is None:
        raise DamagedBatchError("the seal is damaged")
    end = int.from_bytes(files.read(name, found[0].end - _PLACE_BYTES, _PLACE_BYTES), "big")
    at = read = 0
    while at < end:
        data = files.read(name, at, min(CHECK_BYTES, end - at))
        if not data:
            raise DamagedBatchError(f"it ends at byte {at} instead of {end}")
        read, at = zlib.crc32(data, read), at + len(data)
        yield len(data)
    if read != checksum:
        raise DamagedBatchError("its checksum is not that of its seal")


def first_batch(files: LogFiles, name: str) -> tuple[BatchPlace, list[DiskRecord]] | None:
    """The batch that a segment begins with; None if it is damaged.

    Raises:
        OSError: it cannot be read.

    """
    data = files.read(name, 0, batch_length(files.read(name, 0, HEADER_BYTES)))
    batch = batch_at(memoryview(data), 0)
    return (batch, decode_batch(data, batch)) if batch is not None else None
