"""How subscribers find an edge, attach to it and change their subscriptions."""

from __future__ import annotations

from msgspec import Struct

from plimsoll.core.protocol.messages.publications import Gap
from plimsoll.core.protocol.wire import (
    U32,
    U63,
    Listed,
    Name,
    Named,
    Number,
    Options,
    OwnerEpoch,
    Since,
    Text,
    Token,
    check_since,
)


class Join(Struct, array_like=True, frozen=True, tag=20):
    """Ask a head for an edge: not one of `exclude`, `prefer` if possible, and of the head `head` if one is named.

    `location`: where the subscriber is, as coordinates on a plane; None if it does not say.
    """

    subscriber: Name
    exclude: Named[Name] = []
    prefer: Text = ""
    head: Text = ""
    location: tuple[Number, Number] | None = None


class Placed(Struct, array_like=True, frozen=True, tag=21):
    """An edge for a subscriber.

    `topic_attribute`: the attribute whose values are the topics of the cluster, empty if it has none. A subscriber that
    asks for topics may join as several units instead; then this edge is not used.
    """

    subscriber: Name
    edge: Name
    endpoint: Text
    public_key: Text
    topic_attribute: Text = ""


class Unplaced(Struct, array_like=True, frozen=True, tag=22):
    subscriber: Name
    text: Text
    retry_seconds: Number


class SeeHead(Struct, array_like=True, frozen=True, tag=28):
    """The answer of an edge to JOIN and to OPEN, which it does not deal with: the head of its cluster, for clients.

    Without an endpoint it does not know that yet: ask again, or another broker.
    """

    head: Name
    endpoint: Text
    public_key: Text


class SubscriptionItem(Struct, array_like=True, frozen=True):
    """One subscription of a subscriber. `options` has room for `latency_seconds`, `group` and `priority`."""

    id: U32
    text: Text
    options: Options = {}


class Policy(Struct, frozen=True):
    """What happens when the subscriber cannot keep up. Zero stands for the broker's limits."""

    slow: Text = ""
    queue_bytes: U63 = 0
    block_seconds: Number = 0.0


class Resume(Struct, array_like=True, frozen=True, tag=30):
    """Attach a subscriber to this edge, starting at `token`; without one at `since`, without either from now on.

    `lease_seconds`: how long its place is to be kept while it is away; 0: as long as the fleet keeps any. `since`: a
    position, or a time in seconds since 1970.
    """

    attachment: U32
    subscriber: Name
    epoch: OwnerEpoch
    version: U63
    subscriptions: Listed[SubscriptionItem]
    policy: Policy
    token: Token | None
    watermarks: Named[Token]
    session: Name | None = None
    lease_seconds: Number = 0.0
    since: Since = None

    def __post_init__(self) -> None:
        check_since(self.since)


class Resumed(Struct, array_like=True, frozen=True, tag=31):
    """`lease_seconds`: for how long its place is kept while it is away, if for longer than any; else 0."""

    attachment: U32
    head: Name
    epoch: U63
    position: U63
    gap: Gap | None
    lapsed: bool
    lease_seconds: Number = 0.0


class Suback(Struct, array_like=True, frozen=True, tag=32):
    attachment: U32
    version: U63
    unreached: list[Name]


class Subs(Struct, array_like=True, frozen=True, tag=33):
    attachment: U32
    version: U63
    adds: Listed[SubscriptionItem]
    removes: Listed[U32]


class Detach(Struct, array_like=True, frozen=True, tag=34):
    attachments: Listed[U32]
    withdraw: bool


class AttachmentClosed(Struct, array_like=True, frozen=True, tag=35):
    """`used`: with the code `epoch`, the incarnation that the name had last, if no client is there with it; else 0."""

    attachment: U32
    code: Name
    text: Text
    used: U63 = 0


class Moved(Struct, array_like=True, frozen=True, tag=36):
    """These attachments are closed: continue at this edge, or at one that the head names."""

    attachments: list[U32]
    edge: Text
    endpoint: Text
    public_key: Text
    session: Name | None = None


class Pause(Struct, array_like=True, frozen=True, tag=37):
    attachment: U32


class Continue(Struct, array_like=True, frozen=True, tag=38):
    attachment: U32


class SubRefused(Struct, array_like=True, frozen=True, tag=39):
    attachment: U32
    version: U63
    id: U32
    text: Text


class Epoch(Struct, array_like=True, frozen=True, tag=40):
    """The head has restarted: publications that it had and this subscriber had not received may be lost."""

    attachment: U32
    gap: Gap
