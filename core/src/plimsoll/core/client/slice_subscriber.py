"""A slice as its member has it: a subscriber that brokers know by the slice's name, and what its application has of it.

Deliveries wait in the slice's own list until the application takes them, so a slice that is given up takes with it what
was not given. Its owner epoch counts within the epoch of its assignment: an earlier member yields everywhere.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Protocol

from msgspec import Struct

from plimsoll.core.client.events import Delivery, Failed, GapNotice, Item, SubscriberEvent
from plimsoll.core.client.slice_cache import GiverCache, merged_caches
from plimsoll.core.client.slice_tally import SliceTally
from plimsoll.core.client.subscriber import Attachment, ClientSubscriber, SubscriberHost
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.origins import Origin
from plimsoll.core.protocol.slice_names import slice_name
from plimsoll.core.protocol.wire import OwnerEpoch, Token


class SliceItems(Protocol):
    """What the application is given, slice by slice in turn."""

    def ready(self, owned: SliceSubscriber, /) -> None: ...


class TakenSlices(Protocol):
    """Slices that a taker caches until their givers have sent theirs."""

    def attached(self, owned: SliceSubscriber, /) -> None: ...


class SliceOwner(Protocol):
    """The member that has a slice."""

    group: str
    head: str

    @property
    def items(self) -> SliceItems: ...
    @property
    def caching(self) -> TakenSlices: ...
    def slice_failed(self, owned: SliceSubscriber, failed: Failed, /) -> None: ...


class HandedItem(Struct, eq=False):
    """An item that the application has; `is_done` once it is acknowledged. `taken_at`, `finished_at`: seconds."""

    owned: SliceSubscriber
    item: Item
    taken_at: float
    finished_at: float
    is_redelivered: bool = False
    is_done: bool = False

    def __repr__(self) -> str:
        return f"<item of slice {self.owned.slice}: {self.item!r}>"


class SliceSubscriber(ClientSubscriber):
    """`assignment`: its epoch. `handed`: what the application has, in order. `acked`, `acked_marks`: behind all of it
    that is acknowledged without a break. `cache`: what a taker has of its giver's, until the slice is its own.
    `may_send_cache`: it is a giver's, and may be asked for one. `has_turn`: the member will look at its items.
    """

    __slots__ = (
        "_given_in", "_given_to", "_items", "_marks", "_owner", "acked", "assignment", "busy_seconds", "cache",
        "finished", "handed", "has_turn", "is_stopping", "may_send_cache", "side", "slice", "tally",
    )  # fmt: skip

    def __init__(self, client: SubscriberHost, owner: SliceOwner, assigned: msg.SliceAssigned) -> None:
        name = slice_name(owner.group, assigned.number, assigned.side)
        super().__init__(client, name, msg.Policy(), assigned.token, "")
        self._owner, self._items = owner, owner.items
        self.slice, self.assignment = assigned.number, assigned.epoch
        self.side = assigned.side
        self.stream.start_from(assigned.marks)
        self.stream.holds = True
        self.stream.log_goes_on = self._log_goes_on
        self.acked = assigned.token
        self._marks = {(head, epoch): offset for head, epoch, offset in assigned.marks}
        self._given_to = assigned.given_to
        self._given_in = {assigned.given_to[:2]} if assigned.given_to is not None else set()
        self.tally = SliceTally(assigned.marks)
        self.handed: deque[HandedItem] = deque()
        self.is_stopping = self.may_send_cache = self.has_turn = False
        self.cache: GiverCache | None = GiverCache() if assigned.caches else None
        self.finished, self.busy_seconds = 0, 0.0

    @property
    def epoch(self) -> OwnerEpoch:
        return self.assignment, self.number

    @property
    def first_head(self) -> str:
        return self._owner.head

    def attach_item(self, attachment: Attachment) -> msg.AttachItem:
        item = super().attach_item(attachment)
        return msg.AttachItem(
            item.attachment, item.subscriber, (self.assignment, self.number + 1), item.version, item.subscriptions,
            item.policy,
        )  # fmt: skip

    def on_resumed(self, attachment: Attachment, resumed: msg.Resumed, now: float) -> None:
        super().on_resumed(attachment, resumed, now)
        if self.acked is None:
            self.acked = self.stream.token
        self._owner.caching.attached(self)

    # -- for the application

    @property
    def acked_marks(self) -> list[Token]:
        """The watermarks that belong to `acked`."""
        return [(head, epoch, offset) for (head, epoch), offset in self._marks.items()]

    @property
    def backlog(self) -> int:
        """Items that wait here, and those that the application has."""
        return len(self.events) + len(self.handed)

    def hand(self, most: int, now: float) -> list[HandedItem]:
        """Give the application the next items."""
        events = self.events
        found = [
            HandedItem(self, event, now, now)
            for event in (events if len(events) <= most else events[:most])
            if type(event) is Delivery or isinstance(event, GapNotice)
        ]
        if self._given_to is not None:
            for each in found:
                each.is_redelivered = self._may_have_been_given(each.item)
        del events[:most]
        self.handed.extend(found)
        return found

    def take_back(self, handed: HandedItem) -> None:
        """The application has not taken this item, the last that was handed: it waits here again.

        Raises:
            RuntimeError: it is not the last one.

        """
        if self.handed.pop() is not handed:
            raise RuntimeError("items of a slice were taken back out of order")
        self.events.insert(0, handed.item)
        self._items.ready(self)

    def _may_have_been_given(self, item: Item) -> bool:
        until = self._given_to
        if until is None:
            return False
        return isinstance(item, Delivery) and item.stream in self._given_in and item.position <= until[2]

    def _log_goes_on(self, before: Origin, after: Origin) -> None:
        """What an earlier holder may have been given has the same positions in the later epoch."""
        if any(before <= origin <= after for origin in self._given_in) and before[0] == after[0]:
            self._given_in.add(after)

    def advance(self) -> None:
        """Acknowledge what is finished: all up to the first item that the application has not finished."""
        count, handed, marks, item = 0, self.handed, self._marks, None
        while handed and handed[0].is_done:
            item = handed.popleft().item
            count += 1
            if isinstance(item, Delivery):
                pub = item.pub  # its offset is higher than any before it of the same head
                marks[pub.head, pub.epoch] = pub.offset
                self.tally.saw(pub)
            else:
                for head, epoch, offset in item.last:
                    marks[head, epoch] = max(offset, marks.get((head, epoch), 0))
        if item is not None:
            self.acked = item.token
            self.stream.queue.consumed(count)

    def place(self, *, is_released: bool = False, was_cut_off: bool = False) -> msg.SlicePlace:
        """How far it has got: the stream itself, if the application has finished all that came."""
        token, marks = self.stream.token, self.stream.marks()
        if self.handed or self.events or token is None:
            token, marks = self.acked, self.acked_marks
        return msg.SlicePlace(
            self.slice, self.assignment, token, marks, is_released, was_cut_off, self.tally.count(), self.side
        )  # fmt: skip

    def drop(self) -> None:
        """Give the application nothing more: what waits here goes on from the place that is acknowledged."""
        self.events.clear()
        self.stream.queue.consumed(self.stream.queue.depth)

    # -- a session in which both sides cache

    @property
    def is_within_bounds(self) -> bool:
        """Whether what is cached is as much as may be, at most."""
        limits, queue = self._client.limits, self.stream.queue
        size = queue.depth_bytes + (self.cache.bytes if self.cache is not None else 0)
        count = len(self.events) + (len(self.cache.items) if self.cache is not None else 0)
        return count <= limits.slice_cache_records and size <= limits.slice_cache_bytes

    @property
    def is_cacheable(self) -> bool:
        """Whether its cache can be sent: it is attached, within the bounds, and without a gap."""
        return self.stream.token is not None and self.is_within_bounds and len(self.cached_items()) == len(self.events)

    def cached_items(self) -> list[Delivery]:
        """What has come and was not given."""
        return [event for event in self.events if isinstance(event, Delivery)]

    def go_on(self) -> None:
        """Give the application what comes, for nothing is asked any more."""
        if self.may_send_cache:
            self.is_stopping = self.may_send_cache = False
            self._items.ready(self)

    def merge(self, place: msg.SlicePlace) -> None:
        """The giver's cache is here: go on behind its place, with what either side has cached, once and in order."""
        if self.cache is None:
            return
        own = self.cached_items()
        merged = merged_caches(self.cache.items, own)
        self.stream.cached(self.cache.items)
        self.stream.queue.grow_by(len(merged) - len(own), self.cache.bytes)
        self.stream.items += len(merged) - len(own)
        self.counts["cached"] += len(merged)
        self.counts["cached_twice"] += len(self.cache.items) + len(own) - len(merged)
        self.events[:], self.cache = merged, None
        self.acked, self._marks = place.token, {(head, epoch): offset for head, epoch, offset in place.marks}
        self.tally = SliceTally(place.marks)

    # -- events

    def tell(self, event: SubscriberEvent) -> None:
        if isinstance(event, GapNotice):
            self.events.append(event)
            self._items.ready(self)
        elif isinstance(event, Failed):
            self._owner.slice_failed(self, event)

    def mark_ready(self) -> None:
        self._items.ready(self)


def count_finished(done: Iterable[HandedItem]) -> list[SliceSubscriber]:
    """The application has finished these items; returns the slices of which they are."""
    found: dict[SliceSubscriber, None] = {}
    for each in done:
        each.is_done = True
        owned = each.owned
        owned.finished += 1
        if each.finished_at > each.taken_at:
            owned.busy_seconds += each.finished_at - each.taken_at
        found[owned] = None
    for owned in found:
        owned.advance()
    return list(found)


def places(owned: Iterable[SliceSubscriber]) -> list[msg.SlicePlace]:
    """How far these slices have got."""
    return [each.place() for each in owned]
