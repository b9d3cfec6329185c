"""Messages between the members of consumer groups and their head: docs/groups.md."""

from __future__ import annotations

from msgspec import Struct

from plimsoll.core.protocol.wire import U32, U63, Listed, Name, Named, Text, Token


class GroupDefinition(Struct, array_like=True, frozen=True):
    """What a group is: its stream, its slices, and how publications are assigned to them.

    `function`: Modulo, Hash, Publisher, Random, Range or Application; `by`: the attribute that it reads; `low` and
    `high`: of a Range. `unassigned`: Drop or Hash. `balancing`: Rates, Pairing or None.
    """

    filter: Text
    count: U32
    function: Text
    by: Text = ""
    low: float = 0.0
    high: float = 0.0
    unassigned: Text = "Drop"
    balancing: Text = "Rates"


class DeclaredGroupItem(Struct, array_like=True, frozen=True):
    """A group of the custom resources, and the cluster whose head serves it."""

    cluster: Name
    name: Name
    definition: GroupDefinition


class SliceCount(Struct, array_like=True, frozen=True):
    """What a member's application has finished of a slice since it was assigned to it: items, and faults among them."""

    items: U63
    duplicated: U63 = 0
    reordered: U63 = 0


class SlicePlace(Struct, array_like=True, frozen=True):
    """How far a member has got with a slice that it has, or had, under this epoch of the assignment.

    `token`: behind its last acknowledgement; `marks`: the last offsets of origins up to there. `is_released`: it has
    given the slice up, and may not have been heard. `was_cut_off`: it has stopped by itself, so what lies behind
    `token` may have been given. `counted`: up to `token`; None of a client that does not count.
    """

    number: U32
    epoch: U63
    token: Token | None
    marks: Named[Token] = []
    is_released: bool = False
    was_cut_off: bool = False
    counted: SliceCount | None = None


class SliceReport(Struct, array_like=True, frozen=True):
    """What a slice brings to its member, since its last report."""

    number: U32
    items_per_second: float
    seconds_per_item: float
    backlog: U63


class MemberLoad(Struct, array_like=True, frozen=True):
    """The load of a member's process, 0 to 1 of what it may use, and of its slices. `seconds`: it was measured for."""

    seconds: float = 0.0
    cpu: float = 0.0
    memory: float = 0.0
    slices: Listed[SliceReport] = []


class GroupJoin(Struct, array_like=True, frozen=True, tag=41):
    """To the head of the group: be a member, or go on as one over a new link. `definition`: of the group, if known."""

    group: Name
    member: Name
    incarnation: U63
    definition: GroupDefinition | None
    places: Listed[SlicePlace] = []


class GroupJoined(Struct, array_like=True, frozen=True, tag=42):
    """The answer: a member that has had no answer to GROUP_BEAT for `lease_seconds` stops by itself."""

    group: Name
    definition: GroupDefinition
    beat_seconds: float
    lease_seconds: float


class GroupRefused(Struct, array_like=True, frozen=True, tag=43):
    """The answer that it is no member. With `retry_seconds` it may ask again then; without, the refusal is final."""

    group: Name
    code: Name
    text: Text
    retry_seconds: float = 0.0


class GroupBeat(Struct, array_like=True, frozen=True, tag=44):
    """From a member, at an interval: it lives, it has got so far, and this is its load, if it was measured since."""

    group: Name
    number: U63
    places: Listed[SlicePlace] = []
    load: MemberLoad | None = None


class GroupBeatAnswer(Struct, array_like=True, frozen=True, tag=45):
    group: Name
    number: U63


class SliceAssigned(Struct, array_like=True, frozen=True, tag=46):
    """The member has this slice from here on, behind `token`, under this epoch.

    `given_to`: what lies up to there may have been given to another member that has gone.
    """

    group: Name
    number: U32
    epoch: U63
    token: Token | None
    marks: Named[Token] = []
    given_to: Token | None = None


class SliceRevoked(Struct, array_like=True, frozen=True, tag=47):
    """Give up this slice: finish what the application has in hand, give it no more, and answer SLICE_RELEASED."""

    group: Name
    number: U32
    epoch: U63


class SliceReleased(Struct, array_like=True, frozen=True, tag=48):
    """From a member: it has given up this slice, and another one goes on behind `place`."""

    group: Name
    place: SlicePlace


class ClusterGroups(Struct, array_like=True, frozen=True, tag=130):
    """From a mediator to a head: all groups that are declared in the fleet."""

    groups: list[DeclaredGroupItem]


class GroupLeave(Struct, array_like=True, frozen=True, tag=49):
    """From a member: take all slices from me. GROUP_LEFT answers once it has none."""

    group: Name


class GroupLeft(Struct, array_like=True, frozen=True, tag=29):
    group: Name
