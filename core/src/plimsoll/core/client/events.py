"""The events of a client machine for the application: plain values, in order.

They belong to one publisher or one subscriber each and come out of `Client.take_events` as lists, one per owner and
round. A subscriber's deliveries and gaps stand in the order of its stream; nothing overtakes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from plimsoll.core.protocol.messages import Gap, PubOpen
from plimsoll.core.protocol.slice_names import split_stamps
from plimsoll.core.protocol.topic_units import topic_hash
from plimsoll.core.protocol.wire import Scalar, Token

Answer = Literal["accepted", "unconfirmed", "refused", "unknown"]
Identity = tuple[str, int, int]
OriginOffset = tuple[str, int, int]


class Delivery(Struct, frozen=True, gc=False):
    """A publication for this subscriber. `received`: seconds, by the clock that the shell gives the machine."""

    pub: PubOpen
    stream: tuple[str, int]
    received: float

    @property
    def attributes(self) -> Mapping[str, Scalar]:
        """What its publisher has written, without the stamps of consumer groups."""
        return split_stamps(self.pub.body.attributes, self.pub.flags)[0]

    @property
    def payload(self) -> bytes:
        return self.pub.body.payload

    @property
    def publisher(self) -> str:
        return self.pub.publisher

    @property
    def incarnation(self) -> int:
        """The publisher's incarnation, which rises with each of its lives."""
        return self.pub.incarnation

    @property
    def seq(self) -> int:
        """The publisher's number within its incarnation, from 1."""
        return self.pub.seq

    @property
    def identity(self) -> Identity:
        """(publisher, incarnation, number): the same on every path of a publication."""
        return self.pub.publisher, self.pub.incarnation, self.pub.seq

    @property
    def origin(self) -> OriginOffset:
        """(head, its epoch, offset) of the head that accepted the publication; offsets of one origin only rise."""
        return self.pub.head, self.pub.epoch, self.pub.offset

    @property
    def position(self) -> int:
        """In the log of the head that this subscriber is served from."""
        return self.pub.position

    @property
    def token(self) -> Token:
        """The token to resume from once this delivery has been handled."""
        return (*self.stream, self.pub.position)

    @property
    def sent_us(self) -> int:
        """When the publisher sent it: microseconds since 1970 by the publisher's clock."""
        return self.pub.sent_us


class GapNotice(Struct, frozen=True):
    """Positions `low` to `high` of a head's log that this subscriber may have missed something in.

    `last`: the last offset lost per origin, where it is known. `low_epoch` older than `epoch`: all since is in doubt.
    `topic`: in a cluster with bundles, the hash of the topics that it is about; None: of all that is asked for.
    """

    gap: Gap
    received: float
    topic: int | None = None

    def concerns(self, topic: Scalar) -> bool:
        """Whether publications of this topic may be missing."""
        return self.topic is None or topic_hash(topic) == self.topic

    @property
    def head(self) -> str:
        return self.gap.head

    @property
    def low_epoch(self) -> int:
        return self.gap.low_epoch

    @property
    def low(self) -> int:
        return self.gap.low

    @property
    def epoch(self) -> int:
        return self.gap.epoch

    @property
    def high(self) -> int:
        return self.gap.high

    @property
    def last(self) -> list[Token]:
        return self.gap.last

    @property
    def reason(self) -> str:
        return self.gap.reason

    @property
    def token(self) -> Token:
        """The token to resume from behind the gap."""
        return self.gap.head, self.gap.epoch, self.gap.high


class Attached(Struct, frozen=True):
    """Served by this edge from here on. `again`: it was attached before, and goes on from its token."""

    edge: str
    head: str
    again: bool


class Detached(Struct, frozen=True):
    """Not served for the moment; the machine looks for an edge by itself."""

    edge: str
    reason: str


class Acknowledged(Struct, frozen=True):
    """These subscriptions count from now on, except behind the heads in `unreached`, which follow later."""

    ids: tuple[int, ...]
    head: str
    unreached: tuple[str, ...]


class Forgotten(Struct, frozen=True):
    """The withdrawal of these subscriptions has arrived everywhere."""

    ids: tuple[int, ...]


class SubscriptionRefused(Struct, frozen=True):
    """This subscription will not be served; the others are not affected."""

    id: int
    text: str


class Lapsed(Struct, frozen=True):
    """The broker had given this subscriber up: acknowledgements are void until the next ones. A gap says from where."""


class Failed(Struct, frozen=True):
    """The permanent end of a subscriber or publisher. `code` is for programs, `text` for people."""

    code: str
    text: str


class Answered(Struct, frozen=True):
    """The answer to publications `first` to `last`, by the number that `publish` returned.

    `unknown`: the head has lost its memory before it answered; they may have been delivered, or not. `edges`: those
    that did not confirm. (`incarnation`, `first_seq`) is the identity of the first, under which subscribers see it.
    """

    first: int
    last: int
    answer: Answer
    incarnation: int
    first_seq: int
    edges: tuple[str, ...] = ()
    code: str = ""
    text: str = ""


class Renumbered(Struct, frozen=True):
    """From number `first` on, publications have the identities (`incarnation`, 1), (`incarnation`, 2) and so on."""

    first: int
    incarnation: int


class PublisherReady(Struct, frozen=True):
    """The publisher is open at this head."""

    head: str
    epoch: int


Item = Delivery | GapNotice
SubscriberEvent = (
    Delivery | GapNotice | Attached | Detached | Acknowledged | Forgotten | SubscriptionRefused | Lapsed | Failed
)
PublisherEvent = Answered | Renumbered | PublisherReady | Failed
