"""Publishers at a head: identity, credit, quota, and an answer for every publication.

Acceptance is cumulative: `ACCEPTED through` answers all up to a number that were not refused one by one. With
`confirm: edges` an
answer waits until every edge that needs the publication has it, at most `confirm_seconds`; then it names those that
do not.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from plimsoll.core.config import Limits
from plimsoll.core.grants import NOT_GRANTED, Grant
from plimsoll.core.link import Link
from plimsoll.core.load import Bucket
from plimsoll.core.records import Accepted, Credit, Open, Opened, Refused, Unconfirmed
from plimsoll.core.wire import WireError

REPORTED_AT_MOST = 32
"""So many publishers a load report names."""


@dataclass(slots=True)
class Pending:
    """A publication that waits for edges: `missing` while some may still confirm it, then `late` names the rest."""

    seq: int
    missing: bool = True
    late: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Quota:
    """What may be published in a second; `sharers` publish out of it now."""

    messages: Bucket | None
    bytes: Bucket | None
    sharers: int = 0

    @classmethod
    def of(cls, messages: float | None, octets: float | None, now: float) -> Quota:
        """A second's worth may be saved up; None: not limited."""
        first, second = (None if rate is None else Bucket(rate, max(rate, 1.0), now) for rate in (messages, octets))
        return cls(first, second)


@dataclass(slots=True)
class Publisher:
    """One publisher, as long as the head remembers it. `through`: the highest number that it may use."""

    name: str
    incarnation: int
    link: Link | None = None
    handle: int = 0
    last_seq: int = 0
    answered: int = 0
    through: int = 0
    messages: Bucket | None = None
    bytes: Bucket | None = None
    own: Quota | None = None
    shared: Quota | None = None
    is_held: bool = False
    pending: deque[Pending] = field(default_factory=deque)
    singled_out: deque[Refused | Unconfirmed] = field(default_factory=deque)
    """The last answers to single publications: said again on a new link, for the old one may have lost them."""
    seen_at: float = 0.0
    publications: int = 0
    published_bytes: int = 0
    """Both since the last load report."""


class Publishers:
    """All publishers of a head, by name, and by link and handle."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.by_name: dict[str, Publisher] = {}
        self._by_handle: dict[tuple[Link, int], Publisher] = {}
        self._touched: dict[str, Publisher] = {}
        self._held: dict[str, Publisher] = {}
        self._counted: list[Publisher] = []
        self._shared: dict[str, tuple[Grant, Quota]] = {}  # by identity
        self.roles_refused = self.times_held = 0

    def __len__(self) -> int:
        return len(self.by_name)

    def get(self, link: Link, handle: int) -> Publisher | None:
        return self._by_handle.get((link, handle))

    def open(self, link: Link, opening: Open, head: str, epoch: int, now: float) -> Opened | None:
        """Open or re-open a publisher; None if its name is used by a newer incarnation.

        Raises:
            WireError: `full`, or `role`: its identity may not publish.

        """
        if why := link.grant.why_not_publish:
            self.roles_refused += 1
            raise WireError(NOT_GRANTED, why)
        known = self.by_name.get(opening.publisher)
        if known is not None and known.incarnation > opening.incarnation:
            return None
        if known is None and len(self.by_name) >= self.limits.max_publishers:
            raise WireError("full", f"this head has its {self.limits.max_publishers} publishers; open at another one")
        if known is not None:
            self._unbind(known)
        if (other := self._by_handle.get((link, opening.handle))) is not None:
            self._unbind(other)
        if known is None or known.incarnation < opening.incarnation:
            known = self._new(opening, now)
        known.link, known.handle, known.seen_at = link, opening.handle, now
        self._by_handle[link, opening.handle] = known
        known.through, known.answered = max(known.through, known.last_seq), 0
        self._share(known, link.grant, now)
        self._touched[known.name] = known
        self._grant(known, now)
        return Opened(opening.handle, head, epoch, known.last_seq, known.through)

    def _unbind(self, publisher: Publisher) -> None:
        if publisher.link is not None:
            self._by_handle.pop((publisher.link, publisher.handle), None)
            publisher.link = None
            if publisher.shared is not None:
                publisher.shared.sharers -= 1
                publisher.shared = None

    def _new(self, opening: Open, now: float) -> Publisher:
        limits = self.limits
        own = Quota.of(limits.publisher_rate_per_second, limits.publisher_bytes_per_second, now)
        publisher = Publisher(opening.publisher, opening.incarnation, own=own)
        self.by_name[opening.publisher] = publisher
        return publisher

    def close(self, link: Link, handle: int) -> None:
        if (publisher := self._by_handle.get((link, handle))) is not None:
            self._unbind(publisher)

    def lost(self, link: Link) -> None:
        """A link is over; its publishers are remembered, in case they come back and ask again."""
        for publisher in self._of(link):
            self._unbind(publisher)

    def _of(self, link: Link) -> list[Publisher]:
        return [publisher for (at, _), publisher in self._by_handle.items() if at is link]

    # -- what an identity may do

    def regranted(self, link: Link, now: float) -> Iterator[Refused]:
        """Its publishers go on under its new quota; if it may not publish any more they end, and are told this."""
        for publisher in self._of(link):
            if why := link.grant.why_not_publish:
                self.roles_refused += 1
                self._unbind(publisher)
                yield Refused(publisher.handle, 0, NOT_GRANTED, why)
            else:
                self._share(publisher, link.grant, now)

    def _share(self, publisher: Publisher, grant: Grant, now: float) -> None:
        """Let a publisher draw on the quota of its identity, where that has one, and on its own where not."""
        known = self._shared.get(grant.identity)
        if known is None or known[0] != grant:
            quota = Quota.of(grant.publications_per_second, grant.bytes_per_second, now)
            known = self._shared[grant.identity] = (grant, quota)
        shared, own = known[1], publisher.own or Quota(None, None)
        if publisher.shared is not shared:
            if publisher.shared is not None:
                publisher.shared.sharers -= 1
            publisher.shared = shared
            shared.sharers += 1
        publisher.messages, publisher.bytes = shared.messages or own.messages, shared.bytes or own.bytes

    def forget_idle(self, now: float, seconds: float) -> None:
        """Forget publishers that have been away for so long."""
        for name in [n for n, p in self.by_name.items() if p.link is None and now - p.seen_at > seconds]:
            del self.by_name[name]

    def again(self, link: Link, handle: int) -> Iterator[Refused | Unconfirmed]:
        """What a publisher that has opened must hear before its acceptance is told: the exceptions to it."""
        publisher = self._by_handle[link, handle]
        for answer in publisher.singled_out:
            yield msgspec.structs.replace(answer, handle=handle)

    # -- one publication

    def single_out(self, publisher: Publisher, answer: Refused | Unconfirmed) -> None:
        """Remember an exception to cumulative acceptance; a client has at most a window of unanswered publications."""
        publisher.singled_out.append(answer)
        if len(publisher.singled_out) > self.limits.publisher_window:
            publisher.singled_out.popleft()

    def took(self, publisher: Publisher, seq: int, size: int, now: float) -> None:
        """A publication has been logged, or refused for good."""
        publisher.last_seq, publisher.seen_at = seq, now
        if not publisher.publications:
            self._counted.append(publisher)
        publisher.publications += 1
        publisher.published_bytes += size
        if publisher.messages is not None:
            publisher.messages.spend(1, now)
        if publisher.bytes is not None:
            publisher.bytes.spend(size, now)
        self._touched[publisher.name] = publisher

    def await_edges(self, publisher: Publisher, seq: int) -> Pending:
        """The answer to this publication, and to those after it, waits."""
        pending = Pending(seq)
        publisher.pending.append(pending)
        self._touched[publisher.name] = publisher
        return pending

    def touch(self, name: str) -> None:
        """Something that this publisher waits for has changed."""
        publisher = self.by_name.get(name)
        if publisher is not None:
            self._touched[name] = publisher

    def rates(self, seconds: float) -> dict[str, int | dict[str, float]]:
        """What a load report says of publishers: how many there are, and those that sent most in these `seconds`.

        Counting begins anew.
        """
        counted, self._counted = self._counted, []
        most = heapq.nsmallest(REPORTED_AT_MOST, counted, key=lambda each: (-each.publications, each.name))
        found: dict[str, int | dict[str, float]] = {
            "publishers": len(self.by_name),
            "publisher_rates": {each.name: each.publications / seconds for each in most},
            "publisher_bytes_per_second": {each.name: each.published_bytes / seconds for each in most},
        }
        for each in counted:
            each.publications = each.published_bytes = 0
        return found

    # -- answers, at the end of a round

    def answers(self, now: float) -> Iterator[tuple[Link, Accepted | Credit | Unconfirmed]]:
        """What publishers are told at the end of this round."""
        touched = {**self._touched, **self._held}
        self._touched, self._held = {}, {}
        for publisher in touched.values():
            if publisher.link is not None:
                yield from self._answer(publisher, publisher.link, now)

    def _answer(
        self, publisher: Publisher, link: Link, now: float
    ) -> Iterator[tuple[Link, Accepted | Credit | Unconfirmed]]:
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
        if self._grant(publisher, now):
            yield link, Credit(publisher.handle, publisher.through)

    def _grant(self, publisher: Publisher, now: float) -> bool:
        """Raise the credit once half is used; over its quota a publisher waits until its buckets have refilled."""
        window = self.limits.publisher_window
        if publisher.through - publisher.last_seq > window // 2:
            return False
        if not all(bucket is None or bucket.open(now) for bucket in (publisher.messages, publisher.bytes)):
            self._held[publisher.name] = publisher
            if publisher.through <= publisher.last_seq and not publisher.is_held:
                publisher.is_held = True
                self.times_held += 1
            return False
        publisher.is_held = False
        if publisher.messages is not None:
            sharers = publisher.shared.sharers if publisher.shared and publisher.shared.messages else 1
            window = max(1, min(window, int(publisher.messages.burst) // sharers))
        through = publisher.last_seq + window
        if through <= publisher.through:
            return False
        publisher.through = through
        return True

    def wake_at(self, now: float) -> float:
        """When a publisher that is held may be given credit."""
        at = float("inf")
        for publisher in self._held.values():
            for bucket in (publisher.messages, publisher.bytes):
                if bucket is not None:
                    at = min(at, bucket.ready_at(now))
        return max(at, now + 0.001) if at != float("inf") else at
