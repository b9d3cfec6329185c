"""What a head remembers of a publisher, and of the client whose it is. No decisions here."""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field

from plimsoll.core.head.client_share import ClientShare
from plimsoll.core.metering.bucket import TokenBucket
from plimsoll.core.protocol.messages import Refused, Unconfirmed
from plimsoll.core.transport.link import Link


@dataclass(slots=True)
class PendingConfirmation:
    """A publication that waits for edges: `missing` while some may still confirm it, then `late` names the rest."""

    seq: int
    missing: bool = True
    late: list[str] = field(default_factory=list)


@dataclass(slots=True)
class PublisherQuota:
    """What may be published per second, shared by `sharers` open publishers."""

    messages: TokenBucket | None
    bytes: TokenBucket | None
    sharers: int = 0

    @classmethod
    def of(cls, messages: float | None, octets: float | None, now: float) -> PublisherQuota:
        """A second's worth may be saved up; None: not limited."""
        first, second = (
            None if rate is None else TokenBucket(rate, max(rate, 1.0), now) for rate in (messages, octets)
        )
        return cls(first, second)


@dataclass(slots=True, eq=False)
class ClientCredit:
    """The credit of all publishers of one client. `publishers`: remembered ones; `sharers`: those of them that divide
    the window, which are all but those that have been closed.

    `unused`: credit that they have and have not used. `asking`: those that are due for more, the longest-waiting first.
    """

    name: str = ""
    share: ClientShare = field(default_factory=ClientShare)
    publishers: int = 0
    sharers: int = 0
    unused: int = 0
    asking: OrderedDict[OpenPublisher, None] = field(default_factory=OrderedDict)
    is_dry: bool = False
    """Whether one that asks has no credit left, or the last turn did not reach all."""
    turn: int = 0
    turn_at: float = 0.0
    given: int = 0
    used: int = 0
    """Number and time of the last turn; the credit given in it, and what its publishers have published since."""
    idle: int = 0
    idle_until: float = 0.0
    """Credit given, and not used, since some time; and when it counts no more."""


@dataclass(slots=True, eq=False)
class OpenPublisher:
    """One publisher, as long as the head remembers it. `through`: the highest number it may use."""

    name: str
    incarnation: int
    identity: str = ""
    since: int = 0
    """Since when its identity has the name, as in `KnownClaim`."""
    link: Link | None = None
    handle: int = 0
    last_seq: int = 0
    logged_at: int = 0
    """Where its last publication is in the log of this head."""
    answered: int = 0
    through: int = 0
    granted: int = 0
    """The credit that it was topped up to last; it asks for more once half of that is used."""
    client: ClientCredit = field(default_factory=ClientCredit)
    is_sharer: bool = False
    turn: int = 0
    """Number of the turn of its client in which it got credit last."""
    messages: TokenBucket | None = None
    bytes: TokenBucket | None = None
    own: PublisherQuota | None = None
    shared: PublisherQuota | None = None
    is_held: bool = False
    pending: deque[PendingConfirmation] = field(default_factory=deque)
    singled_out: deque[Refused | Unconfirmed] = field(default_factory=deque)
    """The last answers to single publications: repeated on a new link, because the old one may have lost them."""
    moving: str = ""
    """The move that asks it to leave this head."""
    left: str = ""
    """The move by which it has left: it is remembered for its last number."""
    arrived: str = ""
    """The move that has brought it here."""
    seen_at: float = 0.0
    total_publications: int = 0
    total_bytes: int = 0
    publications: int = 0
    published_bytes: int = 0
    """Both since the last load report."""

    @property
    def unused(self) -> int:
        return self.through - self.last_seq

    def quota_opens_at(self, now: float) -> float:
        """When its quota has room; `now` or earlier if it has."""
        at = now
        for bucket in (self.messages, self.bytes):
            if bucket is not None:
                at = max(at, bucket.ready_at(now))
        return at
