"""What a head writes to its disk: batches of records, each with a checksum.

A batch has what one round of the event loop has logged. Its header names the position of its first entry and how many
entries it has, so that a reader finds a position without decoding what lies before it.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from plimsoll.core.protocol.messages import GroupDefinition
from plimsoll.core.protocol.wire import Token

_HEADER = struct.Struct(">4sIIQI")
HEADER_BYTES = _HEADER.size
_MAGIC = b"PLB1"
MOST_BATCH_BYTES = 1 << 30
"""A length above this is no length."""
SEARCHES: Final = 4
"""After bytes that are not good, the search for good batches reads at most this many times their segment."""


class Logged(Struct, array_like=True, frozen=True, tag=1):
    """An entry of the log: a publication or a gap, as it travels.

    `source`: the neighbour that sent it, with its epoch then and the position in its log.
    """

    record: bytes
    source: str = ""
    source_epoch: int = 0
    source_position: int = 0


class EpochBegan(Struct, array_like=True, frozen=True, tag=2):
    """A head has started. Its first entry has the position `first`; positions go on from those of earlier epochs.

    `memory`: the epoch since which the log is whole. `has_neighbors`: then positions alone do not say what passed.
    `is_synced`: it waits for syncs. `boot`: which start of the operating system it is in, empty if that is not known.
    """

    epoch: int
    first: int
    memory: int
    boot: str = ""
    has_neighbors: bool = False
    is_synced: bool = False


class PublisherKnown(Struct, array_like=True, frozen=True, tag=3):
    """A publisher has begun an incarnation, has left or has arrived; publications behind this raise `last_seq`.

    `since`: since when its identity has the name, in milliseconds since 1970.
    """

    name: str
    incarnation: int
    identity: str = ""
    last_seq: int = 0
    left: str = ""
    arrived: str = ""
    since: int = 0


class NumberRefused(Struct, array_like=True, frozen=True, tag=4):
    """A number of a publisher that is an exception to acceptance: it was answered by a refusal, and is used up.

    With an empty `code` it was accepted, and waited for edges or was not confirmed by all.
    """

    publisher: str
    incarnation: int
    seq: int
    code: str
    text: str


class PlaceKept(Struct, array_like=True, frozen=True, tag=7):
    """A subscriber has a place at this head for `lease_seconds` of absence, with this list; a later one replaces it.

    `since`: where its cover began, as an epoch of this head and a position. `left_at`: when it went away, in seconds
    since 1970, 0 while it is served; it had been sent the log up to `position`. `most_bytes`: of log that its identity
    may hold back. `is_guest`: a hand-over from another head has brought it, which may yet be undone there. `is_again`:
    an earlier cover had lapsed before that one began. `claimed`: since when its identity has the name, in milliseconds.
    """

    subscriber: str
    identity: str
    epoch: tuple[int, int]
    since: tuple[int, int]
    lease_seconds: float
    texts: list[str]
    most_bytes: int = 0
    left_at: float = 0.0
    position: int = 0
    is_guest: bool = False
    is_again: bool = False
    claimed: int = 0


class PlaceEnded(Struct, array_like=True, frozen=True, tag=8):
    """The place of a subscriber has ended: it has withdrawn, or its lease is over."""

    subscriber: str


class SubscriberLeft(Struct, array_like=True, frozen=True, tag=9):
    """A subscriber that has a place has gone away: fields as in `PlaceKept`."""

    subscriber: str
    left_at: float
    position: int


class TimeMark(Struct, array_like=True, frozen=True, tag=10):
    """At this time, in seconds since 1970, the log ended at this position."""

    at: float
    position: int


class NeighborAsks(Struct, array_like=True, frozen=True, tag=13):
    """The cover of a neighbour has changed: subscriptions by their ids. `whole`: this is all of it."""

    name: str
    adds: list[tuple[int, str]]
    removes: list[int] = []
    whole: bool = False


class GroupKept(Struct, array_like=True, frozen=True, tag=14):
    """A consumer group that is declared, of this cluster or of another one, whose head is `head`.

    `ends_at`: of one that is declared no longer, when it ends at the latest, in seconds since 1970; else 0. `since`: as
    in `ConsumerGroup`.
    """

    name: str
    cluster: str
    head: str
    definition: GroupDefinition
    ends_at: float = 0.0
    since: tuple[int, int] = (0, 0)


class GroupForgotten(Struct, array_like=True, frozen=True, tag=15):
    """A group that was declared has ended."""

    name: str


class SliceKept(Struct, array_like=True, frozen=True):
    """How far consumers have got with a slice: fields as in `GroupSlice`."""

    number: int
    token: Token
    marks: list[Token] = []
    given_to: Token | None = None
    side: int = 0


class SlicesKept(Struct, array_like=True, frozen=True, tag=16):
    """How far the consumers of a declared group have got with these slices."""

    group: str
    slices: list[SliceKept]


class GroupNamed(Struct, array_like=True, frozen=True, tag=17):
    """A consumer group is served here from now on, or no longer."""

    name: str
    is_served: bool = True


class Checkpoint(Struct, array_like=True, frozen=True, tag=5):
    """The first record of every segment: all that the segments before it said, but for their entries.

    `offsets`: the last offset of each origin. `neighbors`: name, epoch and position of what each has sent.
    `group_names`: of the consumer groups served; None in a log of a version that did not note them.
    """

    epochs: list[EpochBegan]
    offsets: list[tuple[str, int, int]]
    publishers: list[PublisherKnown]
    refused: list[NumberRefused]
    neighbors: list[tuple[str, int, int]]
    places: list[PlaceKept] = []
    times: list[tuple[float, int]] = []
    asks: list[NeighborAsks] = []
    groups: list[GroupKept] = []
    slices: list[SlicesKept] = []
    group_names: list[str] | None = None


class NeighborMet(Struct, array_like=True, frozen=True, tag=6):
    """A neighbour has reported for the first time, in this epoch of it and at this position of its log."""

    name: str
    epoch: int
    position: int


class SegmentSealed(Struct, array_like=True, frozen=True, tag=11):
    """The last record of a segment that has a successor, so that a recovery need not read what lies before it.

    `first`: the position after which the segment is named. `checksum`: of all bytes before this batch. `positions` and
    `starts`: where batches begin, as `Segment`. `start`: where this batch begins, in the last eight bytes of the file.
    """

    first: int
    checksum: int
    positions: list[int]
    starts: list[int]
    start: bytes


class SafeBefore(Struct, array_like=True, frozen=True, tag=12):
    """When this batch was made, its segment was safe on the disk up to byte `end`.

    Pages of a segment are written back in any order. So a hole before a good batch is damage if that batch says that
    the place had been safe; otherwise it is what a sync had not reached when the system stopped.
    """

    end: int


DiskRecord = (
    Logged | EpochBegan | PublisherKnown | NumberRefused | Checkpoint | NeighborMet | PlaceKept | PlaceEnded
    | SubscriberLeft | TimeMark | SegmentSealed | SafeBefore | NeighborAsks | GroupKept | GroupForgotten | SlicesKept
    | GroupNamed
)  # fmt: skip

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[DiskRecord])


class BatchPlace(NamedTuple):
    """Where a batch lies in its segment, and the positions of its entries: `first` to `first + entries - 1`."""

    start: int
    end: int
    first: int
    entries: int


class Scan(NamedTuple):
    """What a segment holds. `end`: of its last good batch; `torn`: bytes behind that are neither zero nor good."""

    batches: list[BatchPlace]
    end: int
    torn: int


class DamagedBatchError(ValueError):
    """The bytes at a place of a segment are not the batch that should be there."""


class LookalikesError(ValueError):
    """Too many bytes look like the beginning of a batch and are none: publications can be made so."""


def encode_batch(first: int, records: list[DiskRecord]) -> bytes:
    """One batch; `first` is the position of its first entry."""
    payload = _encoder.encode(records)
    entries = sum(type(record) is Logged for record in records)
    return _HEADER.pack(_MAGIC, len(payload), _checksum(first, entries, payload), first, entries) + payload


def _checksum(first: int, entries: int, payload: bytes | memoryview) -> int:
    return zlib.crc32(payload, zlib.crc32(b"%d,%d" % (first, entries)))


def batch_at(data: memoryview, start: int) -> BatchPlace | None:
    """The batch that begins at `start` of these bytes; None if there is none that is whole and good."""
    if len(data) - start < HEADER_BYTES:
        return None
    magic, length, checksum, first, entries = _HEADER.unpack_from(data, start)
    end = start + HEADER_BYTES + length
    if magic != _MAGIC or length > MOST_BATCH_BYTES or end > len(data):
        return None
    if _checksum(first, entries, data[start + HEADER_BYTES : end]) != checksum:
        return None
    return BatchPlace(start, end, first, entries)


def batch_length(header: bytes) -> int:
    """The whole length of a batch by its header; 0 if it is no header."""
    if len(header) < HEADER_BYTES:
        return 0
    magic, length, *_ = _HEADER.unpack_from(header)
    return HEADER_BYTES + int(length) if magic == _MAGIC and length <= MOST_BATCH_BYTES else 0


def scan(data: bytes, first: int) -> Scan:
    """All good batches from the beginning of a segment on, up to the first that is not good or not the next one.

    `first`: the position of the first entry.
    """
    view, found, at = memoryview(data), [], 0
    while (batch := batch_at(view, at)) is not None and batch.first == first:
        found.append(batch)
        at, first = batch.end, first + batch.entries
    return Scan(found, at, _used(data, at))


def _used(data: bytes, start: int) -> int:
    """How many bytes from `start` on are not the zeros at the end; without a copy of a whole segment."""
    end = len(data)
    while end > start:
        low = max(start, end - 65_536)
        if used := data[low:end].rstrip(b"\0"):
            return low + len(used) - start
        end = low
    return 0


def batches_behind(data: bytes, start: int) -> Iterator[BatchPlace]:
    """Good batches that lie somewhere behind bytes that are not good; publications may hold what looks like one.

    Raises:
        LookalikesError: the search would take too long.

    """
    view, at, left = memoryview(data), start, SEARCHES * len(data)
    while (at := data.find(_MAGIC, at + 1)) >= 0:
        length = batch_length(data[at : at + HEADER_BYTES])
        left -= max(length if at + length <= len(data) else 0, HEADER_BYTES)
        if left < 0:
            raise LookalikesError(f"behind byte {start}")
        if (batch := batch_at(view, at)) is not None:
            yield batch
            at = batch.end - 1


def decode_batch(data: bytes | memoryview, batch: BatchPlace) -> list[DiskRecord]:
    """The records of a batch whose checksum is good.

    Raises:
        DamagedBatchError: it was written by another version, or not by a head.

    """
    try:
        return _decoder.decode(memoryview(data)[batch.start + HEADER_BYTES : batch.end])
    except msgspec.MsgspecError as error:
        raise DamagedBatchError(f"byte {batch.start}: {error}") from error


def entries_of(records: Iterable[DiskRecord], first: int) -> Iterator[tuple[int, Logged]]:
    """The entries of a batch with their positions."""
    position = first
    for record in records:
        if type(record) is Logged:
            yield position, record
            position += 1
