"""Publishers at a head: whose names they are, over which link and under which handle each is open, and its last number.

Beside it are their credit (`client_credit.py`), quotas, rates and answers (`publisher_answers.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from plimsoll.core.config import BrokerLimits
from plimsoll.core.head.client_credit import ClientCredits
from plimsoll.core.head.client_share import ClientShares
from plimsoll.core.head.durability.journal import LogJournal
from plimsoll.core.head.durability.records import PublisherKnown
from plimsoll.core.head.open_publisher import OpenPublisher
from plimsoll.core.head.publisher_answers import PublisherAnswers
from plimsoll.core.head.publisher_quotas import PublisherQuotas
from plimsoll.core.head.publisher_rates import PublisherRates
from plimsoll.core.identity_shares import NamesByIdentity, has_share
from plimsoll.core.name_claims import ClaimTable, KnownClaim
from plimsoll.core.permissions import (
    NO_NAME_GRANTS,
    NOT_PERMITTED,
    NameGrants,
    client_of,
    foreign_name,
    incarnation_fault,
)
from plimsoll.core.protocol.messages import (
    NameClaim,
    Open,
    Opened,
    OpenReturning,
    OpenStandby,
    PublisherLeft,
    PublisherMarker,
    Refused,
    Unconfirmed,
)
from plimsoll.core.protocol.wire import WireError
from plimsoll.core.transport.link import Link

AnyOpen = Open | OpenReturning | OpenStandby

NOT_SEEN = float("inf")
"""When a publisher was last seen that is known from the log alone: times of another process mean nothing here."""


class PublisherPlaces:
    """Publishers by name, as many as a head remembers, and how many of them each identity has."""

    def __init__(self, most: int) -> None:
        self.by_name: NamesByIdentity[OpenPublisher] = NamesByIdentity()
        self._most = most

    def put(self, publisher: OpenPublisher) -> None:
        """Remember a publisher, in the place of the one that has its name."""
        self.by_name[publisher.name] = publisher

    def remove(self, publisher: OpenPublisher) -> None:
        del self.by_name[publisher.name]

    def refusal(self, link: Link, waiting: int = 0, own: int = 0) -> str:
        """Why the identity of a link can have no more names here; empty if it can.

        `waiting`: places kept for publishers that are to come; `own`: for those of this identity. Those that were
        closed count while they are remembered.
        """
        free, taken = self._most - len(self.by_name) - waiting, self.by_name.count(link.identity) + own
        if has_share(taken, free, leaves=link.has_key):
            return ""
        if free <= 0:
            return f"this head has its {self._most} publishers; open at another one"
        return f"this head has {taken} publishers of this identity, and {free} places left for others; open at another"


class PublisherTable:
    """All publishers of a head, by name, and by link and handle."""

    def __init__(
        self, limits: BrokerLimits, shares: ClientShares | None = None, claims: ClaimTable | None = None
    ) -> None:
        self.limits = limits
        self.claims = ClaimTable(limits.lease_seconds) if claims is None else claims
        self.credits = ClientCredits(ClientShares({}) if shares is None else shares, limits.publisher_window)
        self.places = PublisherPlaces(limits.max_publishers)
        self.by_name = self.places.by_name
        self._by_handle: dict[tuple[Link, int], OpenPublisher] = {}
        self.quotas = PublisherQuotas(limits)
        self.rates = PublisherRates(self.by_name)
        self.answers = PublisherAnswers(self.by_name, self.credits, limits.publisher_window)
        self.roles_refused = 0
        self.journal: LogJournal | None = None
        """Where a head with a log on a disk notes what it has to remember of publishers besides their publications."""

    def __len__(self) -> int:
        return len(self.by_name)

    def get(self, link: Link, handle: int) -> OpenPublisher | None:
        return self._by_handle.get((link, handle))

    def check(self, link: Link, opening: AnyOpen, names: NameGrants = NO_NAME_GRANTS) -> OpenPublisher | None:
        """The publisher that this one would go on as, or take the place of; None if its name is free.

        Raises:
            WireError: `full`; `role`: its identity may not publish, or not under this name; `range`: its incarnation.

        """
        if why := link.grant.publish_refusal:
            self.roles_refused += 1
            raise WireError(NOT_PERMITTED, why)
        known = self.by_name.get(opening.publisher)
        owner = self.claims.whose(opening.publisher) or (known.identity if known is not None else "")
        if not names.permits(link.identity, opening.publisher, owner):
            self.roles_refused += 1
            raise WireError(NOT_PERMITTED, foreign_name("publisher", opening.publisher))
        is_own = known is not None and known.identity == link.identity
        if fault := incarnation_fault(opening.incarnation, known.incarnation if known is not None and is_own else 0):
            raise WireError("range", fault)
        if known is None and (why := self.places.refusal(link)):
            raise WireError("full", why)
        return known

    def open(
        self, link: Link, opening: AnyOpen, head: str, epoch: int, now: float, names: NameGrants = NO_NAME_GRANTS
    ) -> Opened | PublisherLeft | None:
        """Open or re-open a publisher; None if its name is used by a newer incarnation.

        Raises:
            WireError: as `check`.

        """
        known = self.check(link, opening, names)
        is_own = known is not None and known.identity == link.identity
        if known is not None and is_own and known.incarnation > opening.incarnation:
            return None
        if known is not None and is_own and known.incarnation == opening.incarnation and known.left:
            if not isinstance(opening, OpenReturning):
                return PublisherLeft(opening.handle, known.left, known.last_seq)
            known.left = ""
            self._note(known)
        if known is not None:
            self._unbind(known)
        if (other := self._by_handle.get((link, opening.handle))) is not None:
            self._unbind(other)
        # What its owner has under way counts against it, though the client may have another name by now.
        before, earlier = known.client if known is not None and is_own and known.client.publishers else None, None
        if known is None or not is_own or known.incarnation < opening.incarnation:
            earlier, known = known, self._new(opening.publisher, opening.incarnation, link.identity, now)
            known.since = earlier.since if earlier is not None and is_own else 0
            self._claim(known, now, names)
            self._note(known)
        else:
            self._claim(known, now, names)
        self.credits.join(known, client_of(link.identity, link.name), before)
        if earlier is not None:
            self.credits.forget(earlier)
        known.link, known.handle, known.seen_at = link, opening.handle, now
        self._by_handle[link, opening.handle] = known
        known.through, known.answered = max(known.through, known.last_seq), 0
        self.quotas.share(known, link.grant, now)
        self.answers.opened(known, now)
        return Opened(opening.handle, head, epoch, known.last_seq, known.through)

    def _claim(self, publisher: OpenPublisher, now: float, names: NameGrants) -> None:
        """Note that its identity has its name, and since when; of names with a prefix that is granted this is known."""
        if publisher.identity and not names.holders(publisher.name):
            publisher.since = publisher.since or self.claims.since(publisher.name, publisher.identity, now)
            self.claims.use(publisher.name, publisher.identity, publisher.since, now)

    def hear(self, said: NameClaim, source: str, now: float) -> str:
        """Take in what a broker says of a name; returns the identity that has it now."""
        known = self.by_name.get(said.name)
        is_used = known is not None and known.link is not None and known.since
        unkept = KnownClaim(known.identity, known.since, now) if known is not None and is_used else None
        return self.claims.hear(said, source, now, unkept)

    def still_used(self, names: Iterable[str], now: float, grants: NameGrants) -> None:
        """Repeat the claims of those of these publishers that are open."""
        for name in names:
            publisher = self.by_name.get(name)
            if publisher is not None and publisher.link is not None:
                publisher.seen_at = now
                self._claim(publisher, now, grants)

    def lose(self, publisher: OpenPublisher) -> None:
        """Its name is another identity's: nothing of it is remembered."""
        self._unbind(publisher)
        self.credits.forget(publisher)
        self.places.remove(publisher)

    def _unbind(self, publisher: OpenPublisher) -> None:
        self.credits.leave(publisher)
        if publisher.link is not None:
            self._by_handle.pop((publisher.link, publisher.handle), None)
            publisher.link = None
            self.quotas.leave(publisher)

    def _new(self, name: str, incarnation: int, identity: str, now: float) -> OpenPublisher:
        publisher = OpenPublisher(name, incarnation, identity, own=self.quotas.own(now))
        self.places.put(publisher)
        return publisher

    # -- what outlasts a restart of a head with a log on a disk

    def _note(self, publisher: OpenPublisher) -> None:
        if self.journal is not None:
            self.journal.publisher(_known(publisher))

    def remembered(self) -> Iterator[tuple[str, PublisherKnown]]:
        """All publishers by name, as the log remembers them."""
        return ((name, _known(publisher)) for name, publisher in self.by_name.items())

    def restore(self, known: PublisherKnown, exceptions: deque[Refused | Unconfirmed]) -> None:
        """Remember a publisher of an earlier epoch of this head: it opens again, and goes on behind its last number."""
        publisher = self._new(known.name, known.incarnation, known.identity, 0.0)
        publisher.seen_at = NOT_SEEN
        publisher.left, publisher.arrived = known.left, known.arrived
        publisher.since = known.since
        publisher.last_seq = publisher.through = known.last_seq
        publisher.singled_out = exceptions

    # -- moves between heads

    def leave(self, publisher: OpenPublisher) -> None:
        """It has left for another head; its last number is remembered, for it may ask for it, or return."""
        self._unbind(publisher)
        self.credits.give_back(publisher)
        publisher.left, publisher.moving, publisher.arrived = publisher.moving, "", ""
        self._note(publisher)

    def arrive(self, marker: PublisherMarker, now: float, names: NameGrants = NO_NAME_GRANTS) -> bool:
        """Let the bearer of this name go on here behind its last number; False if it is open here, or in a later life.

        A name that another identity has here stays with that one.
        """
        known = self.by_name.get(marker.publisher)
        if not names.permits(marker.identity, marker.publisher, self.claims.whose(marker.publisher)):
            return False
        if known is not None:
            if known.identity != marker.identity or known.incarnation > marker.incarnation:
                return False
            if known.link is not None and known.incarnation == marker.incarnation:
                return False
            self._unbind(known)
            self.credits.forget(known)
        elif len(self.by_name) >= self.limits.max_publishers:
            return False
        publisher = self._new(marker.publisher, marker.incarnation, marker.identity, now)
        publisher.arrived = marker.session
        publisher.last_seq = publisher.through = marker.last_seq
        publisher.seen_at = now
        self._claim(publisher, now, names)
        self._note(publisher)
        return True

    def listed(self, after: str, most: int) -> tuple[list[OpenPublisher], bool]:
        """Open publishers by name, after this one, and whether there are more."""
        names = sorted(name for name, each in self.by_name.items() if name > after and each.link is not None)
        return [self.by_name[name] for name in names[:most]], len(names) > most

    # -- the end of a link or of a publisher

    def close(self, link: Link, handle: int) -> None:
        if (publisher := self._by_handle.get((link, handle))) is not None:
            self._unbind(publisher)
            self.credits.give_back(publisher)

    def links(self) -> list[Link]:
        """The links over which publishers are open, each once."""
        return list(dict.fromkeys(link for link, _ in self._by_handle))

    def lost(self, link: Link) -> list[OpenPublisher]:
        """A link is over; its publishers are remembered in case they open again."""
        lost = self._of(link)
        for publisher in lost:
            self._unbind(publisher)
        return lost

    def _of(self, link: Link) -> list[OpenPublisher]:
        return [publisher for (at, _), publisher in self._by_handle.items() if at is link]

    # -- what an identity may do

    def regranted(self, link: Link, now: float, names: NameGrants = NO_NAME_GRANTS) -> Iterator[Refused]:
        """Apply the new permissions of a link: a new quota, or a REFUSED for each if it may not publish."""
        for publisher in self._of(link):
            if why := link.grant.publish_refusal or _lost_name(link, publisher.name, names):
                self.roles_refused += 1
                self._unbind(publisher)
                yield Refused(publisher.handle, 0, NOT_PERMITTED, why)
            else:
                self.quotas.share(publisher, link.grant, now)
                self.answers.touch(publisher.name)

    def forget_idle(self, now: float, seconds: float) -> None:
        """Forget publishers that have been away for more than `seconds`; restored ones from the first call on."""
        for publisher in [p for p in self.by_name.values() if p.seen_at == NOT_SEEN]:
            publisher.seen_at = now
        for publisher in [p for p in self.by_name.values() if p.link is None and now - p.seen_at > seconds]:
            self.places.remove(publisher)
            self.credits.forget(publisher)

    # -- one publication

    def took(self, publisher: OpenPublisher, seq: int, size: int, now: float) -> None:
        """A publication has been logged, or refused for good."""
        publisher.last_seq, publisher.seen_at = seq, now
        self.rates.count(publisher, size)
        self.credits.took(publisher, size)
        self.quotas.spend(publisher, size, now)
        self.answers.touch(publisher.name)


def _known(publisher: OpenPublisher) -> PublisherKnown:
    return PublisherKnown(
        publisher.name, publisher.incarnation, publisher.identity, publisher.last_seq, publisher.left,
        publisher.arrived, publisher.since,
    )  # fmt: skip


def _lost_name(link: Link, name: str, names: NameGrants) -> str:
    """Why an open publisher may not go on under its name: a prefix of it is granted to others now."""
    return "" if names.permits(link.identity, name, link.identity) else foreign_name("publisher", name)
