"""Requests of members of consumer groups at a head: those of groups here, and those that go to another head."""

from __future__ import annotations

from collections import Counter
from typing import Protocol, assert_never

from plimsoll.core.config import BrokerConfig
from plimsoll.core.head.groups.consumer_group import ConsumerGroup
from plimsoll.core.head.groups.declarations import GroupDeclarations
from plimsoll.core.head.groups.definition import definition_fault
from plimsoll.core.head.groups.group_links import STRANGER, GroupLinks, MemberLink, RemoteLink
from plimsoll.core.head.groups.group_table import GroupTable
from plimsoll.core.head.groups.member import MemberEntry
from plimsoll.core.head.part import HeadPart
from plimsoll.core.head.record_handlers import RecordHandlers
from plimsoll.core.permissions import NOT_PERMITTED, client_of
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.messages import FromMember, GroupDefinition
from plimsoll.core.transport.link import Link

GROUPS_AT_MOST = 1000
MEMBERS_AT_MOST = 10_000
"""Of all groups of a head together."""
SLICES_AT_MOST = 200_000
"""The same, of groups that members have made; a slice takes some 320 bytes."""

CACHE_UNITS = 20
JOIN_UNITS = 50
"""Of a GROUP_JOIN; a unit is some quarter of a microsecond."""


class GroupRequestsHost(Protocol):
    """What requests need of their head."""

    now: float
    name: str
    config: BrokerConfig
    counters: Counter[str]
    group_links: GroupLinks

    @property
    def is_starting(self) -> bool: ...


class GroupRequests(HeadPart):
    """`declarations`: which groups are other heads'."""

    def __init__(self, host: GroupRequestsHost, groups: GroupTable, declarations: GroupDeclarations) -> None:
        self.host, self.groups, self.declarations = host, groups, declarations
        host.group_links.take = self.on_member

    def register(self, handlers: RecordHandlers) -> None:
        handlers.of_clients.add_costly(msg.GroupJoin, self.on_client, JOIN_UNITS)
        handlers.of_clients.add(msg.GroupBeat, self.on_client)
        handlers.of_clients.add(msg.SliceReleased, self.on_client)
        handlers.of_clients.add(msg.GroupLeave, self.on_client)
        handlers.of_clients.add(msg.SliceCaching, self.on_client)
        handlers.of_clients.add_costly(msg.SliceCache, self.on_client, CACHE_UNITS)

    def on_client(self, link: Link, record: FromMember) -> None:
        """What a client of this head says as a member: of a group here, or of another cluster's."""
        other = self.declarations.elsewhere(record.group) if record.group not in self.groups.by_name else None
        if other is None or not other.head:
            self.on_member(link, record)
        elif isinstance(record, msg.GroupJoin) and not link.grant.subscribes:
            self._refuse(link, record.group, NOT_PERMITTED, link.grant.subscribe_refusal)
        else:
            self.host.group_links.pass_on(link, other.head, record)

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
        known = self.groups.by_name.get(join.group)
        if self.groups.restart.member_said(join.places) and known is not None:
            known.memory.learn_of_restart()
        if host.is_starting:
            if known is None and join.definition is not None and self._may_make(link, join.group, join.definition):
                self.groups.define(join.group, join.definition, _client_of(link))
            self._refuse(link, join.group, "starting", f"{host.name} is starting", self.groups.times.beat)
            return
        members = sum(len(group.members) for group in self.groups.by_name.values())
        if members >= MEMBERS_AT_MOST and (known is None or join.member not in known.members):
            self._refuse(
                link, join.group, "full", f"this head has its {MEMBERS_AT_MOST} members", self.groups.times.gone
            )
            return
        group = known or self._make(link, join)
        if group is not None and join.definition not in (None, group.definition):
            text = f"group {join.group!r} is defined otherwise here, as {describe(group.definition)}"
            self._refuse(link, join.group, "defined", text)
        elif group is not None:
            # Members from before a restart of this head come first; of these none is new.
            is_new = join.member not in group.members and not join.places and not group.memory.is_waiting
            if is_new and join.definition is not None and group.removal is not None:
                if self._may_make(link, join.group, join.definition):
                    self.groups.bring_back(group, _client_of(link))
            elif join.definition is not None and not group.is_declared:
                group.maker = group.maker or _client_of(link)
            group.join(link, join)

    def _may_make(self, link: MemberLink, name: str, definition: GroupDefinition) -> bool:
        """Whether this member may make the group as it says; while the head starts, nothing is refused for good."""
        is_valid = not definition_fault(name, definition)
        return is_valid and not link.grant.group_refusal and not self._no_room(link, definition)

    def _no_room(self, link: MemberLink, definition: GroupDefinition) -> str:
        """Why this client may not make one more group here; empty if it may. Declared groups count for nobody."""
        if len(self.groups.by_name) >= GROUPS_AT_MOST:
            return f"this head has its {GROUPS_AT_MOST} groups"
        limits, client = self.host.config.limits, _client_of(link)
        made = [each for each in self.groups.by_name.values() if not each.is_declared and each.removal is None]
        own = [each for each in made if each.maker == client]
        most = link.grant.max_consumer_groups or limits.max_consumer_groups
        if len(own) >= most:
            ends = f"a group ends {self.groups.times.unused:g} s after its last member has gone"
            return f"{client} has its {most} consumer groups here; {ends}"
        for groups, who, bound in ((own, client, limits.max_group_slices), (made, "this head", SLICES_AT_MOST)):
            if (slices := sum(each.definition.count for each in groups)) + definition.count > bound:
                return f"{definition.count} slices: {who} has {slices} of its {bound} slices of consumer groups here"
        return ""

    def _make(self, link: MemberLink, join: msg.GroupJoin) -> ConsumerGroup | None:
        """The group of a first member, which says what it is."""
        host = self.host
        if join.definition is None or isinstance(link, RemoteLink):
            text = f"there is no group {join.group!r} at {self.host.name}; its first member defines it: `slices=...`"
            self._refuse(link, join.group, "unknown", text, self.groups.times.beat)
            return None
        if why := link.grant.group_refusal:
            # It may be a member from before this head has restarted: another one, or the mediator, will say what it is.
            is_known = bool(join.places) or self.groups.restart.is_served(join.group)
            self._refuse(link, join.group, NOT_PERMITTED, why, self.groups.times.beat if is_known else 0.0)
            return None
        if fault := definition_fault(join.group, join.definition):
            self._refuse(link, join.group, "definition", fault)
            return None
        if why := self._no_room(link, join.definition):
            self._refuse(link, join.group, "full", why)
            return None
        group = self.groups.define(join.group, join.definition, _client_of(link))
        if join.places and group.memory.hold_until < host.now:
            group.memory.hold(host.now + self.groups.times.gone)  # it has been a member before, and there may be others
        return group

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
            if fault := group.caches.on_cache(member, part):
                self._refuse(link, part.group, "malformed", fault)

    def on_leave(self, link: MemberLink, leave: msg.GroupLeave) -> None:
        for group, member in self._members(link, leave.group):
            group.leave(member)

    def _members(self, link: MemberLink, name: str) -> list[tuple[ConsumerGroup, MemberEntry]]:
        """The member of a group that this link is for; one that is none is told so, and joins again."""
        group = self.groups.by_name.get(name)
        found = [member for member in group.members.values() if member.link is link] if group is not None else []
        if group is None or not found:
            text = f"this client is no member of group {name!r} here"
            self._refuse(link, name, STRANGER, text, self.groups.times.beat / 10)
            return []
        return [(group, member) for member in found]


def _client_of(link: MemberLink) -> str:
    """Against whom a group counts that this member makes."""
    return link.identity if isinstance(link, RemoteLink) else client_of(link.identity, link.name)


def describe(definition: msg.GroupDefinition) -> str:
    """A definition in words."""
    by = f" by {definition.by!r}" if definition.by else ""
    return f"{definition.count} slices, {definition.function}{by}, of {definition.filter or 'all publications'}"
