"""Places that a head keeps itself, of subscribers that may stay away for longer than an edge keeps theirs.

Rules (tests/exploration/durable_place.py has each of them, and what breaks without it):
- A place is the list of a subscriber and the owner epoch that it has. It counts once that epoch owns the subscriber.
- The list is covered by the head itself, beside what edges announce: so neighbours go on sending what it asks for,
  whatever becomes of the edge. It is not matched, since the log has everything.
- What an edge keeps ends after its lease, as ever; the owner entry goes on without a link (`AWAY_KEY`).
- All of it is in a log on a disk, and covered again before neighbours are told anything.
- A place ends by withdrawal, by the end of its lease, and when its identity holds back more of the log than it may;
  and when its subscriber has a later one at another head (`places_elsewhere.py`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any, Protocol

from msgspec.structs import replace

from plimsoll.core.config import BrokerConfig
from plimsoll.core.head.cover_updates import CoverUpdates
from plimsoll.core.head.durability.journal import LogJournal
from plimsoll.core.head.durability.records import PlaceEnded, PlaceKept, SubscriberLeft, TimeMark
from plimsoll.core.head.durability.time_index import TimeIndex
from plimsoll.core.head.log import Log
from plimsoll.core.head.outbox import Outbox
from plimsoll.core.head.ownership import AWAY_KEY, OwnerEntry, OwnershipTable
from plimsoll.core.head.part import HeadPart
from plimsoll.core.head.place_covers import PlaceCovers
from plimsoll.core.head.place_lists import PlaceLists
from plimsoll.core.head.record_handlers import RecordHandlers
from plimsoll.core.protocol import messages as msg
from plimsoll.core.transport.load_reporter import LoadReporter

REPORTED_AT_MOST = 100
"""Subscribers that are away in a load report: those that are farthest behind."""


ELSEWHERE = "places_elsewhere"
"""The counter of places that have ended because their subscribers have later ones at other heads."""


class PlacesContext(Protocol):
    """The parts of a head that places depend on."""

    now: float
    config: BrokerConfig
    counters: Counter[str]
    journal: LogJournal | None
    log: Log
    covers: CoverUpdates
    owners: OwnershipTable
    reporter: LoadReporter


class DurablePlaces(HeadPart):
    """`kept`: the places, by subscriber; `left_at` of one is 0 while an edge serves it."""

    def __init__(self, host: PlacesContext) -> None:
        self.host = host
        self.kept: dict[str, PlaceKept] = {}
        self.times = TimeIndex()
        self._lists = PlaceLists(host.owners)
        self._covers = PlaceCovers(host.covers)
        self._found = 0

    def register(self, handlers: RecordHandlers) -> None:
        handlers.of_brokers.add(msg.KeepPlace, self.on_keep)
        handlers.of_brokers.add(msg.PlaceLeft, self.on_left)

    @property
    def unix_now(self) -> float:
        """Seconds since 1970: leases and times outlast the process."""
        return self.host.now + self.host.reporter.clock_offset_seconds

    # -- a head that starts

    def restore(self) -> None:
        """Take over what the disk says; each place is the owner of its subscriber until an edge says that it is."""
        if self.host.journal is None:
            return
        state = self.host.journal.state
        self.times, self._found = state.times, state.position
        for place in state.places.values():
            self.kept[place.subscriber] = place
            kept = OwnerEntry(AWAY_KEY, place.epoch, place.since, place.is_again, place.identity, place.claimed)
            self.host.owners.adopt(place.subscriber, kept)
            self._covers.cover(place.subscriber, place.texts)

    def on_ready(self) -> None:
        """Those that no edge has reported went away when the head did, or before."""
        for x, place in list(self.kept.items()):
            entry = self.host.owners.entries.get(x)
            if entry is not None and entry.key == AWAY_KEY and not place.left_at:
                self._leave(x, self._found)

    # -- what edges say

    def on_keep(self, outbox: Outbox, keep: msg.KeepPlace) -> None:
        """Take a list, in parts; it counts once its link and epoch own the subscriber."""
        if self._lists.receive(outbox.key, keep):
            self._settle(outbox.key, keep.subscriber)

    def attached(self, key: str, subscriber: str) -> None:
        """A RESUME through this link has become the owner; one that asks for no place gives its place up."""
        if (key, subscriber) in self._lists.staged:
            self._settle(key, subscriber)
        else:
            self.end(subscriber)

    def _settle(self, key: str, subscriber: str) -> None:
        if (settled := self._lists.settled(key, subscriber)) is not None:
            self._put(*settled)

    def _put(self, keep: msg.KeepPlace, entry: OwnerEntry) -> None:
        x, limits = keep.subscriber, self.host.config.limits
        before = self.kept.get(x)
        others = sum(place.identity == entry.identity for place in self.kept.values()) - (before is not None)
        lease_seconds = min(keep.lease_seconds, limits.longest_lease_seconds)
        if others >= (keep.most_places or limits.max_durable_subscribers) or lease_seconds <= limits.lease_seconds:
            self.host.counters["places_refused"] += lease_seconds > limits.lease_seconds
            self.end(x)
            return
        place = PlaceKept(
            x, entry.identity, entry.epoch, entry.since, lease_seconds, keep.texts,
            keep.most_bytes or limits.max_held_back_bytes, is_guest=keep.is_guest, is_again=entry.is_again,
            claimed=entry.claimed,
        )  # fmt: skip
        if keep.left is not None:
            place = replace(place, left_at=self.unix_now, position=keep.left)
        if place != before:
            self._covers.cover(x, place.texts)
            self.kept[x] = place
            if self.host.journal is not None:
                self.host.journal.pending.append(place)

    def on_left(self, outbox: Outbox, left: msg.PlaceLeft) -> None:
        """An edge says that a subscriber has gone away."""
        entry = self.host.owners.entries.get(left.subscriber)
        if entry is not None and (entry.key, entry.epoch) == (outbox.key, left.epoch) and left.subscriber in self.kept:
            self._leave(left.subscriber, left.position)

    def broker_lost(self, outbox: Outbox) -> None:
        """All that an edge served have gone away with it."""
        self._lists.lost(outbox.key)
        for x, place in list(self.kept.items()):
            entry = self.host.owners.entries.get(x)
            if entry is not None and entry.key == outbox.key and not place.left_at:
                self._leave(x, self.host.log.last)

    def _leave(self, subscriber: str, position: int) -> None:
        left = SubscriberLeft(subscriber, self.unix_now, position)
        self.kept[subscriber] = replace(self.kept[subscriber], left_at=left.left_at, position=position)
        if self.host.journal is not None:
            self.host.journal.pending.append(left)

    # -- the end of a place

    def is_kept(self, subscriber: str) -> bool:
        return subscriber in self.kept

    def is_away(self, subscriber: str) -> bool:
        """Whether a place is kept for it, and its client has gone."""
        return subscriber in self.kept and bool(self.kept[subscriber].left_at)

    def arrived(self, subscriber: str) -> None:
        """A hand-over has brought it here for good."""
        place = self.kept.get(subscriber)
        if place is not None and place.is_guest:
            self.kept[subscriber] = arrived = replace(place, is_guest=False)
            if self.host.journal is not None:
                self.host.journal.pending.append(arrived)

    def lease_seconds(self, subscriber: str) -> float:
        """For how long its place is kept while it is away; 0 if the head keeps none."""
        place = self.kept.get(subscriber)
        return place.lease_seconds if place is not None else 0.0

    def end(self, subscriber: str) -> None:
        """Keep no place for a subscriber any more, if there is one."""
        if self.kept.pop(subscriber, None) is None:
            return
        self._covers.cover(subscriber, [])
        if self.host.journal is not None:
            self.host.journal.pending.append(PlaceEnded(subscriber))

    def lapse(self, subscriber: str, counter: str) -> None:
        """End the place of a subscriber that is away, and its owner entry if no edge has it."""
        self.host.counters[counter] += 1
        self.end(subscriber)
        entry = self.host.owners.entries.get(subscriber)
        if entry is not None and entry.key == AWAY_KEY:
            self.host.owners.forget(subscriber, self.host.now, ends_name=counter != ELSEWHERE)

    # -- time

    def tick(self) -> None:
        host = self.host
        for x in host.owners.take_forgotten():
            if x not in host.owners.entries:
                self.end(x)  # it has moved to another head: in the log before a crash can bring it back
        for key in list(self._lists.staged):
            self._settle(*key)  # a hand-over may have made its link the owner
        if self.times.is_due(self.unix_now, host.log.last):
            self.times.note(self.unix_now, host.log.last)
            if host.journal is not None:
                host.journal.pending.append(TimeMark(self.unix_now, host.log.last))

    def expire(self) -> None:
        host, now = self.host, self.unix_now
        self.times.evicted(host.log.first)
        self._lists.drop_refused()
        for x, place in list(self.kept.items()):
            if place.left_at and now - place.left_at > place.lease_seconds * host.config.time_factor:
                self.lapse(x, "places_expired")
        self._hold_back_less()

    def _hold_back_less(self) -> None:
        """Those that hold back more than their identity may: the ones that are farthest behind lose their places."""
        held: defaultdict[str, int] = defaultdict(int)
        for place in sorted(self.away(), key=lambda each: (-each.position, each.subscriber)):
            held[place.identity] = max(held[place.identity], self.held_bytes(place))
            if held[place.identity] > place.most_bytes:
                self.lapse(place.subscriber, "places_over_bytes")

    # -- what is known of those that are away

    def away(self) -> list[PlaceKept]:
        """The places of subscribers that are away, by name."""
        return [place for _, place in sorted(self.kept.items()) if place.left_at]

    def held_bytes(self, place: PlaceKept) -> int:
        """The bytes of the log that a subscriber has still to be sent, as far as the log has them."""
        return self.host.log.bytes_after(place.position)

    def report(self) -> dict[str, Any]:
        away = sorted(self.away(), key=lambda place: (place.position, place.subscriber))
        return {
            **self.status(),
            "away": [_described(place, self.host.log, self.unix_now) for place in away[:REPORTED_AT_MOST]],
        }

    def status(self) -> dict[str, Any]:
        away = self.away()
        return {
            "durable_subscribers": len(self.kept),
            "subscribers_away": len(away),
            "away_held_bytes": max(map(self.held_bytes, away), default=0),
        }


def note_claim(places: DurablePlaces, subscriber: str, since: int) -> None:
    """The name of a subscriber is its identity's since then: with a place that outlasts a restart, too."""
    place = places.kept.get(subscriber)
    if place is not None and place.claimed != since:
        places.kept[subscriber] = claimed = replace(place, claimed=since)
        if places.host.journal is not None:
            places.host.journal.pending.append(claimed)


def _described(place: PlaceKept, log: Log, unix_now: float) -> dict[str, Any]:
    """The place of a subscriber that is away, for a load report."""
    return {
        "name": place.subscriber,
        "identity": place.identity,
        "away_seconds": max(0.0, unix_now - place.left_at),
        "lease_seconds": place.lease_seconds,
        "behind": max(0, log.last - place.position),
        "held_bytes": log.bytes_after(place.position),
        "missed": max(0, log.first - 1 - place.position),
        "subscriptions": len(place.texts),
    }
