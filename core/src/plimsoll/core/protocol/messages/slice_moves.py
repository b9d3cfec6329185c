"""Messages by which a mediator moves slices of a consumer group between its members: docs/groups.md."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from plimsoll.core.protocol.messages.control import AuditItem
from plimsoll.core.protocol.messages.groups import SliceReport
from plimsoll.core.protocol.wire import U32, U63, Name, Number, Text


class SliceMovesPlan(Struct, array_like=True, frozen=True):
    """Slices of a group that go from one member to another. `seconds`: from the command until the giver has let go.

    `empties`: the giver is to have no slice any more, and gets none until a command names it as a taker.
    """

    group: Name
    giver: Name
    taker: Name
    slices: list[U32]
    seconds: Number
    empties: bool = False


class SliceCommand(Struct, array_like=True, frozen=True, tag=150):
    """To the head of the group. A repeated command is answered with the state."""

    mediator: U63
    head_epoch: U63
    session: Name
    step: Literal["move", "abort", "ask"]
    plan: SliceMovesPlan | None = None


class SliceOutcome(Struct, array_like=True, frozen=True, tag=151):
    """The state of a move and of each of its slices: `moving` while one is under way.

    `audit`: what members have counted across the move, as far as they have.
    """

    session: Name
    mediator: U63
    head_epoch: U63
    state: Literal["moving", "done", "failed", "unknown"]
    slices: list[tuple[U32, Text]]
    reason: Text = ""
    audit: AuditItem | None = None


class SliceQuery(Struct, array_like=True, frozen=True, tag=152):
    """From a mediator to a head: the consumers and slices of a group, from this place in the list on."""

    id: U63
    group: Name
    begin: U32 = 0


class ConsumerItem(Struct, array_like=True, frozen=True):
    """A member as it has reported itself. `has_measured`: since its slices changed last.

    `takes_part`: whether a policy may move slices from it and to it; not from one that leaves, or has been emptied.
    """

    consumer: Name
    cpu: Number = 0.0
    memory: Number = 0.0
    has_measured: bool = True
    takes_part: bool = True


class HeldSliceItem(Struct, array_like=True, frozen=True):
    """A slice, the member that has it (empty: none), and what it brings there.

    `is_moving`: the member is about to get it, once another one has let go.
    """

    consumer: Text
    load: SliceReport
    is_moving: bool = False


class SlicePage(Struct, array_like=True, frozen=True, tag=153):
    """One page of consumers, then slices. `version` changes with members and their slices: pages of two do not fit.

    `balancing`: of the group; empty if the head has no such group. `is_settled`: all members have said what they have.
    """

    id: U63
    head_epoch: U63
    group: Name
    begin: U32
    version: U63
    balancing: Text
    is_settled: bool
    consumers: list[ConsumerItem]
    slices: list[HeldSliceItem]
    more: bool


class GroupTrigger(Struct, array_like=True, frozen=True, tag=154):
    """From a head to every mediator: the policy of this group would move slices now."""

    group: Name
    reason: Text
