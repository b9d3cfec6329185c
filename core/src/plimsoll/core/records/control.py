"""What travels on control sockets: unnumbered, served first, and possibly lost."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from plimsoll.core.records.handover import MemberItem
from plimsoll.core.wire import U63, Name, Scalar, Text


class Identify(Struct, array_like=True, frozen=True, tag=100):
    name: Name
    role: Name
    epoch: U63


class Load(Struct, array_like=True, frozen=True, tag=101):
    report: dict[str, Scalar | list[str] | dict[str, Scalar] | None]


class StatusQuery(Struct, array_like=True, frozen=True, tag=102):
    id: U63


class StatusReply(Struct, array_like=True, frozen=True, tag=103):
    id: U63
    status: dict[str, Scalar | list[str] | dict[str, Scalar] | None]


class Leave(Struct, array_like=True, frozen=True, tag=104):
    """Let the subscribers go elsewhere, then exit."""


class Revoke(Struct, array_like=True, frozen=True, tag=105):
    """By replay: close these attachments at once and send them to the target. Repeated until they have resumed."""

    session: Name
    head_epoch: U63
    members: list[MemberItem]
    edge: Name
    endpoint: Text
    public_key: Text


class Members(Struct, array_like=True, frozen=True, tag=106):
    """From a mediator to a head, again and again: the edges that belong to it, and those that take no newcomers."""

    edges: list[Name]
    cordoned: list[Name]


class HandoverPlan(Struct, array_like=True, frozen=True):
    """Who moves from an edge of the head that is told to `target`, an edge of `target_head`.

    `prepare_seconds`: from the command to the cut, at most. `drain_seconds`: from the cut to the end, at most.
    """

    source: Name
    target: Name
    target_head: Name
    members: list[Name]
    replay: bool
    prepare_seconds: float
    drain_seconds: float


class Command(Struct, array_like=True, frozen=True, tag=107):
    """From a mediator to the head of the source. A repeated command is answered with the state."""

    mediator: U63
    head_epoch: U63
    session: Name
    step: Literal["prepare", "cut", "abort", "ask"]
    plan: HandoverPlan | None = None


class AuditItem(Struct, array_like=True, frozen=True):
    """What moved members have counted, summed up; `members`: how many have."""

    members: U63
    lost: U63
    duplicated: U63
    reordered: U63
    suppressed: U63


class Outcome(Struct, array_like=True, frozen=True, tag=108):
    """The state of a hand-over and of each of its members; `mediator` is the highest epoch that the head obeys.

    Without `audit` nobody has counted anything yet.
    """

    session: Name
    mediator: U63
    head_epoch: U63
    state: Literal["preparing", "ready", "cutting", "cut", "done", "aborted", "failed", "unknown"]
    members: list[tuple[Name, Name]]
    reason: Text = ""
    audit: AuditItem | None = None


class Serving(Struct, array_like=True, frozen=True, tag=109):
    """From a mediator to a head: whom does this edge serve, by name, after this one?"""

    id: U63
    edge: Name
    after: Text = ""


class Served(Struct, array_like=True, frozen=True, tag=110):
    id: U63
    edge: Name
    head_epoch: U63
    subscribers: list[Name]
    more: bool
