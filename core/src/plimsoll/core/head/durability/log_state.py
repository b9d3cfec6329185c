"""What a log says besides its entries: epochs, offsets, publishers and how far neighbours had been heard."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import assert_never

import msgspec

from plimsoll.core.head.durability.records import (
    Checkpoint,
    DiskRecord,
    EpochBegan,
    GroupForgotten,
    GroupKept,
    GroupNamed,
    Logged,
    NeighborAsks,
    NeighborMet,
    NumberRefused,
    PlaceEnded,
    PlaceKept,
    PublisherKnown,
    SafeBefore,
    SegmentSealed,
    SliceKept,
    SlicesKept,
    SubscriberLeft,
    TimeMark,
)
from plimsoll.core.head.durability.time_index import TimeIndex
from plimsoll.core.head.log import LogEntry
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.origins import Origin, raise_to
from plimsoll.core.protocol.wire import FLAG_CONFIRM_EDGES

EXCEPTIONS_KEPT = 1024
"""Refused numbers of a publisher that are remembered: a client has at most a window of numbers without an answer."""

EPOCHS_KEPT = 4096

_entries = msgspec.msgpack.Decoder(msg.Pub | msg.Gap)
"""Bodies stay as they are: a recovery decodes a whole segment."""


def entry_of(logged: Logged) -> LogEntry:
    """The entry of a log that a record stands for."""
    message = msg.to_edge.decode(logged.record)
    if isinstance(message, msg.Gap):
        return LogEntry(logged.record, tuple(((head, epoch), offset) for head, epoch, offset in message.last), True)
    if not isinstance(message, msg.PubOpen):
        raise TypeError(f"the log holds a {type(message).__name__}")
    return LogEntry(logged.record, (((message.head, message.epoch), message.offset),), False)


class LogState:
    """The state that a head goes on with. `position`: of the last entry."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.position = 0
        self.epochs: list[EpochBegan] = []
        self.offsets: dict[Origin, int] = {}
        self._known_as: dict[str, PublisherKnown] = {}
        self._last: dict[str, int] = {}
        self.exceptions: dict[str, deque[NumberRefused]] = {}
        self.neighbors: dict[str, tuple[int, int]] = {}
        self.asks: dict[str, dict[int, str]] = {}
        self.group_names: set[str] | None = None
        """Names of the consumer groups; None if they are not known."""
        self.places: dict[str, PlaceKept] = {}
        self.times = TimeIndex()
        self.groups: dict[str, GroupKept] = {}
        self.slices: dict[str, dict[int, SliceKept]] = {}

    def apply(self, records: Iterable[DiskRecord]) -> None:
        """Take the records of a batch in."""
        for record in records:
            match record:
                case Logged():
                    self._logged(record)
                case EpochBegan():
                    if self.epochs and self.epochs[-1].epoch == record.epoch:
                        self.epochs.pop()  # the checkpoint of the first segment has it, too
                    self.epochs.append(record)
                    del self.epochs[:-EPOCHS_KEPT]
                case PublisherKnown():
                    self._known(record)
                case NumberRefused():
                    self._number_refused(record)
                case NeighborMet():
                    self.neighbors[record.name] = (record.epoch, record.position)
                case NeighborAsks():
                    self._asks(record)
                case GroupNamed():
                    self._group_named(record)
                case PlaceKept():
                    self.places[record.subscriber] = record
                case PlaceEnded():
                    self.places.pop(record.subscriber, None)
                case SubscriberLeft():
                    self._left(record)
                case TimeMark():
                    self.times.note(record.at, record.position)
                case GroupKept():
                    self.groups[record.name] = record
                case GroupForgotten():
                    self.groups.pop(record.name, None)
                    self.slices.pop(record.name, None)
                case SlicesKept():
                    self._slices(record)
                case Checkpoint():
                    self._checkpoint(record)
                case SegmentSealed() | SafeBefore():
                    pass  # of the segment, not of the head
                case _:
                    assert_never(record)

    def _checkpoint(self, record: Checkpoint) -> None:
        self.epochs = list(record.epochs)
        self.offsets = {(head, epoch): offset for head, epoch, offset in record.offsets}
        self._known_as = {known.name: known for known in record.publishers}
        self._last = {known.name: known.last_seq for known in record.publishers}
        self.exceptions.clear()
        for refused in record.refused:
            self._exceptions(refused.publisher).append(refused)
        self.neighbors = {name: (epoch, position) for name, epoch, position in record.neighbors}
        self.asks = {each.name: dict(each.adds) for each in record.asks}
        self.group_names = None if record.group_names is None else set(record.group_names)
        self.places = {place.subscriber: place for place in record.places}
        self.times = TimeIndex(record.times)
        self.groups = {group.name: group for group in record.groups}
        self.slices.clear()
        for slices in record.slices:
            self._slices(slices)

    def _group_named(self, record: GroupNamed) -> None:
        if self.group_names is not None:
            (self.group_names.add if record.is_served else self.group_names.discard)(record.name)

    def _asks(self, record: NeighborAsks) -> None:
        cover = self.asks.setdefault(record.name, {})
        if record.whole:
            cover.clear()
        for number in record.removes:
            cover.pop(number, None)
        cover.update(record.adds)

    def _slices(self, kept: SlicesKept) -> None:
        self.slices.setdefault(kept.group, {}).update((each.number, each) for each in kept.slices)

    def _left(self, left: SubscriberLeft) -> None:
        if (place := self.places.get(left.subscriber)) is not None:
            self.places[left.subscriber] = msgspec.structs.replace(place, left_at=left.left_at, position=left.position)

    def _logged(self, logged: Logged) -> None:
        self.position += 1
        if logged.source and logged.source_epoch:
            self.neighbors[logged.source] = (logged.source_epoch, logged.source_position)
        message = _entries.decode(logged.record)
        if isinstance(message, msg.Pub):
            origin = (message.head, message.epoch)
            if message.offset > self.offsets.get(origin, 0):
                self.offsets[origin] = message.offset
            if message.head == self.name:
                self._published(message)
        else:
            raise_to(self.offsets, [((head, epoch), offset) for head, epoch, offset in message.last])

    def _published(self, pub: msg.Pub) -> None:
        known = self._known_as.get(pub.publisher)
        if known is None or known.incarnation != pub.incarnation:
            return  # the record of its incarnation is always ahead of it; another incarnation has come since
        if pub.seq > self._last[pub.publisher]:
            self._last[pub.publisher] = pub.seq
        if pub.flags & FLAG_CONFIRM_EDGES:
            awaited = NumberRefused(pub.publisher, pub.incarnation, pub.seq, "", "")
            self._exceptions(pub.publisher).append(awaited)

    def _known(self, known: PublisherKnown) -> None:
        before = self._known_as.get(known.name)
        if before is None or before.incarnation != known.incarnation or before.identity != known.identity:
            self.exceptions.pop(known.name, None)
        self._known_as[known.name] = known
        self._last[known.name] = known.last_seq

    def _number_refused(self, refused: NumberRefused) -> None:
        known = self._known_as.get(refused.publisher)
        if known is not None and known.incarnation == refused.incarnation:
            self._last[refused.publisher] = max(self._last[refused.publisher], refused.seq)
            self._exceptions(refused.publisher).append(refused)

    def _exceptions(self, publisher: str) -> deque[NumberRefused]:
        return self.exceptions.setdefault(publisher, deque(maxlen=EXCEPTIONS_KEPT))

    @property
    def publishers(self) -> dict[str, PublisherKnown]:
        """Publishers by name, each with its last number."""
        return {
            name: msgspec.structs.replace(known, last_seq=self._last[name]) for name, known in self._known_as.items()
        }

    def seen(self) -> Iterator[tuple[Origin, int]]:
        """The last offset of each other origin."""
        return ((origin, offset) for origin, offset in self.offsets.items() if origin[0] != self.name)


class EpochTable:
    """The epochs of a log, oldest first, with the positions that each has had."""

    def __init__(self, epochs: list[EpochBegan]) -> None:
        self.epochs = list(epochs)

    def last_of(self, epoch: int, end: int) -> int | None:
        """The last position of an epoch, in a log that ends at `end`; None if the log does not know the epoch."""
        i = self._index(epoch)
        if i < 0:
            return None
        return self.epochs[i + 1].first - 1 if i + 1 < len(self.epochs) else end

    def was_alone_since(self, epoch: int) -> bool:
        """Whether the head has had no neighbour from that epoch on: its log has all that its subscribers were due."""
        i = self._index(epoch)
        return i >= 0 and not any(each.has_neighbors for each in self.epochs[i:])

    def _index(self, epoch: int) -> int:
        return next((i for i in range(len(self.epochs) - 1, -1, -1) if self.epochs[i].epoch == epoch), -1)
