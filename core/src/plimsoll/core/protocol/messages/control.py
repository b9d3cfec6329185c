"""Messages on control sockets: unnumbered, served first, and possibly lost."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from plimsoll.core.protocol.messages.handover import MemberItem
from plimsoll.core.protocol.messages.overlay import ReleasedBundle
from plimsoll.core.protocol.wire import U32, U63, Count, Figure, Name, Number, Text


class Identify(Struct, array_like=True, frozen=True, tag=100):
    name: Name
    role: Name
    epoch: U63


class LoadUpdate(Struct, array_like=True, frozen=True, tag=101):
    report: dict[str, Figure | list[str | dict[str, Figure]] | dict[str, Figure] | None]


class StatusQuery(Struct, array_like=True, frozen=True, tag=102):
    id: U63


class StatusReply(Struct, array_like=True, frozen=True, tag=103):
    id: U63
    status: dict[str, Figure | list[str] | dict[str, Figure] | None]


class Leave(Struct, array_like=True, frozen=True, tag=104):
    """Send the subscribers elsewhere, then exit."""


class Revoke(Struct, array_like=True, frozen=True, tag=105):
    """With replay: close these attachments at once and send them to the target. Repeated until they have resumed."""

    session: Name
    head_epoch: U63
    members: list[MemberItem]
    edge: Name
    endpoint: Text
    public_key: Text


class HeadAddress(Struct, array_like=True, frozen=True):
    """A head as clients reach it."""

    head: Name
    endpoint: Text
    public_key: Text


class ClusterMembers(Struct, array_like=True, frozen=True, tag=106):
    """From a mediator to a head, periodically: the edges that belong to it, and those that take no newcomers.

    A head with an epoch up to `cordoned_epoch` takes no new publishers, and sends them to one of `heads`.
    """

    edges: list[Name]
    cordoned: list[Name]
    cordoned_epoch: U63 = 0
    heads: list[HeadAddress] = []


class ClusterPolicy(Struct, array_like=True, frozen=True, tag=120):
    """The balancing policy of a cluster, as JSON; empty if it has none. Who has it already changes nothing.

    From a mediator to a head, periodically, and from the head to its edges.
    """

    policy: Text = ""


class AssignedBundle(Struct, array_like=True, frozen=True):
    """The bundle with this first hash has another edge from here on."""

    low: U32
    edge: Name


class BundleTable(Struct, array_like=True, frozen=True, tag=125):
    """The bundles of a cluster: their boundaries, and what changes. Newer is the higher (`mediator`, `version`).

    From a mediator to a head, periodically, and from the head to its edges, without `assigned`. Without `boundaries`
    each topic is a bundle of its own, `low` is its hash, and edges are not told.
    """

    mediator: U63
    version: U63
    boundaries: list[U32]
    assigned: list[AssignedBundle] = []
    released: list[ReleasedBundle] = []


class HandoverPlan(Struct, array_like=True, frozen=True):
    """The members that move from an edge of the receiving head to `target`, an edge of `target_head`.

    `prepare_seconds`: the limit from the command to the cut. `drain_seconds`: the limit from the cut to the end.
    """

    source: Name
    target: Name
    target_head: Name
    members: list[Name]
    replay: bool
    prepare_seconds: Number
    drain_seconds: Number


class Command(Struct, array_like=True, frozen=True, tag=107):
    """From a mediator to the head of the source. A repeated command is answered with the state."""

    mediator: U63
    head_epoch: U63
    session: Name
    step: Literal["prepare", "cut", "abort", "ask"]
    plan: HandoverPlan | None = None


class AuditItem(Struct, array_like=True, frozen=True):
    """The summed counts of moved members; `members`: how many have counted.

    Of publishers that move, subscribers count: `asked` of them were asked to. `before` and `after`: how many deliveries
    were due to those that have counted, of what the head that the publishers left had accepted, and of the rest.
    """

    members: Count
    lost: Count
    duplicated: Count
    reordered: Count
    suppressed: Count
    asked: Count = 0
    before: Count = 0
    after: Count = 0


class Outcome(Struct, array_like=True, frozen=True, tag=108):
    """The state of a hand-over and of each of its members; `mediator` is the highest epoch that the head obeys.

    Without `audit` no member has counted yet.
    """

    session: Name
    mediator: U63
    head_epoch: U63
    state: Literal["preparing", "ready", "cutting", "cut", "done", "aborted", "failed", "unknown"]
    members: list[tuple[Name, Name]]
    reason: Text = ""
    audit: AuditItem | None = None


class ListSubscribers(Struct, array_like=True, frozen=True, tag=109):
    """From a mediator to a head: list the subscribers of this edge, by name, after this one."""

    id: U63
    edge: Name
    after: Text = ""


class SubscriberPage(Struct, array_like=True, frozen=True, tag=110):
    id: U63
    edge: Name
    head_epoch: U63
    subscribers: list[Name]
    more: bool
