"""Places of subscribers that have a later one at another head: a hand-over was interrupted, and both heads keep one.

Rules (tests/exploration/place_elsewhere.py has each of them, and what breaks without it):
- A head whose place no edge serves asks all other heads, again and again, each time after twice as long.
- A place with a later epoch counts for more, unless it is a guest's: the cut that made it may yet be undone.
- A guest's place counts for less than another one with its epoch, and for less than that of the source, one epoch
  below, which serves its subscriber.
- What the answer ends is the place that was asked about. One that is served by now stays.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple, Protocol

from plimsoll.core.config import BrokerConfig
from plimsoll.core.head.durability.records import PlaceKept
from plimsoll.core.head.durable_places import ELSEWHERE, DurablePlaces
from plimsoll.core.head.handover.coordinator import Coordinator
from plimsoll.core.head.ownership import AWAY_KEY, OwnershipTable
from plimsoll.core.head.part import HeadPart
from plimsoll.core.head.record_handlers import RecordHandlers
from plimsoll.core.head.router import TreeRouter
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import OwnerEpoch

LONGEST_WAIT_SECONDS = 3600.0
PLACES_OF_A_QUERY = 500
QUERY_BYTES = 64 * 1024
"""A query is no longer than this, or has one place: a frame that is too long for a head would end the link."""
PLACES_AT_MOST = 20_000
"""A round answers queries about this number of places; their senders repeat the others."""
_ITEM_BYTES = 32
"""What a place takes in a query beside its names."""


class ElsewhereContext(Protocol):
    """The parts of a head that say where a subscriber is."""

    now: float
    config: BrokerConfig
    coordinator: Coordinator
    durable_places: DurablePlaces
    owners: OwnershipTable
    router: TreeRouter

    @property
    def is_starting(self) -> bool: ...


class Asked(NamedTuple):
    """When a place of this epoch is asked about again, and how long after that."""

    epoch: OwnerEpoch
    at: float
    wait_seconds: float


class PlacesElsewhere(HeadPart):
    """Asks about places here that no edge serves, and answers other heads."""

    def __init__(self, host: ElsewhereContext) -> None:
        self.host = host
        self._asked: dict[str, Asked] = {}
        self._queries: list[tuple[str, msg.PlaceQuery]] = []
        self._queried = 0

    def register(self, handlers: RecordHandlers) -> None:
        handlers.of_heads.add(msg.PlaceQuery, self.on_query)
        handlers.of_heads.add(msg.PlaceReply, self.on_reply)

    # -- asking

    def expire(self) -> None:
        host = self.host
        unserved = [place for place in host.durable_places.away() if self._is_unserved(place)]
        kept = {place.subscriber for place in unserved}
        self._asked = {x: asked for x, asked in self._asked.items() if x in kept}
        due = _of_one_query(place for place in unserved if self._is_due(place))
        if due and not host.is_starting and host.router.send_to_all(msg.PlaceQuery([_item(place) for place in due])):
            for place in due:
                self._wait(place)

    def _is_unserved(self, place: PlaceKept) -> bool:
        entry = self.host.owners.entries.get(place.subscriber)
        return entry is not None and (entry.key, entry.epoch) == (AWAY_KEY, place.epoch)

    def _is_due(self, place: PlaceKept) -> bool:
        asked = self._asked.get(place.subscriber)
        return asked is None or asked.epoch != place.epoch or self.host.now >= asked.at

    def _wait(self, place: PlaceKept) -> None:
        config, asked = self.host.config, self._asked.get(place.subscriber)
        wait = config.limits.lease_seconds * config.time_factor
        if asked is not None and asked.epoch == place.epoch:
            wait = min(2 * asked.wait_seconds, LONGEST_WAIT_SECONDS * config.time_factor)
        self._asked[place.subscriber] = Asked(place.epoch, self.host.now + wait, wait)

    def on_reply(self, _source: str, _edge: str, reply: msg.PlaceReply) -> None:
        """End the places here that count for less."""
        for item in reply.places:
            place = self.host.durable_places.kept.get(item.subscriber)
            if place is not None and place.left_at and self._is_unserved(place) and counts_more(item, _item(place)):
                self.host.durable_places.lapse(item.subscriber, ELSEWHERE)

    # -- answering

    def on_query(self, source: str, _edge: str, query: msg.PlaceQuery) -> None:
        if self._queried + len(query.places) <= PLACES_AT_MOST:
            self._queried += len(query.places)
            self._queries.append((source, query))

    def tick(self) -> None:
        """Answer what came in this round, when what edges said in it has been taken in."""
        queries, self._queries, self._queried = self._queries, [], 0
        if self.host.is_starting:
            return
        for source, query in queries:
            if found := [mine for item in query.places if (mine := self._better(item)) is not None]:
                self.host.router.send(source, msg.PlaceReply(found))

    def _better(self, asked: msg.PlaceItem) -> msg.PlaceItem | None:
        """The place here, if it counts for more than the one that another head asks about."""
        place = self.host.durable_places.kept.get(asked.subscriber)
        entry = self.host.owners.entries.get(asked.subscriber)
        if place is None or entry is None or entry.epoch != place.epoch or not entry.is_of(asked.identity):
            return None
        mine = _item(place)
        if not counts_more(mine, asked):
            return None
        is_served = entry.key != AWAY_KEY and not place.left_at
        return mine if mine.epoch >= asked.epoch or (is_served and not self._is_leaving(asked.subscriber)) else None

    def _is_leaving(self, subscriber: str) -> bool:
        return self.host.coordinator.table.is_busy(subscriber)


def _of_one_query(places: Iterable[PlaceKept]) -> list[PlaceKept]:
    found: list[PlaceKept] = []
    left = QUERY_BYTES
    for place in islice(places, PLACES_OF_A_QUERY):
        left -= len(place.subscriber.encode()) + len(place.identity.encode()) + _ITEM_BYTES
        if found and left < 0:
            break
        found.append(place)
    return found


def _item(place: PlaceKept) -> msg.PlaceItem:
    return msg.PlaceItem(place.subscriber, place.epoch, place.identity, place.is_guest)


def counts_more(one: msg.PlaceItem, other: msg.PlaceItem) -> bool:
    """Whether one place counts for more than another of the same subscriber, at another head."""
    incarnation, n = other.epoch
    return not one.is_guest and (one.epoch > other.epoch or (other.is_guest and one.epoch >= (incarnation, n - 1)))
