"""Balancing messages on control sockets: loads, states, triggers, profiles. Each may be lost, and is repeated."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from plimsoll.core.protocol.wire import U32, U63, Figure, Name, Number, Text

LoadReport = dict[str, Figure | list[str] | dict[str, Figure] | None]
Metric = Name
"""The name of a metric that a policy balances; a policy passes over names that it does not know."""

Resource = Name
"""The name of a resource that a policy watches."""

BrokerState = Literal["OK", "BUSY", "N/A", "STABILIZING"]
Bits = Annotated[bytes, Meta(max_length=1024 * 1024)]


class PeerLoads(Struct, array_like=True, frozen=True, tag=111):
    """From a head to an edge: the last load reports of the other edges of its cluster. PADRES 2006, 3.2."""

    reports: list[LoadReport]


class ActionItem(Struct, array_like=True, frozen=True):
    """One line of a broker-action list: the broker and the metric to balance with it. `difference` is a ratio.

    `overloaded`: the resources that need relief; empty if the two merely differ.
    """

    target: Name
    metric: Metric
    difference: Number
    overloaded: list[Resource] = []


class Reservation(Struct, array_like=True, frozen=True, tag=112):
    """From a mediator through a head to an edge: the state that a session requires of it, for some seconds.

    `ASK` asks for its state, and makes it BUSY if that is OK; OK releases it. `number` rises within a mediator epoch.
    `tried`: the actions that moved nothing.
    """

    mediator: U63
    number: U63
    edge: Name
    session: Name
    state: Literal["ASK", "BUSY", "STABILIZING", "OK"]
    seconds: Number
    tried: list[ActionItem] = []


class ReservationReply(Struct, array_like=True, frozen=True, tag=113):
    """The answer: the resulting state of the edge. In reply to ASK, OK means yes, and `report` is its load."""

    mediator: U63
    number: U63
    edge: Name
    epoch: U63
    session: Name
    state: BrokerState
    report: LoadReport


class Trigger(Struct, array_like=True, frozen=True, tag=114):
    """From an edge through its head to mediators: a request for balancing. `seq` is that of its last load report."""

    edge: Name
    epoch: U63
    seq: U63
    actions: list[ActionItem]
    reason: Text


class ProfileQuery(Struct, array_like=True, frozen=True, tag=115):
    """From a mediator to a head: what do the subscribers of `edge` take, and which part does `target` already take in?

    The head forwards it to the edge in `parts` parts, with the covering set of the target. With `targets`, it is about
    each of them, and a part belongs to the `target` that it names. If a target is an edge of another head, the mediator
    has asked for the covering sets and sends the parts itself; these are forwarded unchanged. With `each`, the profile
    also says what each subscription alone matches.
    """

    id: U63
    edge: Name
    target: Name
    part: U32 = 0
    parts: U32 = 0
    accepting: list[Text] = []
    targets: list[Name] = []
    each: bool = False


class ProfileReply(Struct, array_like=True, frozen=True, tag=116):
    """A piece of the encoded profile; the pieces of one `id` and `epoch` together are its bytes."""

    id: U63
    edge: Name
    epoch: U63
    part: U32
    parts: U32
    piece: Bits


class BlockItem(Struct, array_like=True, frozen=True):
    """`width` samples, each of which stands for `rate` publications a second of `size_bytes` on average."""

    width: U32
    rate: Number
    size_bytes: Number


class RowItem(Struct, array_like=True, frozen=True):
    """Subscribers with the same subscriptions. `bits`: the samples that they match, the first in the lowest bit.

    `each`: the places of these subscriptions in `ProfileBody.each`, without repeats; empty unless all are there.
    """

    key: Text
    bits: Bits
    subscriptions: U32
    subscribers: list[Name]
    each: list[U32] = []


class EachItem(Struct, array_like=True, frozen=True):
    """The samples that one subscription matches, by its canonical text."""

    text: Text
    bits: Bits


class TakerItem(Struct, array_like=True, frozen=True):
    """The samples that one of several targets takes in already."""

    target: Name
    bits: Bits


class ProfileBody(Struct, array_like=True, frozen=True):
    """A profile. `rest`: the samples that match subscriptions in no row, which stay where they are.

    `takers` is set for several targets, `accepting` for one; `each` if that was asked for.
    """

    blocks: list[BlockItem]
    accepting: Bits
    overhead_bytes: Number
    rows: list[RowItem]
    rest: Bits = b""
    takers: list[TakerItem] = []
    each: list[EachItem] = []


class PeerClusterLoads(Struct, array_like=True, frozen=True, tag=117):
    """From a mediator to a head: its edges balance with those of another cluster, for some seconds.

    `reports` are the last load reports of some edges of `cluster`; the head forwards them with those of its own.
    """

    mediator: U63
    cluster: Name
    seconds: Number
    reports: list[LoadReport]


class CoverQuery(Struct, array_like=True, frozen=True, tag=118):
    """From a mediator to a head: what does this edge of yours take in?"""

    id: U63
    edge: Name


class CoverReply(Struct, array_like=True, frozen=True, tag=119):
    """The head's answer: the covering set of the edge's subscriptions, in `parts` parts."""

    id: U63
    edge: Name
    part: U32
    parts: U32
    texts: list[Text]
