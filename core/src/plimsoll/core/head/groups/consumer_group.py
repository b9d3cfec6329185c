"""One consumer group at its head: members, slices, and the moves of slices between members.

Rules, each of which tests/exploration/slice_move.py shows to be needed:
- A slice is assigned only when its holder has released it, or has gone; each assignment has a new, higher epoch.
- It goes on behind the last acknowledgement of its holder. If that has gone, what lies behind may have been given; it
  is marked when it comes again.
- A member that has not been heard for longer than its lease has stopped by itself. Only then is it taken to be gone.
- A head that restarts lets members say what they have before it assigns anything. Of a slice of which none says
  anything it does not know what has been processed: whatever its earlier lives have accepted is told as a gap, and
  what it has accepted itself is marked. Where nothing has told the head that it has restarted before a member says
  so, the slices that began as those of a new group begin again, behind that gap.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import msgspec

from plimsoll.core.head.groups.cache_sessions import CacheSession, CacheSessions
from plimsoll.core.head.groups.group_links import GroupLinks, MemberLink
from plimsoll.core.head.groups.member import MemberEntry
from plimsoll.core.head.groups.removal import Removal
from plimsoll.core.head.groups.slices import GroupSlice
from plimsoll.core.head.groups.times import GroupTimes
from plimsoll.core.head.log import Log
from plimsoll.core.head.ownership import OwnershipTable
from plimsoll.core.policies.consumer_groups.membership import settle
from plimsoll.core.policies.consumer_groups.model import ConsumerLoad, SliceMove, SlicePlan
from plimsoll.core.policies.consumer_groups.named import BALANCING
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.messages import AnswerToMember
from plimsoll.core.protocol.slice_names import slice_name
from plimsoll.core.protocol.wire import Token
from plimsoll.core.transport.link import NEVER

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


Announce = Callable[[str, Sequence[ConsumerLoad], SlicePlan], bool]
"""Tell mediators that a group, by name, is out of balance; False if there is none to plan a session."""


def announce_to_none(*_: object) -> bool:
    """For a head without mediators."""
    return False


class ConsumerGroup:
    """`hold_until`: until then members may still say which slices they have. `version`: of members and their slices.

    `begins_at`: the position from which on this head has its publications, with their stamps. `removal`: of a group
    that was declared. `commanded`: moves of sessions, which begin once those before them have ended; what members do
    comes before them.
    """

    def __init__(
        self, host: GroupHost, name: str, definition: msg.GroupDefinition, times: GroupTimes, hold_until: float
    ) -> None:
        self.announce: Announce = announce_to_none
        self.version = 0
        self.commanded: list[tuple[SliceMove, ...]] = []
        self.host, self.name, self.definition, self.times, self.hold_until = host, name, definition, times, hold_until
        self.policy = BALANCING[definition.balancing]
        self.is_declared = False
        self.removal: Removal | None = None
        self.members: dict[str, MemberEntry] = {}
        self.slices = [GroupSlice(number) for number in range(definition.count)]
        self.counts: Counter[str] = Counter()
        self.plan = SlicePlan()
        self.caches = CacheSessions(self)
        self._sessions: list[tuple[SliceMove, ...]] = []
        self._revoked: set[int] = set()
        self._newcomers: set[str] = set()  # members that are yet to get their share
        self._next_look = self._next_sweep = 0.0
        self._session_until = 0.0
        self._is_settled = False
        self._has_forgotten = host.now < hold_until < NEVER
        self._without_members_since = host.now
        self.begins_at = host.log.last
        self._next_balance = host.now + times.balance

    def hold(self, until: float) -> None:
        """Let members say until then what they have, for this head has forgotten it."""
        self.hold_until, self._has_forgotten = until, until > self.host.now

    def has_other_slices(self, definition: msg.GroupDefinition) -> bool:
        """Whether this definition differs in more than in how slices are balanced, and go from member to member."""
        own = self.definition
        return msgspec.structs.replace(definition, balancing=own.balancing, in_session=own.in_session) != own

    def redefine(self, definition: msg.GroupDefinition) -> None:
        """Go on under another definition: with other slices if there are no members, else with other balancing."""
        if definition.count != len(self.slices):
            self.slices = [GroupSlice(number) for number in range(definition.count)]
            self._revoked.clear()
            self.caches.under_way.clear()
        self.definition, self.policy = definition, BALANCING[definition.balancing]
        self._change()

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
            if place is not None and self.host.now < self.hold_until and place.epoch > each.epoch:
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
        self._revoked.discard(each.number)
        each.side = 1 - each.side
        each.begin(taker.name, session.epoch)
        self._changed(taker.name)
        self.counts["moved"] += 1
        self._is_settled &= not taker.is_leaving
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
        self._newcomers.discard(member.name)
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
        giver, taker = each.holder, self.members.get(each.end(given_to))
        if each.is_doubted:
            self._begin_again(each)
        self._revoked.discard(each.number)
        self._changed(giver)
        if taker is not None and not taker.is_leaving:
            self.counts["moved"] += 1
            self._assign(each, taker)
        else:
            self._is_settled = False

    def _changed(self, name: str) -> None:
        self.version += 1
        if (member := self.members.get(name)) is not None:
            member.changed_at = self.host.now

    def next_epoch(self, each: GroupSlice) -> int:
        """Above all that an edge may know of this slice, and of an earlier life of this head."""
        newest = max(self.host.owners.newest(slice_name(self.name, each.number, side))[0] for side in (0, 1))
        return max(each.epoch, newest, self.host.epoch >> EPOCH_BITS) + 1

    def _assign(self, each: GroupSlice, member: MemberEntry) -> None:
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
        """Whether it has had no member for so long that it is forgotten."""
        return not self.is_declared and self.host.now > self._without_members_since + self.times.kept

    def tick(self) -> None:
        now = self.host.now
        if self.members:
            self._without_members_since = now
        if now >= self._next_look or not self._is_settled:
            self._next_look = now + self.times.beat / 10
            self._look_at_members(now)
            self.caches.tick(now)
        if now >= self.hold_until:
            if self._has_forgotten:
                self._doubt_places()
            if now >= self._next_sweep:
                self._next_sweep = now + self.times.gone
                self._sweep()
            self._go_on()

    def _sweep(self) -> None:
        """An edge that was away when a session ended comes back with the place of a name that is not used."""
        for name in self.caches.left_over():
            if name in self.host.owners.entries:
                self.end_place(name)

    def _doubt_places(self) -> None:
        """All that members can say of what this head has forgotten has been said.

        One that has died since may have been given what this life of the head has accepted; so it may of a slice of
        which only an earlier member has spoken, which had released it.
        """
        self._has_forgotten = False
        for each in self.slices:
            if each.token is None:
                self._begin_again(each)
            if not each.holder:
                each.given_to = self.host.name, self.host.epoch, self.host.log.last

    def _begin_again(self, each: GroupSlice) -> None:
        """From before all that this head has accepted: whatever it has forgotten is told as a gap."""
        each.token, each.is_doubted = (self.host.name, 0, 0), False

    def learn_of_restart(self) -> None:
        """A member says what an earlier life of this head has told it, and slices may have begun without that."""
        now = self.host.now
        if now < self.hold_until:
            return
        if not any(each.holder for each in self.slices):
            self.hold(now + self.times.gone)
            return
        for each in self.slices:
            if each.token is None and not each.holder:
                self._begin_again(each)
            elif each.is_blind:
                each.is_doubted = True
                if each.holder and not each.is_revoked:
                    self._revoke(each, "")
            each.is_blind = False

    def _look_at_members(self, now: float) -> None:
        """Members that are gone, and those that leave and have nothing left."""
        for member in [m for m in self.members.values() if now - m.heard_at > self.times.gone]:
            self._drop(member, "gone")
        for member in [m for m in self.members.values() if m.is_leaving]:
            if not any(each.holder == member.name for each in self.slices):
                self.say(member, msg.GroupLeft(self.name))
                self._drop(member, "left")

    def _change(self) -> None:
        """Members have changed: moves that have not begun are planned again."""
        self._is_settled = False
        self._sessions = []
        self.version += 1

    def command(self, moves: tuple[SliceMove, ...], *, empties: bool) -> None:
        """Moves that a mediator has planned, of one giver and one taker.

        `empties`: the giver gets no slice until it is named as a taker; as one whose last slice is taken.
        """
        if not moves:
            return
        giver, taker = self.members.get(moves[0].giver), self.members.get(moves[0].taker)
        if taker is not None:
            taker.is_emptied = False
        if giver is not None:
            self._newcomers.discard(giver.name)
            left = {each.number for each in self.slices if each.holder == giver.name and not each.is_revoked}
            giver.is_emptied = giver.is_emptied or empties or left <= {move.number for move in moves}
        self.commanded.append(moves)

    def withdraw(self, moves: tuple[SliceMove, ...]) -> None:
        """Commanded moves that are not to begin; a giver that keeps slices may get others again."""
        self.commanded = [each for each in self.commanded if each != moves]
        for name in {move.giver for move in moves} & self.members.keys():
            if any(each.holder == name and not each.is_revoked for each in self.slices):
                self.members[name].is_emptied = False

    def is_under_way(self, move: SliceMove) -> bool:
        """Whether a commanded move is yet to begin, or its giver has yet to let go."""
        each = self.slices[move.number]
        has_begun = each.is_revoked and (each.holder, each.taker) == (move.giver, move.taker)
        return has_begun or any(move in moves for moves in self.commanded)

    def _go_on(self) -> None:
        if self._revoked and self.host.now < self._session_until:
            return
        if not self._sessions and (not self._is_settled or (self._newcomers and not self._revoked)):
            self._settle()
        elif not self._sessions and self.commanded:
            self._sessions = [self.commanded.pop(0)]
        elif not self._sessions and self.host.now >= self._next_balance:
            self._balance()
        while self._sessions and not self._begin(self._sessions.pop(0)):
            pass

    def consumers(self) -> list[ConsumerLoad]:
        """The members with the slices that they have, or are about to get."""
        slices: dict[str, list[int]] = {name: [] for name in self.members}
        for each in self.slices:
            holder = each.taker if each.is_revoked and each.taker else each.holder
            if holder in slices:
                slices[holder].append(each.number)
        takers = any(not (member.is_leaving or member.is_emptied) for member in self.members.values())
        return [
            member.consumer(slices[name], takes=not (takers and member.is_emptied))
            for name, member in sorted(self.members.items())
        ]

    def _settle(self) -> None:
        free = [each.number for each in self.slices if not each.holder]
        self._is_settled = True
        staying = [member for member in self.members.values() if not member.is_leaving]
        if staying:
            if all(member.is_emptied for member in staying):
                for member in staying:  # no other consumer is left; one that comes later gets its share as ever
                    member.is_emptied = False
            self._share_out(free)
            return
        for each in self.slices:  # the last ones leave: their slices wait for the next member
            if each.holder and not each.is_revoked:
                self._revoke(each, "")

    def _share_out(self, free: list[int]) -> None:
        """Every slice has a consumer, and a newcomer its even share.

        What happens meanwhile cuts a plan short, so one stays a newcomer until nothing is left to move for it.
        """
        consumers = self.consumers()
        self._newcomers |= {each.name for each in consumers if each.stays and not each.slices}
        plan = settle(consumers, free, self._newcomers)
        if not plan.moves and not self._revoked:
            self._newcomers.clear()
        self.take_plan(plan)

    def _balance(self) -> None:
        self._next_balance = self.host.now + self.times.balance
        if self.policy is None or len(self.members) < 2:
            return
        consumers = self.consumers()
        plan = self.policy.balance(consumers)
        if plan.moves and self.announce(self.name, consumers, plan):
            plan = SlicePlan(reason="mediators have been told; a session moves slices")
        self.take_plan(plan)

    def take_plan(self, plan: SlicePlan) -> None:
        self.plan, self._sessions = plan, list(plan.sessions)

    def _begin(self, session: tuple[SliceMove, ...]) -> bool:
        """Begin a session of two members; returns whether it takes time, for the next begins when it has ended."""
        is_waiting = False
        for move in session:
            each, taker = self.slices[move.number], self.members.get(move.taker)
            if taker is None or each.is_revoked or each.holder != move.giver:
                continue
            if each.holder:
                self._revoke(each, move.taker)
                is_waiting = True
            else:
                self._assign(each, taker)
        if is_waiting:
            self.counts["sessions"] += 1
            self._session_until = self.host.now + self.times.session
        return is_waiting

    def _revoke(self, each: GroupSlice, taker: str) -> None:
        self.version += 1
        each.is_revoked, each.taker = True, taker
        self._revoked.add(each.number)
        holder, to = self.members.get(each.holder), self.members.get(taker)
        until = self.host.now + self.times.session
        has_caches = self.definition.in_session == "Cache"
        if has_caches and holder is not None and to is not None and self.caches.begin(each, holder, to, until):
            return
        if holder is not None:
            self.say(holder, msg.SliceRevoked(self.name, each.number, each.epoch))
