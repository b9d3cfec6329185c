"""Publishers at a head: identity, credit, quota, and an answer for every publication.

Acceptance is cumulative: `ACCEPTED through` answers all numbers up to one, except those refused singly. With
`confirm: edges` an answer waits until every edge that needs the publication has it, at most `confirm_seconds`; then it
names the edges that do not.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator

import msgspec

from plimsoll.core.config import BrokerLimits
from plimsoll.core.head.client_credit import ClientCredits
from plimsoll.core.head.client_share import ClientShares
from plimsoll.core.head.durability.journal import LogJournal
from plimsoll.core.head.durability.records import PublisherKnown
from plimsoll.core.head.open_publisher import OpenPublisher, PendingConfirmation, PublisherQuota
from plimsoll.core.permissions import (
    NO_NAME_GRANTS,
    NOT_PERMITTED,
    ClientPermissions,
    NameGrants,
    client_of,
    foreign_name,
    incarnation_fault,
)
from plimsoll.core.protocol.messages import (
    Accepted,
    Credit,
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
REPORTED_AT_MOST = 32
"""Publishers named in a load report."""


NOT_SEEN = float("inf")
"""When a publisher was last seen that is known from the log alone: times of another process mean nothing here."""


class PublisherTable:
    """All publishers of a head, by name, and by link and handle."""

    def __init__(self, limits: BrokerLimits, shares: ClientShares | None = None) -> None:
        self.limits = limits
        self.credits = ClientCredits(ClientShares({}) if shares is None else shares, limits.publisher_window)
        self.by_name: dict[str, OpenPublisher] = {}
        self._by_handle: dict[tuple[Link, int], OpenPublisher] = {}
        self._touched: dict[str, OpenPublisher] = {}
        self._raised: dict[OpenPublisher, None] = {}
        self._counted: list[OpenPublisher] = []
        self._shared: dict[str, tuple[ClientPermissions, PublisherQuota]] = {}  # by identity
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
        if not names.permits(link.identity, opening.publisher, known.identity if known is not None else ""):
            self.roles_refused += 1
            raise WireError(NOT_PERMITTED, foreign_name("publisher", opening.publisher))
        is_own = known is not None and known.identity == link.identity
        if fault := incarnation_fault(opening.incarnation, known.incarnation if known is not None and is_own else 0):
            raise WireError("range", fault)
        if known is None and len(self.by_name) >= self.limits.max_publishers:
            raise WireError("full", f"this head has its {self.limits.max_publishers} publishers; open at another one")
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
            earlier, known = known, self._new(opening.publisher, opening.incarnation, now)
            known.identity = link.identity
            self._note(known)
        self.credits.join(known, client_of(link.identity, link.name), before)
        if earlier is not None:
            self.credits.forget(earlier)
        known.link, known.handle, known.seen_at = link, opening.handle, now
        self._by_handle[link, opening.handle] = known
        known.through, known.answered = max(known.through, known.last_seq), 0
        self._share(known, link.grant, now)
        self._touched[known.name] = known
        self.credits.ask(known, now)
        self._raised |= dict.fromkeys(self.credits.give(now))
        self._raised.pop(known, None)  # OPENED says it
        return Opened(opening.handle, head, epoch, known.last_seq, known.through)

    def _unbind(self, publisher: OpenPublisher) -> None:
        self.credits.leave(publisher)
        if publisher.link is not None:
            self._by_handle.pop((publisher.link, publisher.handle), None)
            publisher.link = None
            if publisher.shared is not None:
                publisher.shared.sharers -= 1
                publisher.shared = None

    def _new(self, name: str, incarnation: int, now: float) -> OpenPublisher:
        limits = self.limits
        own = PublisherQuota.of(limits.publisher_rate_per_second, limits.publisher_bytes_per_second, now)
        publisher = self.by_name[name] = OpenPublisher(name, incarnation, own=own)
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
        publisher = self._new(known.name, known.incarnation, 0.0)
        publisher.seen_at = NOT_SEEN
        publisher.identity, publisher.left, publisher.arrived = known.identity, known.left, known.arrived
        publisher.last_seq = publisher.through = known.last_seq
        publisher.singled_out = exceptions

    # -- moves between heads

    def leave(self, publisher: OpenPublisher) -> None:
        """It has left for another head; its last number is remembered, for it may ask for it, or return."""
        self._unbind(publisher)
        self.credits.give_back(publisher)
        publisher.left, publisher.moving, publisher.arrived = publisher.moving, "", ""
        self._note(publisher)

    def arrive(self, marker: PublisherMarker, now: float) -> bool:
        """Let the bearer of this name go on here behind its last number; False if it is open here, or in a later life.

        A name that another identity has here stays with that one.
        """
        known = self.by_name.get(marker.publisher)
        if known is not None:
            if known.identity != marker.identity or known.incarnation > marker.incarnation:
                return False
            if known.link is not None and known.incarnation == marker.incarnation:
                return False
            self._unbind(known)
            self.credits.forget(known)
        elif len(self.by_name) >= self.limits.max_publishers:
            return False
        publisher = self._new(marker.publisher, marker.incarnation, now)
        publisher.identity, publisher.arrived = marker.identity, marker.session
        publisher.last_seq = publisher.through = marker.last_seq
        publisher.seen_at = now
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
                self._share(publisher, link.grant, now)

    def _share(self, publisher: OpenPublisher, grant: ClientPermissions, now: float) -> None:
        """Let a publisher draw on the quota of its identity where that has one, else on its own."""
        known = self._shared.get(grant.identity)
        if known is None or known[0] != grant:
            quota = PublisherQuota.of(grant.publications_per_second, grant.bytes_per_second, now)
            known = self._shared[grant.identity] = (grant, quota)
        shared, own = known[1], publisher.own or PublisherQuota(None, None)
        if publisher.shared is not shared:
            if publisher.shared is not None:
                publisher.shared.sharers -= 1
            publisher.shared = shared
            shared.sharers += 1
        publisher.messages, publisher.bytes = shared.messages or own.messages, shared.bytes or own.bytes
        self._touched[publisher.name] = publisher

    def forget_idle(self, now: float, seconds: float) -> None:
        """Forget publishers that have been away for more than `seconds`; restored ones from the first call on."""
        for publisher in [p for p in self.by_name.values() if p.seen_at == NOT_SEEN]:
            publisher.seen_at = now
        for name in [n for n, p in self.by_name.items() if p.link is None and now - p.seen_at > seconds]:
            self.credits.forget(self.by_name.pop(name))

    def again(self, name: str, handle: int) -> Iterator[Refused | Unconfirmed]:
        """The single answers that a publisher must have before the cumulative one, whose exceptions they are."""
        for answer in self.by_name[name].singled_out:
            yield msgspec.structs.replace(answer, handle=handle)

    # -- one publication

    def single_out(self, publisher: OpenPublisher, answer: Refused | Unconfirmed) -> None:
        """Remember an exception to cumulative acceptance; a client has at most a window of unanswered publications."""
        publisher.singled_out.append(answer)
        if len(publisher.singled_out) > self.limits.publisher_window:
            publisher.singled_out.popleft()

    def took(self, publisher: OpenPublisher, seq: int, size: int, now: float) -> None:
        """A publication has been logged, or refused for good."""
        publisher.last_seq, publisher.seen_at = seq, now
        if not publisher.publications:
            self._counted.append(publisher)
        publisher.publications += 1
        publisher.published_bytes += size
        publisher.total_publications += 1
        publisher.total_bytes += size
        self.credits.took(publisher, size)
        if publisher.messages is not None:
            publisher.messages.spend(1, now)
        if publisher.bytes is not None:
            publisher.bytes.spend(size, now)
        self._touched[publisher.name] = publisher

    def await_edges(self, publisher: OpenPublisher, seq: int) -> PendingConfirmation:
        """Let the answer to this publication, and to those after it, wait."""
        pending = PendingConfirmation(seq)
        publisher.pending.append(pending)
        self._touched[publisher.name] = publisher
        return pending

    def touch(self, *names: str) -> None:
        """Look at these publishers again at the end of the round."""
        for name in names:
            if (publisher := self.by_name.get(name)) is not None:
                self._touched[name] = publisher

    def rates(self, seconds: float) -> dict[str, int | dict[str, float]]:
        """The publishers of a load report: how many are remembered, and how many of them have not left; and the rates
        of those that sent most in these `seconds`.

        Counting starts over.
        """
        counted, self._counted = self._counted, []
        most = heapq.nsmallest(REPORTED_AT_MOST, counted, key=lambda each: (-each.publications, each.name))
        found: dict[str, int | dict[str, float]] = {
            "publishers": len(self.by_name),
            "publishers_open": sum(not each.left for each in self.by_name.values()),
            "publisher_rates": {each.name: each.publications / seconds for each in most},
            "publisher_bytes_per_second": {each.name: each.published_bytes / seconds for each in most},
        }
        for each in counted:
            each.publications = each.published_bytes = 0
        return found

    # -- answers, at the end of a round

    def answers(self, now: float) -> Iterator[tuple[Link, Accepted | Credit | Unconfirmed]]:
        """The answers that are due at the end of this round."""
        touched, self._touched = self._touched, {}
        for publisher in touched.values():
            if publisher.link is not None:
                yield from self._answer(publisher, publisher.link)
                self.credits.ask(publisher, now)
        if given := self.credits.give(now):
            self._raised |= dict.fromkeys(given)
        raised, self._raised = self._raised, {}
        for publisher in raised:
            if publisher.link is not None:
                yield publisher.link, Credit(publisher.handle, publisher.through)

    def _answer(self, publisher: OpenPublisher, link: Link) -> Iterator[tuple[Link, Accepted | Unconfirmed]]:
        while publisher.pending and not publisher.pending[0].missing:
            first = publisher.pending.popleft()
            if first.late:
                unconfirmed = Unconfirmed(publisher.handle, first.seq, first.late)
                self.single_out(publisher, unconfirmed)
                yield link, unconfirmed
        through = publisher.pending[0].seq - 1 if publisher.pending else publisher.last_seq
        if through > publisher.answered:
            publisher.answered = through
            yield link, Accepted(publisher.handle, through)

    def wake_at(self, now: float) -> float:
        """When a publisher that waits may be given credit again, if nothing comes before; infinity if none waits."""
        at = self.credits.wake_at()
        return max(at, now + 0.001) if at != float("inf") else at


def _known(publisher: OpenPublisher) -> PublisherKnown:
    return PublisherKnown(
        publisher.name, publisher.incarnation, publisher.identity, publisher.last_seq, publisher.left, publisher.arrived
    )


def _lost_name(link: Link, name: str, names: NameGrants) -> str:
    """Why an open publisher may not go on under its name: a prefix of it is granted to others now."""
    return "" if names.permits(link.identity, name, link.identity) else foreign_name("publisher", name)
