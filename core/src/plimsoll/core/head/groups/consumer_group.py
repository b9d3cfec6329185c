"""One consumer group at its head: members, slices, and the moves of slices between members.

Rules, each of which tests/exploration/slice_move.py shows to be needed:
- A slice is assigned only when its holder has released it, or has gone; each assignment has a new, higher epoch.
- It goes on behind the last acknowledgement of its holder. If that has gone, what lies behind may have been given; it
  is marked when it comes again.
- A member that has not been heard for longer than its lease has stopped by itself. Only then is it taken to be gone.

When slices move, and which, is `SliceSchedule`'s; what a head has forgotten by restarting `GroupMemory`'s.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

import msgspec

from plimsoll.core.head.durability.records import SliceKept
from plimsoll.core.head.groups.cache_sessions import CacheSession, CacheSessions
from plimsoll.core.head.groups.group_links import GroupLinks, MemberLink
from plimsoll.core.head.groups.group_memory import GroupMemory
from plimsoll.core.head.groups.member import MemberEntry
from plimsoll.core.head.groups.removal import Removal
from plimsoll.core.head.groups.slice_schedule import SliceSchedule
from plimsoll.core.head.groups.slices import GroupSlice
from plimsoll.core.head.groups.times import GroupTimes
from plimsoll.core.head.log import Log
from plimsoll.core.head.ownership import OwnershipTable
from plimsoll.core.permissions import incarnation_fault
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.messages import AnswerToMember
from plimsoll.core.protocol.slice_names import slice_name
from plimsoll.core.protocol.wire import Token

EPOCH_BITS: Final = 10
"""The random bits of a head's epoch, which is microseconds above them. An epoch of a slice is below 2^53."""


class GroupHost(Protocol):
    """What a group needs of its head."""

    now: float
    name: str
    epoch: int
    log: Log
    owners: OwnershipTable
    counters: Counter[str]
    group_links: GroupLinks

    def end_place(self, subscriber: str) -> None:
        """Let what an edge keeps for a subscriber go."""


class ConsumerGroup:
    """`version`: of members and their slices. `revoked`: the numbers of slices whose holder was told to let go.

    `since`: the epoch and the position from which on this head has its publications, with their stamps. `removal`: of a
    group that was declared. `is_unwritten`: something of a slice has changed that must not be forgotten. `maker`: the
    client that has made it, against which it counts; empty if it is declared, or nobody has said so since a restart.
    """

    def __init__(
        self, host: GroupHost, name: str, definition: msg.GroupDefinition, times: GroupTimes, hold_until: float
    ) -> None:
        self.version = 0
        self.host, self.name, self.definition, self.times = host, name, definition, times
        self.is_declared = self.is_unwritten = False
        self.maker = ""
        self.removal: Removal | None = None
        self.members: dict[str, MemberEntry] = {}
        self.slices = [GroupSlice(number) for number in range(definition.count)]
        self.revoked: set[int] = set()
        self.counts: Counter[str] = Counter()
        self.since = (host.epoch, host.log.last)
        self.caches = CacheSessions(self)
        self.memory = GroupMemory(self, hold_until)
        self.schedule = SliceSchedule(self, definition.balancing)
        self._next_look = self._next_sweep = 0.0
        self._without_members_since = host.now

    def has_other_slices(self, definition: msg.GroupDefinition) -> bool:
        """Whether this definition differs in more than in how slices are balanced, and go from member to member."""
        own = self.definition
        return msgspec.structs.replace(definition, balancing=own.balancing, in_session=own.in_session) != own

    def redefine(self, definition: msg.GroupDefinition) -> None:
        """Go on under another definition: with other slices if there are no members, else with other balancing."""
        if definition.count != len(self.slices):
            self.slices = [GroupSlice(number) for number in range(definition.count)]
            self.revoked.clear()
            self.caches.under_way.clear()
            self.schedule.commanded.clear()
        self.definition = definition
        self.schedule.balance_by(definition.balancing)
        self._change()

    def recall(self, kept: Iterable[SliceKept]) -> None:
        """Go on where the log says that slices are, until a member says more."""
        self.memory.is_recalled = True
        for slice_kept in kept:
            if slice_kept.number < len(self.slices):
                self.slices[slice_kept.number].recall(slice_kept)

    # -- members

    def join(self, link: MemberLink, join: msg.GroupJoin) -> None:
        """A new member, or one that goes on over a new link and says which slices it has."""
        host, known = self.host, self.members.get(join.member)
        if known is not None and not known.is_of(link, join.incarnation):
            text = (
                f"{self.name!r} has a member {join.member!r}: give each its own name, or wait until that one has gone"
            )
            retry = self.times.beat if known.identity == link.identity else 0.0
            host.group_links.say(link, msg.GroupRefused(self.name, "name", text, retry))
            return
        if known is None:
            known = self.members[join.member] = MemberEntry(
                join.member, link.identity, join.incarnation, link, host.now, host.now
            )
            self.counts["joined"] += 1
        else:
            self.caches.member_lost(known.name)  # over a new link nothing of a session goes on
        known.link, known.heard_at = link, host.now
        self._change()
        joined = msg.GroupJoined(self.name, self.definition, self.times.beat, self.times.lease, host.name)
        host.group_links.say(link, joined)
        self._take_places(known, join.places)

    def _take_places(self, member: MemberEntry, places: Sequence[msg.SlicePlace]) -> None:
        said = {place.number: place for place in places if place.number < len(self.slices)}
        for each in self.slices:
            place = said.get(each.number)
            if place is not None and self.memory.is_waiting and place.epoch > each.epoch:
                self._believe(each, member, place)
            if place is None or not each.is_held(member.name, place.epoch):
                if place is not None and not place.is_released:
                    self.say(member, msg.SliceRevoked(self.name, each.number, place.epoch))
                if each.holder == member.name:
                    self._give_up(each, is_certain=False)  # it never heard, or has stopped by itself
                continue
            each.progress(place)
            if place.is_released:
                self._give_up(each, is_certain=not place.was_cut_off)
            elif each.is_revoked:
                self.say(member, msg.SliceRevoked(self.name, each.number, each.epoch))

    def _believe(self, each: GroupSlice, member: MemberEntry, place: msg.SlicePlace) -> None:
        """It has had the slice since before this head has restarted; one that has said so under an older epoch, not."""
        if not _is_possible(place, self.host.epoch):
            return
        older = self.members.get(each.holder)
        if older is not None:
            self.say(older, msg.SliceRevoked(self.name, each.number, each.epoch))
        each.begin(member.name, place.epoch)
        each.side = place.side

    def beat(self, member: MemberEntry, beat: msg.GroupBeat) -> None:
        """It lives; take over how far it has got, and its load."""
        member.heard_at = self.host.now
        for place in beat.places:
            if place.number < len(self.slices) and self.slices[place.number].is_held(member.name, place.epoch):
                self.slices[place.number].progress(place)
        if beat.load is not None:
            member.load, member.measured_at = beat.load, self.host.now
        self.say(member, msg.GroupBeatAnswer(self.name, beat.number, self.removal.text if self.removal else ""))

    def released(self, member: MemberEntry, released: msg.SliceReleased) -> None:
        """It has given up a slice, which goes on elsewhere behind its place."""
        place = released.place
        if place.number >= len(self.slices) or self.caches.taker_released(member, place):
            return
        each = self.slices[place.number]
        if not each.is_held(member.name, place.epoch):
            return
        each.progress(place)
        if (session := self.caches.merged(each, released)) is not None:
            self._pass_on(each, place, session)
        else:
            self._give_up(each, is_certain=not place.was_cut_off)

    def _pass_on(self, each: GroupSlice, place: msg.SlicePlace, session: CacheSession) -> None:
        """The taker has both caches: it has the slice from here on, under its other name."""
        name, giver = slice_name(self.name, each.number, each.side), each.holder
        taker = self.members[session.taker]
        each.end(None)
        self._changed(giver)
        self.revoked.discard(each.number)
        each.side = 1 - each.side
        each.begin(taker.name, session.epoch)
        self._changed(taker.name)
        self.counts["moved"] += 1
        self.schedule.is_settled &= not taker.is_leaving
        self.say(taker, msg.SliceCache(self.name, each.number, session.epoch, [], place))
        self.end_place(name)

    def leave(self, member: MemberEntry) -> None:
        """It wants to go: it is asked for all its slices, and told once it has none."""
        member.is_leaving = True
        self._change()

    def lost(self, link: MemberLink) -> None:
        """The link of members is over; they may go on over another one within their lease."""
        for member in self.members.values():
            if member.link is link:
                member.link = None
                self.caches.member_lost(member.name)

    def _drop(self, member: MemberEntry, kind: str) -> None:
        del self.members[member.name]
        self.schedule.forget(member.name)
        self.counts[kind] += 1
        self.caches.member_lost(member.name)
        for each in self.slices:
            if each.holder == member.name:
                self._give_up(each, is_certain=False)
            elif each.taker == member.name:
                each.taker = ""
        self._change()

    # -- slices

    def _give_up(self, each: GroupSlice, *, is_certain: bool) -> None:
        """Its holder has it no more: the taker gets it, if there is one."""
        self.caches.cancel(each, "lost")
        given_to: Token | None = None if is_certain else (self.host.name, self.host.epoch, self.host.log.last)
        self.is_unwritten |= given_to is not None
        giver, taker = each.holder, self.members.get(each.end(given_to))
        if each.is_doubted:
            self.memory.begin_again(each)
        self.revoked.discard(each.number)
        self._changed(giver)
        if taker is not None and not taker.is_leaving:
            self.counts["moved"] += 1
            self.assign(each, taker)
        else:
            self.schedule.is_settled = False

    def _changed(self, name: str) -> None:
        self.version += 1
        if (member := self.members.get(name)) is not None:
            member.changed_at = self.host.now

    def next_epoch(self, each: GroupSlice) -> int:
        """Above all that an edge may know of this slice, and of an earlier life of this head."""
        newest = max(self.host.owners.newest(slice_name(self.name, each.number, side))[0] for side in (0, 1))
        return max(each.epoch, newest, self.host.epoch >> EPOCH_BITS) + 1

    def assign(self, each: GroupSlice, member: MemberEntry) -> None:
        """In a new epoch, from the last acknowledgement."""
        each.begin(member.name, self.next_epoch(each))
        each.is_blind |= each.token is None
        self._changed(member.name)
        self.say(
            member,
            msg.SliceAssigned(self.name, each.number, each.epoch, each.token, each.marks, each.given_to, each.side),
        )

    def end_place(self, name: str) -> None:
        """Let the place of a name of a slice go."""
        self.host.end_place(name)

    def say(self, member: MemberEntry, record: AnswerToMember) -> None:
        if member.link is not None:  # without a link it says what it has when it comes back
            self.host.group_links.say(member.link, record)

    # -- time

    @property
    def is_over(self) -> bool:
        """Whether it has had no member for so long that it is forgotten; one that was removed is kept for longer."""
        kept = self.times.unused if self.removal is None else self.times.kept
        return not self.is_declared and self.host.now > self._without_members_since + kept

    def tick(self) -> None:
        now = self.host.now
        if self.members:
            self._without_members_since = now
        elif self.schedule.is_settled and now < self._next_look:
            return  # nobody waits for it: groups that are not used cost a round next to nothing
        if now >= self._next_look or not self.schedule.is_settled:
            self._next_look = now + self.times.beat / 10
            self._look_at_members(now)
            self.caches.tick(now)
        if not self.memory.is_waiting:
            self.memory.look()
            if now >= self._next_sweep:
                self._next_sweep = now + self.times.gone
                self._sweep()
            self.schedule.go_on()

    def _sweep(self) -> None:
        """An edge that was away when a session ended comes back with the place of a name that is not used."""
        for name in self.caches.left_over():
            if name in self.host.owners.entries:
                self.end_place(name)

    def _look_at_members(self, now: float) -> None:
        """Members that are gone, and those that leave and have nothing left."""
        for member in [m for m in self.members.values() if now - m.heard_at > self.times.gone]:
            self._drop(member, "gone")
        for member in [m for m in self.members.values() if m.is_leaving]:
            if not any(each.holder == member.name for each in self.slices):
                self.say(member, msg.GroupLeft(self.name))
                self._drop(member, "left")

    def _change(self) -> None:
        """Members have changed."""
        self.version += 1
        self.schedule.begin_again()

    def revoke(self, each: GroupSlice, taker: str) -> None:
        """Tell its holder to let go; `taker`: the member that gets it then, empty for none yet."""
        self.version += 1
        each.is_revoked, each.taker = True, taker
        self.revoked.add(each.number)
        holder, to = self.members.get(each.holder), self.members.get(taker)
        until = self.host.now + self.times.session
        has_caches = self.definition.in_session == "Cache"
        if has_caches and holder is not None and to is not None and self.caches.begin(each, holder, to, until):
            return
        if holder is not None:
            self.say(holder, msg.SliceRevoked(self.name, each.number, each.epoch))


def _is_possible(place: msg.SlicePlace, head_epoch: int) -> bool:
    """Whether an earlier life of a head can have given a slice out so; another place would leave the slice unusable."""
    return place.side in (0, 1) and not incarnation_fault(place.epoch, head_epoch >> EPOCH_BITS)
