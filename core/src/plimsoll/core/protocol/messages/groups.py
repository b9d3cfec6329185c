"""Messages between the members of consumer groups and their head: docs/groups.md."""

from __future__ import annotations

from msgspec import Raw, Struct

from plimsoll.core.protocol.messages.publications import PubOpen
from plimsoll.core.protocol.wire import U32, U63, Count, Listed, Name, Named, Number, Text, Token


class GroupDefinition(Struct, array_like=True, frozen=True):
    """What a group is: its stream, its slices, and how publications are assigned to them.

    `function`: Modulo, Hash, Publisher, Random, Range or Application; `by`: the attribute that it reads; `low` and
    `high`: of a Range. `unassigned`: Drop or Hash. `balancing`: Rates, Pairing or None. `in_session`: Deliver
    or Cache, how a slice goes from member to member.
    """

    filter: Text
    count: U32
    function: Text
    by: Text = ""
    low: Number = 0.0
    high: Number = 0.0
    unassigned: Text = "Drop"
    balancing: Text = "Rates"
    in_session: Text = "Deliver"


class DeclaredGroupItem(Struct, array_like=True, frozen=True):
    """A group of the custom resources, and the cluster whose head serves it."""

    cluster: Name
    name: Name
    definition: GroupDefinition
    head: Text = ""


class SliceCount(Struct, array_like=True, frozen=True):
    """What a member's application has finished of a slice since it was assigned to it: items, and faults among them."""

    items: Count
    duplicated: Count = 0
    reordered: Count = 0


class SlicePlace(Struct, array_like=True, frozen=True):
    """How far a member has got with a slice that it has, or had, under this epoch of the assignment.

    `token`: behind its last acknowledgement; `marks`: the last offsets of origins up to there. `is_released`: it has
    given the slice up, and may not have been heard. `was_cut_off`: it has stopped by itself, so what lies behind
    `token` may have been given. `counted`: up to `token`; None of a client that does not count. `side`: of the slice's
    two names, the one under which it has it.
    """

    number: U32
    epoch: U63
    token: Token | None
    marks: Named[Token] = []
    is_released: bool = False
    was_cut_off: bool = False
    counted: SliceCount | None = None
    side: U32 = 0


class SliceReport(Struct, array_like=True, frozen=True):
    """What a slice brings to its member, since its last report."""

    number: U32
    items_per_second: Number
    seconds_per_item: Number
    backlog: Count


class MemberLoad(Struct, array_like=True, frozen=True):
    """The load of a member's process, 0 to 1 of what it may use, and of its slices. `seconds`: it was measured for."""

    seconds: Number = 0.0
    cpu: Number = 0.0
    memory: Number = 0.0
    slices: Listed[SliceReport] = []


class GroupJoin(Struct, array_like=True, frozen=True, tag=41):
    """To the head of the group: be a member, or go on as one over a new link. `definition`: of the group, if known."""

    group: Name
    member: Name
    incarnation: U63
    definition: GroupDefinition | None
    places: Listed[SlicePlace] = []


class GroupJoined(Struct, array_like=True, frozen=True, tag=42):
    """The answer: a member that has had no answer to GROUP_BEAT for `lease_seconds` stops by itself.

    `head`: of the group; its slices attach to edges of that head.
    """

    group: Name
    definition: GroupDefinition
    beat_seconds: Number
    lease_seconds: Number
    head: Text = ""


class GroupRefused(Struct, array_like=True, frozen=True, tag=43):
    """The answer that it is no member. With `retry_seconds` it may ask again then; without, the refusal is final."""

    group: Name
    code: Name
    text: Text
    retry_seconds: Number = 0.0


class GroupBeat(Struct, array_like=True, frozen=True, tag=44):
    """From a member, at an interval: it lives, it has got so far, and this is its load, if it was measured since."""

    group: Name
    number: U63
    places: Listed[SlicePlace] = []
    load: MemberLoad | None = None


class GroupBeatAnswer(Struct, array_like=True, frozen=True, tag=45):
    """The head has had this beat. `over`: why the group ends, once what the log has of it is processed; else empty."""

    group: Name
    number: U63
    over: Text = ""


class SliceAssigned(Struct, array_like=True, frozen=True, tag=46):
    """The member has this slice from here on, behind `token`, under this epoch.

    `given_to`: what lies up to there may have been given to another member that has gone. `side`: of the slice's two
    names, the one to attach. `caches`: it caches what comes, says SLICE_CACHING, and has the slice once the cache of
    its giver has come.
    """

    group: Name
    number: U32
    epoch: U63
    token: Token | None
    marks: Named[Token] = []
    given_to: Token | None = None
    side: U32 = 0
    caches: bool = False


class SliceRevoked(Struct, array_like=True, frozen=True, tag=47):
    """Give up this slice: finish what the application has in hand, give it no more, and answer SLICE_RELEASED.

    `caches`: finish it, go on caching what comes, and answer SLICE_CACHING. The second such message asks for the cache:
    answer SLICE_CACHE, and then SLICE_RELEASED.
    """

    group: Name
    number: U32
    epoch: U63
    caches: bool = False


class SliceReleased(Struct, array_like=True, frozen=True, tag=48):
    """From a member: it has given up this slice, and another one goes on behind `place`.

    `is_cached`: all that it had received and not given has gone ahead of this, as SLICE_CACHE.
    """

    group: Name
    place: SlicePlace
    is_cached: bool = False


class SliceCaching(Struct, array_like=True, frozen=True, tag=155):
    """From a member: it caches this slice. `token`, `marks`: up to where its giver has all, or its taker begins."""

    group: Name
    number: U32
    epoch: U63
    token: Token
    marks: Named[Token] = []


class CachedItem(Struct, array_like=True, frozen=True):
    """A publication of a cache; `head` and `epoch` say in which log its position is."""

    head: Name
    epoch: U63
    pub: PubOpen


class SliceCache(Struct, array_like=True, frozen=True, tag=156):
    """A part of a giver's cache, encoded items in order; its head passes it on to the taker, whose `epoch` it then has.

    `place`, from the head only: this was the last part; the taker has the slice, behind this place of its giver.
    """

    group: Name
    number: U32
    epoch: U63
    items: Listed[Raw]
    place: SlicePlace | None = None


class GroupFunction(Struct, array_like=True, frozen=True):
    """A group whose publications have a stamp, and how that is computed."""

    group: Name
    definition: GroupDefinition


class GroupFunctions(Struct, array_like=True, frozen=True, tag=157):
    """From a head to a client that publishes: all groups that it stamps for, now and whenever they change."""

    groups: Listed[GroupFunction]


class ClusterGroups(Struct, array_like=True, frozen=True, tag=130):
    """From a mediator to a head: all groups that are declared in the fleet."""

    groups: list[DeclaredGroupItem]


class GroupLeave(Struct, array_like=True, frozen=True, tag=49):
    """From a member: take all slices from me. GROUP_LEFT answers once it has none."""

    group: Name


class GroupLeft(Struct, array_like=True, frozen=True, tag=29):
    group: Name


FromMember = GroupJoin | GroupBeat | SliceReleased | GroupLeave | SliceCaching | SliceCache
AnswerToMember = (
    GroupJoined | GroupRefused | GroupBeatAnswer | SliceAssigned | SliceRevoked | SliceCache | GroupLeft
)  # fmt: skip


class GroupFor(Struct, array_like=True, frozen=True, tag=68):
    """From the head of a member to that of its group, through the tree: what the member says.

    `epoch`: of its head. `client`: the member's way, from each of its GROUP_JOINs on; `number`: on that way, from 1.
    """

    epoch: U63
    client: U32
    number: U63
    identity: Text
    record: FromMember


class GroupAnswer(Struct, array_like=True, frozen=True, tag=69):
    """From the head of a group to that of a member. `number`: on that way, from 1; 0: it does not know the way."""

    epoch: U63
    client: U32
    number: U63
    record: AnswerToMember
