"""Requests of members of consumer groups at a head, and what groups ask of the rest of the head."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, assert_never

from plimsoll.core.head.durability.journal import LogJournal
from plimsoll.core.head.groups.consumer_group import Announce, ConsumerGroup, GroupHost, announce_to_none
from plimsoll.core.head.groups.definition import Declared, definition_fault
from plimsoll.core.head.groups.function_notices import FunctionNotices, NoticeHost
from plimsoll.core.head.groups.group_links import STRANGER, MemberLink, RemoteLink
from plimsoll.core.head.groups.lag import GroupLags
from plimsoll.core.head.groups.member import MemberEntry
from plimsoll.core.head.groups.removal import OVER, Removal, ending
from plimsoll.core.head.groups.report import group_report
from plimsoll.core.head.groups.stamps import GroupStamps
from plimsoll.core.head.groups.times import GroupTimes
from plimsoll.core.head.ownership import Since
from plimsoll.core.head.part import HeadPart
from plimsoll.core.head.publishers import PublisherTable
from plimsoll.core.head.record_handlers import RecordHandlers
from plimsoll.core.head.routing import RoutingTable
from plimsoll.core.head.startup import StartupBarrier
from plimsoll.core.permissions import NOT_PERMITTED
from plimsoll.core.policies.consumer_groups.assignment_functions import stamper
from plimsoll.core.policies.consumer_groups.reported import report_field
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.messages import FromMember, GroupDefinition
from plimsoll.core.protocol.slice_names import slice_name, slice_of_name
from plimsoll.core.protocol.wire import Token
from plimsoll.core.transport.link import NEVER, Link, Peer

GROUPS_AT_MOST = 1000
MEMBERS_AT_MOST = 10_000
"""Of all groups of a head together."""

AWAITED = "consumer group "
"""How the status of a head that starts names a group whose definition it waits for."""

CACHE_UNITS = 20
JOIN_UNITS = 50
"""Of a GROUP_JOIN; a unit is some quarter of a microsecond."""

REFUSED = "epoch"
"""The code for a slice that is not the client's: it may be soon."""


class GroupsHost(GroupHost, NoticeHost, Protocol):
    """What the groups need of their head, beside what each needs."""

    startup: StartupBarrier
    group_lags: GroupLags
    journal: LogJournal | None
    publishers: PublisherTable
    routes: RoutingTable

    @property
    def is_starting(self) -> bool: ...


class GroupRequests(HeadPart):
    """`by_name`: the groups of this head. `started_at`, `ready_at`: when this head had its first round, and when it had
    all reports; None before that.
    """

    def __init__(self, host: GroupsHost, cluster: str, times: GroupTimes) -> None:
        self.host, self.cluster, self.times = host, cluster, times
        self._announce: Announce = announce_to_none
        self._elsewhere: dict[str, Declared] = {}
        self._own: dict[str, GroupDefinition] = {}
        self._ended_elsewhere: dict[str, tuple[Declared, float]] = {}
        self.by_name: dict[str, ConsumerGroup] = {}
        self.stamps = GroupStamps()
        self.notices = FunctionNotices(host)
        self.started_at: float | None = None
        self.ready_at: float | None = None
        self._has_restarted = False
        self._forgotten: set[str] = set()
        host.group_links.take = self.on_member

    def register(self, handlers: RecordHandlers) -> None:
        handlers.of_clients.add_costly(msg.GroupJoin, self.on_client, JOIN_UNITS)
        handlers.of_clients.add(msg.GroupBeat, self.on_client)
        handlers.of_clients.add(msg.SliceReleased, self.on_client)
        handlers.of_clients.add(msg.GroupLeave, self.on_client)
        handlers.of_clients.add(msg.SliceCaching, self.on_client)
        handlers.of_clients.add_costly(msg.SliceCache, self.on_client, CACHE_UNITS)
        handlers.of_mediators.add(msg.ClusterGroups, self.on_declared)

    def announce_by(self, announce: Announce) -> None:
        """Tell mediators in this way that a group is out of balance."""
        self._announce = announce
        for group in self.by_name.values():
            group.announce = announce

    # -- members

    def on_client(self, link: Link, record: FromMember) -> None:
        """What a client of this head says as a member: of a group here, or of another cluster's."""
        other = self._other(record.group) if record.group not in self.by_name else None
        if other is None or not other.head:
            self.on_member(link, record)
        elif isinstance(record, msg.GroupJoin) and not link.grant.subscribes:
            self._refuse(link, record.group, NOT_PERMITTED, link.grant.subscribe_refusal)
        else:
            self.host.group_links.pass_on(link, other.head, record)

    def _other(self, group: str) -> Declared | None:
        """A group of another cluster. One that is declared no longer is still its head's: members have its log."""
        ended = self._ended_elsewhere.get(group)
        return self._elsewhere.get(group) or (ended[0] if ended is not None else None)

    def on_member(self, link: MemberLink, record: FromMember) -> None:
        """What a member of a group here says, over whichever way."""
        match record:
            case msg.GroupJoin():
                self.on_join(link, record)
            case msg.GroupBeat():
                self.on_beat(link, record)
            case msg.SliceReleased():
                self.on_released(link, record)
            case msg.GroupLeave():
                self.on_leave(link, record)
            case msg.SliceCaching():
                self.on_caching(link, record)
            case msg.SliceCache():
                self.on_cache(link, record)
            case _:
                assert_never(record)

    def on_join(self, link: MemberLink, join: msg.GroupJoin) -> None:
        """Answer GROUP_JOIN: with GROUP_JOINED and slices, or with a refusal that says what to do."""
        host = self.host
        if not link.grant.subscribes:
            self._refuse(link, join.group, NOT_PERMITTED, link.grant.subscribe_refusal)
            return
        known = self.by_name.get(join.group)
        if any(self._is_forgotten(place) for place in join.places):
            self._has_restarted = True
            if known is not None:
                known.learn_of_restart()
        if host.is_starting:
            if known is None and join.definition is not None and self._may_make(link, join.group, join.definition):
                self.define(join.group, join.definition)
            self._refuse(link, join.group, "starting", f"{host.name} is starting", self.times.beat)
            return
        members = sum(len(group.members) for group in self.by_name.values())
        if members >= MEMBERS_AT_MOST and (known is None or join.member not in known.members):
            self._refuse(link, join.group, "full", f"this head has its {MEMBERS_AT_MOST} members", self.times.gone)
            return
        group = known or self._make(link, join)
        if group is not None and join.definition not in (None, group.definition):
            text = f"group {join.group!r} is defined otherwise here, as {describe(group.definition)}"
            self._refuse(link, join.group, "defined", text)
        elif group is not None:
            is_new = join.member not in group.members and not join.places
            if group.removal is not None and is_new and join.definition is not None and not link.grant.group_refusal:
                self._bring_back(group)
            group.join(link, join)

    def _is_forgotten(self, place: msg.SlicePlace) -> bool:
        """Whether an earlier life of this head has given out a slice of which a member says this place."""
        token = place.token
        return token is not None and token[0] == self.host.name and token[1] != self.host.epoch

    def _may_make(self, link: MemberLink, name: str, definition: GroupDefinition) -> bool:
        """Whether this member may make the group as it says; while the head starts, nothing is refused for good."""
        is_valid = not definition_fault(name, definition)
        return is_valid and not link.grant.group_refusal and len(self.by_name) < GROUPS_AT_MOST

    def _make(self, link: MemberLink, join: msg.GroupJoin) -> ConsumerGroup | None:
        """The group of a first member, which says what it is."""
        host = self.host
        if join.definition is None or isinstance(link, RemoteLink):
            text = f"there is no group {join.group!r} at {self.host.name}; its first member defines it: `slices=...`"
            self._refuse(link, join.group, "unknown", text, self.times.beat)
            return None
        if why := link.grant.group_refusal:
            # It may be a member from before this head has restarted: another one, or the mediator, will say what it is.
            is_known = bool(join.places) or self._is_served(join.group)
            self._refuse(link, join.group, NOT_PERMITTED, why, self.times.beat if is_known else 0.0)
            return None
        if fault := definition_fault(join.group, join.definition):
            self._refuse(link, join.group, "definition", fault)
            return None
        if len(self.by_name) >= GROUPS_AT_MOST:
            self._refuse(link, join.group, "full", f"this head has its {GROUPS_AT_MOST} groups")
            return None
        group = self.define(join.group, join.definition)
        if join.places and group.hold_until < host.now:
            group.hold(host.now + self.times.gone)  # it has been a member before, and there may be others
        return group

    def define(self, name: str, definition: msg.GroupDefinition) -> ConsumerGroup:
        """A group from here on; if the head has just started, members may still say which slices they have."""
        group = ConsumerGroup(self.host, name, definition, self.times, self._hold_until(name))
        group.announce = self._announce
        self.by_name[name] = group
        self._stamp(name, definition)
        # Without a log on a disk all that is logged of a group that is made now has come without its stamp.
        is_recovered = self.host.journal is not None
        self.host.group_lags.begin(name, self.stamps.by_group[name], definition.count, from_start=is_recovered)
        if self.host.is_starting:
            self.host.startup.reported(AWAITED + name)
        return group

    def _stamp(self, name: str, definition: GroupDefinition | None) -> None:
        """Stamp for a group from here on, or no more; clients that publish are told with the next tick."""
        if definition is None:
            del self.stamps.by_group[name]
        else:
            self.stamps.by_group[name] = stamper(name, definition)
        known = {name: each.definition for name, each in self._elsewhere.items()}
        known |= {each.name: each.definition for each in self.by_name.values()}
        if definition is not None:
            known[name] = definition
        self.notices.change({each: known[each] for each in self.stamps.by_group})

    def edge_reported(self, report: msg.EdgeReport) -> set[str]:
        """An edge says what it serves. Returns for which groups the head has to wait."""
        self._has_restarted |= report.head_epoch not in (0, self.host.epoch)
        return self.awaited()

    def awaited(self) -> set[str]:
        """Groups of which edges serve slices, and whose definition this head does not know: what it accepted now would
        have no stamp, and reach no consumer.
        """
        served = {found[0] for x in self.host.owners.entries if (found := slice_of_name(x)) is not None}
        return {AWAITED + name for name in served - self.by_name.keys()}

    def _is_served(self, group: str) -> bool:
        return any((found := slice_of_name(x)) is not None and found[0] == group for x in self.host.owners.entries)

    def _stop_waiting(self) -> None:
        """Nothing has said what these groups are. Their slices attach again when that is known, behind a gap."""
        for awaited in sorted(self.awaited() & self.host.startup.missing):
            name = awaited.removeprefix(AWAITED)
            for x in [x for x in self.host.owners.entries if (found := slice_of_name(x)) and found[0] == name]:
                self.host.end_place(x)
            self._forgotten.add(name)
            self.host.startup.reported(awaited)

    def _hold_until(self, group: str) -> float:
        """Until when members may say which slices they have; a head that has just started may not know its edges."""
        if self.ready_at is None:
            return NEVER
        if group in self._forgotten:
            return self.host.now + self.times.gone
        return self.ready_at + self.times.gone if self._has_restarted or self._is_served(group) else 0.0

    def declare(self, declared: Iterable[Declared]) -> None:
        """The groups of the custom resources, all of them: stamp for each, and serve those of this cluster.

        A group that is declared no longer ends once its members have what the log has of it; one that members have
        made stays.
        """
        all_of_them = {each.name: each for each in declared}
        own = self._own = {name: x.definition for name, x in all_of_them.items() if x.cluster == self.cluster}
        for name, group in self.by_name.items():
            if group.is_declared and name not in own and group.removal is None:
                group.removal = Removal.of(name, self.host.now, self.times)
                self._stamp(name, None)
            group.is_declared = name in own
        for name in [name for name in self._elsewhere if name in own or name not in all_of_them]:
            ended = self._elsewhere.pop(name)
            self._ended_elsewhere[name] = ended, self.host.now + self.times.kept
            self._stamp(name, None)
        for name in all_of_them.keys() & self._ended_elsewhere.keys():
            del self._ended_elsewhere[name]
        for name, each in all_of_them.items():
            if definition_fault(name, each.definition):
                self.host.counters["groups_refused"] += 1
            elif name in own:
                self._declare_own(name, each.definition)
            elif name not in self.by_name and self._elsewhere.get(name) != each:
                self._elsewhere[name] = each
                self._stamp(name, each.definition)

    def on_declared(self, _: Peer, said: msg.ClusterGroups) -> None:
        """A mediator names the groups of the custom resources, all of them."""
        self.declare([Declared(each.cluster, each.name, each.definition, each.head) for each in said.groups])

    def _declare_own(self, name: str, definition: GroupDefinition) -> None:
        group = self.by_name.get(name)
        if group is None:
            group = self.define(name, definition)
        elif group.definition != definition:
            if group.members and group.has_other_slices(definition):
                self.host.counters["groups_refused"] += 1  # its members know it as it is
                return
            has_other_count = definition.count != group.definition.count
            group.redefine(definition)
            group.removal = None
            self._stamp(name, definition)
            stamps = self.stamps.by_group[name]
            if has_other_count:
                self.host.group_lags.begin(name, stamps, definition.count, from_start=False)
            else:
                self.host.group_lags.by_group[name].stamper = stamps
        elif group.removal is not None:
            self._bring_back(group)
        group.is_declared = True

    def _bring_back(self, group: ConsumerGroup) -> None:
        """A group that was removed goes on."""
        group.removal = None
        self._stamp(group.name, group.definition)

    def _refuse(self, link: MemberLink, group: str, code: str, text: str, retry: float = 0.0) -> None:
        self.host.counters["group_joins_refused"] += 1
        self.host.group_links.say(link, msg.GroupRefused(group, code, text, retry))

    def on_beat(self, link: MemberLink, beat: msg.GroupBeat) -> None:
        for group, member in self._members(link, beat.group):
            group.beat(member, beat)

    def on_released(self, link: MemberLink, released: msg.SliceReleased) -> None:
        for group, member in self._members(link, released.group):
            group.released(member, released)

    def on_caching(self, link: MemberLink, said: msg.SliceCaching) -> None:
        for group, member in self._members(link, said.group):
            group.caches.on_caching(member, said)

    def on_cache(self, link: MemberLink, part: msg.SliceCache) -> None:
        for group, member in self._members(link, part.group):
            group.caches.on_cache(member, part)

    def on_leave(self, link: MemberLink, leave: msg.GroupLeave) -> None:
        for group, member in self._members(link, leave.group):
            group.leave(member)

    def _members(self, link: MemberLink, name: str) -> list[tuple[ConsumerGroup, MemberEntry]]:
        """The member of a group that this link is for; one that is none is told so, and joins again."""
        group = self.by_name.get(name)
        found = [member for member in group.members.values() if member.link is link] if group is not None else []
        if group is None or not found:
            text = f"this client is no member of group {name!r} here"
            self._refuse(link, name, STRANGER, text, self.times.beat / 10)
            return []
        return [(group, member) for member in found]

    def expire(self) -> None:
        members = (member for group in self.by_name.values() for member in group.members.values())
        self.host.group_links.keep({member.link for member in members if member.link is not None})

    def client_lost(self, link: Link) -> None:
        self.notices.lost(link)
        for group in self.by_name.values():
            group.lost(link)

    # -- the rest of the head

    def refusal(self, resume: msg.ResumeUp) -> tuple[str, str] | None:
        """Why a client may not attach a slice: a code and a text; None for one that may, and for any other name."""
        found = slice_of_name(resume.subscriber)
        if found is None:
            return None
        group = self.by_name.get(found[0])
        if group is not None:
            return (REFUSED, why) if (why := group.refusal(found[1], resume)) else None
        started = self.started_at if self.started_at is not None else self.host.now
        if self.host.now < started + self.times.gone:
            return None  # its members have not come back yet
        return REFUSED, f"there is no group {found[0]!r} at {self.host.name}; names with @@ are those of slices"

    def resumed(self, subscriber: str, token: Token) -> None:
        """A slice is attached, from this place in the log."""
        found = slice_of_name(subscriber)
        if found is not None and (group := self.by_name.get(found[0])) is not None:
            group.resumed(found[1], token)

    def covered_since(self, subscriber: str) -> Since | None:
        """Since when a slice has been covered: for a taker that attaches it as well, under its other name.

        A head without neighbours has had all publications, and their stamps since it knows the group.
        """
        found = slice_of_name(subscriber)
        group = self.by_name.get(found[0]) if found is not None else None
        if found is None or group is None or found[1] >= len(group.slices):
            return None
        entry = self.host.owners.entries.get(group.covered_by(subscriber, found[1]))
        if entry is not None:
            return entry.since
        return None if self.host.routes.neighbors else (self.host.epoch, group.begins_at)

    def keeps(self, subscriber: str) -> bool:
        """Whether this is a slice of a group here: its place is kept without a lease, as long as the group is."""
        found = slice_of_name(subscriber)
        return found is not None and found[0] in self.by_name

    def stamped(self, publisher: str, request: msg.Publish, body: msg.Body) -> tuple[msg.Publish, msg.Body]:
        """A publication with the slices that it has in the groups here."""
        return self.stamps.stamped(publisher, request, body) if self.stamps.by_group else (request, body)

    def opened(self, link: Link) -> None:
        """A client has opened a publisher."""
        self.notices.tell(link)

    def tick(self) -> None:
        self.notices.tell_all(self.host.publishers.links)
        if self.started_at is None:
            self.started_at = self.host.now
        self.host.group_lags.read()
        if self.host.is_starting:
            if self.host.now > self.started_at + self.times.gone:
                self._stop_waiting()
            return
        if self.ready_at is None:
            self.ready_at = self.host.now
        for group in self.by_name.values():
            if group.hold_until == NEVER:
                group.hold(self._hold_until(group.name))
        for group in self.by_name.values():
            group.tick()
        for group in [each for each in self.by_name.values() if each.is_over or self._is_removed(each)]:
            self._end(group)
        for name in [name for name, (_, until) in self._ended_elsewhere.items() if self.host.now > until]:
            del self._ended_elsewhere[name]

    def wake_at(self) -> float:
        return self.host.now if self.host.group_lags.is_reading else NEVER

    def _lags(self, group: ConsumerGroup) -> list[int]:
        return self.host.group_lags.of(group.name, [each.token for each in group.slices])

    def _is_removed(self, group: ConsumerGroup) -> bool:
        """Whether it was declared, is no longer, and nothing is left to be given."""
        removal, now = group.removal, self.host.now
        return removal is not None and removal.is_over(sum(self._lags(group)), now, self.times)

    def _end(self, group: ConsumerGroup) -> None:
        """A group that was removed, or has had no member for long, is forgotten, with the places of its slices."""
        text = ending(group.name, sum(self._lags(group)))
        for member in group.members.values():
            group.say(member, msg.GroupRefused(group.name, OVER, text))
        del self.by_name[group.name]
        if group.removal is None:
            self._stamp(group.name, None)
        self.host.group_lags.end(group.name)
        for each in group.slices:
            for side in (0, 1):
                self.host.end_place(slice_name(group.name, each.number, side))
        if group.name in self._own:
            self._declare_own(group.name, self._own[group.name])  # its members have held up this definition

    def status(self) -> dict[str, Any]:
        return {"groups": sorted(self.by_name)}

    def by_group(self) -> dict[str, Any]:
        """Of each group: its slices, its consumers and what waits, what has moved, and why the last plan ended."""
        return {
            name: group_report(group, self.stamps, self._lags(group)) for name, group in sorted(self.by_name.items())
        }

    def report(self) -> dict[str, Any]:
        """Fields of a head's load report."""
        return report_field(self.by_group())


def describe(definition: msg.GroupDefinition) -> str:
    """A definition in words."""
    by = f" by {definition.by!r}" if definition.by else ""
    return f"{definition.count} slices, {definition.function}{by}, of {definition.filter or 'all publications'}"
