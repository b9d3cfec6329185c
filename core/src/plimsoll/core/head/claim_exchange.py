"""What a head and its neighbours and edges tell one another of names: whose they are, in the whole fleet.

Claims go ahead of reports: a head that has restarted takes no publisher before it has those that are known elsewhere.
Who loses a name that another identity had first is refused, and the publications that it has still to send with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Protocol

from plimsoll.core.head.outbox import Outbox
from plimsoll.core.head.outboxes import Outboxes
from plimsoll.core.head.part import HeadPart
from plimsoll.core.head.publisher_moves import PublisherMoves
from plimsoll.core.head.publishers import PublisherTable
from plimsoll.core.head.record_handlers import RecordHandlers
from plimsoll.core.name_claims import in_records
from plimsoll.core.permissions import NOT_PERMITTED, NameGrants, foreign_name
from plimsoll.core.protocol import messages as msg
from plimsoll.core.transport.link import NEVER, Link

REPEATED_AT_LEAST = 256
"""Claims in use that are repeated in one step; more if that would take longer than a lease."""


class ClaimContext(Protocol):
    """The parts of a head that have to do with names."""

    now: float
    publishers: PublisherTable
    publisher_moves: PublisherMoves
    outboxes: Outboxes
    name_grants: NameGrants
    counters: Counter[str]

    def say(self, link: Link, record: msg.ToClient) -> None: ...


class ClaimExchange(HeadPart):
    """Claims between this head and others. `lease_seconds`: how often those in use are repeated."""

    def __init__(self, host: ClaimContext, lease_seconds: float) -> None:
        self.host, self.lease_seconds = host, lease_seconds
        self._to_repeat: Iterator[str] = iter(())
        self._step = REPEATED_AT_LEAST
        self._repeats_at = 0.0

    def register(self, handlers: RecordHandlers) -> None:
        handlers.of_brokers.add(msg.NameClaims, self.on_claims)

    # -- from others

    def on_claims(self, outbox: Outbox, said: msg.NameClaims) -> None:
        host = self.host
        for claim in said.publishers:
            if not host.name_grants.holders(claim.name):  # the prefixes that are granted say whose those are
                owner = host.publishers.hear(claim, outbox.key, host.now)
                self._end_others(claim.name, owner)

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

    # -- to others

    def tell_all(self, outbox: Outbox) -> None:
        """Tell a broker on a new link all that is known here."""
        self._tell(outbox, self.host.publishers.claims.all(self.host.now))

    def _tell(self, outbox: Outbox, claims: Iterable[msg.NameClaim]) -> None:
        for record in in_records(claims):
            self.host.outboxes.send_first(outbox, record)

    def tick(self) -> None:
        if not self.host.publishers.claims.has_news:
            return
        news = self.host.publishers.claims.take_news(self.host.now)
        for key, outbox in self.host.outboxes.by_key.items():
            if outbox.is_head or outbox.keeps_claims:
                self._tell(outbox, (claim for source, claim in news if source != key))

    def wake_at(self) -> float:
        return self.host.now if self.host.publishers.claims.has_news else NEVER

    # -- time

    def expire(self) -> None:
        """Repeat some of the claims in use, and forget those that are not."""
        host = self.host
        some = list(islice(self._to_repeat, self._step))
        if not some and host.now >= self._repeats_at:
            self._repeats_at = host.now + self.lease_seconds
            self._step = max(REPEATED_AT_LEAST, len(host.publishers) // 50)
            self._to_repeat = iter(list(host.publishers.by_name))
            some = list(islice(self._to_repeat, self._step))
        host.publishers.still_used(some, host.now, host.name_grants)
        host.publishers.claims.expire(host.now)

    def status(self) -> dict[str, Any]:
        claims = self.host.publishers.claims
        return {"name_claims": len(claims), "name_claims_dropped": claims.dropped}
