"""What a head and its neighbours and edges tell one another of names: whose they are, in the whole fleet.

Claims go ahead of reports: a head that has restarted takes no publisher before it has those that are known elsewhere.
Who loses a name that another identity had first is refused, and the publications that it has still to send with it.

The name of a subscriber is in use as long as a head has an owner entry of it, so while it is away, too. It is over when
the subscriber has ended here; who has it at another head by then says so again. Slices are their groups', and have no
claims.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from itertools import islice
from typing import Any, Protocol

from plimsoll.core.head.durable_places import DurablePlaces, note_claim
from plimsoll.core.head.outbox import Outbox
from plimsoll.core.head.outboxes import Outboxes
from plimsoll.core.head.ownership import OwnerEntry, OwnershipTable
from plimsoll.core.head.part import HeadPart
from plimsoll.core.head.publisher_moves import PublisherMoves
from plimsoll.core.head.publishers import PublisherTable
from plimsoll.core.head.record_handlers import RecordHandlers
from plimsoll.core.name_claims import ClaimTable, KnownClaim, in_records
from plimsoll.core.permissions import NOT_PERMITTED, NameGrants, foreign_name
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.slice_names import slice_of_name
from plimsoll.core.transport.link import NEVER, Link

REPEATED_AT_LEAST = 256
"""Claims in use that are repeated in one step; more if that would take longer than a lease."""

RESERVE_SECONDS = 1.0
"""For how long the name of a subscriber that has ended goes to no other identity: who uses it at another head has said
so by then."""


class ClaimContext(Protocol):
    """The parts of a head that have to do with names."""

    now: float
    publishers: PublisherTable
    publisher_moves: PublisherMoves
    owners: OwnershipTable
    durable_places: DurablePlaces
    subscriber_claims: ClaimTable
    outboxes: Outboxes
    name_grants: NameGrants
    counters: Counter[str]

    def say(self, link: Link, record: msg.ToClient) -> None: ...


class RepeatTurns:
    """Which of the names in use are repeated next: all of them once in a lease."""

    def __init__(self, lease_seconds: float) -> None:
        self.lease_seconds = lease_seconds
        self._left: Iterator[str] = iter(())
        self._step = REPEATED_AT_LEAST
        self._begins_at = 0.0

    def next(self, names: Collection[str], now: float) -> list[str]:
        """Some of these names."""
        some = list(islice(self._left, self._step))
        if not some and now >= self._begins_at:
            self._begins_at = now + self.lease_seconds
            self._step = max(REPEATED_AT_LEAST, len(names) // 50)
            self._left = iter(list(names))
            some = list(islice(self._left, self._step))
        return some


class ClaimExchange(HeadPart):
    """Claims between this head and others. `lease_seconds`: how often those in use are repeated."""

    def __init__(self, host: ClaimContext, lose_subscriber: Callable[[str], None], lease_seconds: float) -> None:
        self.host, self._lose_subscriber = host, lose_subscriber
        self._publishers, self._subscribers = RepeatTurns(lease_seconds), RepeatTurns(lease_seconds)
        self._began: int | None = None

    def register(self, handlers: RecordHandlers) -> None:
        handlers.of_brokers.add(msg.NameClaims, self.on_claims)

    # -- from others

    def on_claims(self, outbox: Outbox, said: msg.NameClaims) -> None:
        host = self.host
        self.settle()
        for claim in said.publishers:
            if not host.name_grants.holders(claim.name):  # the prefixes that are granted say whose those are
                owner = host.publishers.hear(claim, outbox.key, host.now)
                self._end_others(claim.name, owner)
        for claim in said.subscribers:
            if not host.name_grants.holders(claim.name):
                self._hear_subscriber(outbox.key, claim)

    def _hear_subscriber(self, source: str, claim: msg.NameClaim) -> None:
        host, entry = self.host, self.host.owners.entries.get(claim.name)
        is_used = entry is not None and entry.claimed
        unkept = KnownClaim(entry.identity, entry.claimed, host.now) if entry is not None and is_used else None
        owner = host.subscriber_claims.hear(claim, source, host.now, unkept)
        if claim.is_over and entry is not None and entry.identity == claim.identity:
            self._claim(claim.name)  # it goes on here
        else:
            self._end_other_subscriber(claim.name, owner)

    def _end_others(self, name: str, owner: str) -> None:
        """Another identity has had this name before the publisher of this head has."""
        host, known = self.host, self.host.publishers.by_name.get(name)
        if known is None or not owner or known.identity in ("", owner):
            return
        host.counters["names_lost"] += 1
        if known.link is not None:
            host.say(known.link, msg.Refused(known.handle, 0, NOT_PERMITTED, foreign_name("publisher", name)))
        host.publisher_moves.link_lost([known])
        host.publishers.lose(known)

    def _end_other_subscriber(self, name: str, owner: str) -> None:
        """Another identity has had this name before the subscriber of this head has."""
        entry = self.host.owners.entries.get(name)
        if entry is not None and owner and entry.identity not in ("", owner):
            self.host.counters["names_lost"] += 1
            self._lose_subscriber(name)

    # -- subscribers of this head

    def settle(self) -> None:
        """Claim the names of subscribers that have come, and give up those of subscribers that have ended."""
        host = self.host
        if self._began is None:
            self._began = host.subscriber_claims.since("", "", host.now)
        if not host.owners.has_names:
            return
        for name, gone in host.owners.take_ended().items():
            entry = host.owners.entries.get(name)
            if gone.identity and (entry is None or entry.identity != gone.identity):
                host.subscriber_claims.end(name, gone.identity, gone.claimed, host.now)
        for name in host.owners.take_taken():
            self._claim(name)

    def _claim(self, name: str) -> None:
        host, entry = self.host, self.host.owners.entries.get(name)
        if entry is None or not entry.identity or slice_of_name(name) is not None or host.name_grants.holders(name):
            return
        claims, identity = host.subscriber_claims, entry.identity
        since = claims.since(name, identity, host.now, entry.claimed)
        owner = claims.use(name, identity, since, host.now)
        if owner != identity:
            self._end_other_subscriber(name, owner)
            return
        known = claims.by_name.get(name)
        since = since if known is None else known.since
        if since != entry.claimed:
            host.owners.claimed(name, since)
            note_claim(host.durable_places, name, since)

    def outranks(self, name: str, loser: OwnerEntry) -> None:
        """An edge has served this name before another identity took it, since when this head had forgotten all."""
        if self._began is not None and loser.claimed >= self._began:
            self.host.owners.claimed(name, loser.claimed - 1)

    # -- to others

    def tell_all(self, outbox: Outbox) -> None:
        """Tell a broker on a new link all that is known here."""
        self.settle()
        host = self.host
        for record in in_records(host.publishers.claims.all(host.now), host.subscriber_claims.all(host.now)):
            host.outboxes.send_first(outbox, record)

    def tick(self) -> None:
        self.settle()
        if not self._has_news:
            return
        host = self.host
        publishers = host.publishers.claims.take_news(host.now)
        subscribers = host.subscriber_claims.take_news(host.now)
        for key, outbox in host.outboxes.by_key.items():
            if outbox.is_head or outbox.keeps_claims:
                of_others = ([claim for source, claim in news if source != key] for news in (publishers, subscribers))
                for record in in_records(*of_others):
                    host.outboxes.send_first(outbox, record)

    @property
    def _has_news(self) -> bool:
        return self.host.publishers.claims.has_news or self.host.subscriber_claims.has_news

    def wake_at(self) -> float:
        return self.host.now if self._has_news else NEVER

    # -- time

    def expire(self) -> None:
        """Repeat some of the claims in use, and forget those that are not."""
        host = self.host
        host.publishers.still_used(self._publishers.next(host.publishers.by_name, host.now), host.now, host.name_grants)
        for name in self._subscribers.next(host.owners.entries, host.now):
            self._claim(name)
        host.publishers.claims.expire(host.now)
        host.subscriber_claims.expire(host.now)

    def status(self) -> dict[str, Any]:
        tables = (self.host.publishers.claims, self.host.subscriber_claims)
        return {"name_claims": sum(map(len, tables)), "name_claims_dropped": sum(each.dropped for each in tables)}
