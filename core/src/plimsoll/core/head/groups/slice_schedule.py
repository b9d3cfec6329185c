"""When slices of a group move, and which: what members do comes first, then what mediators command, then balancing.

Moves are of two members, one pair after another; a pair whose giver is slow holds up the next for a while at most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol

from plimsoll.core.head.groups.member import MemberEntry
from plimsoll.core.head.groups.slices import GroupSlice
from plimsoll.core.head.groups.times import GroupTimes
from plimsoll.core.policies.consumer_groups.membership import settle
from plimsoll.core.policies.consumer_groups.model import ConsumerLoad, SliceMove, SlicePlan
from plimsoll.core.policies.consumer_groups.named import BALANCING

Announce = Callable[[str, Sequence[ConsumerLoad], SlicePlan], bool]
"""Tell mediators that a group, by name, is out of balance; False if there is none to plan a session."""


def announce_to_none(*_: object) -> bool:
    """For a head without mediators."""
    return False


class Clock(Protocol):
    """The head's."""

    now: float


class ScheduledGroup(Protocol):
    """What a schedule needs of its group. `revoked`: the numbers of slices whose holder was told to let go."""

    name: str
    times: GroupTimes
    members: dict[str, MemberEntry]
    slices: list[GroupSlice]
    revoked: set[int]
    counts: Counter[str]

    @property
    def host(self) -> Clock: ...
    def assign(self, each: GroupSlice, member: MemberEntry) -> None: ...
    def revoke(self, each: GroupSlice, taker: str) -> None: ...


class SliceSchedule:
    """`plan`: the last one. `commanded`: moves of sessions, which begin once those before them have ended.

    `is_settled`: whether every slice has a consumer that stays, and every newcomer its share, as far as is known.
    """

    def __init__(self, group: ScheduledGroup, balancing: str) -> None:
        self.group = group
        self.announce: Announce = announce_to_none
        self.policy = BALANCING[balancing]
        self.plan = SlicePlan()
        self.commanded: list[tuple[SliceMove, ...]] = []
        self.is_settled = False
        self._sessions: list[tuple[SliceMove, ...]] = []
        self._newcomers: set[str] = set()  # members that are yet to get their share
        self._session_until = 0.0
        self._next_balance = group.host.now + group.times.balance

    def balance_by(self, balancing: str) -> None:
        """Go on with another policy."""
        self.policy = BALANCING[balancing]

    def begin_again(self) -> None:
        """Members have changed: moves that have not begun are planned again."""
        self.is_settled = False
        self._sessions = []

    def forget(self, name: str) -> None:
        """A member has gone."""
        self._newcomers.discard(name)

    def command(self, moves: tuple[SliceMove, ...], *, empties: bool) -> None:
        """Moves that a mediator has planned, of one giver and one taker.

        `empties`: the giver gets no slice until it is named as a taker; as one whose last slice is taken.
        """
        if not moves:
            return
        giver, taker = self.group.members.get(moves[0].giver), self.group.members.get(moves[0].taker)
        if taker is not None:
            taker.is_emptied = False
        if giver is not None:
            self._newcomers.discard(giver.name)
            left = {each.number for each in self.group.slices if each.holder == giver.name and not each.is_revoked}
            giver.is_emptied = giver.is_emptied or empties or left <= {move.number for move in moves}
        self.commanded.append(moves)

    def withdraw(self, moves: tuple[SliceMove, ...]) -> None:
        """Commanded moves that are not to begin; a giver that keeps slices may get others again."""
        self.commanded = [each for each in self.commanded if each != moves]
        for name in {move.giver for move in moves} & self.group.members.keys():
            if any(each.holder == name and not each.is_revoked for each in self.group.slices):
                self.group.members[name].is_emptied = False

    def is_under_way(self, move: SliceMove) -> bool:
        """Whether a commanded move is yet to begin, or its giver has yet to let go."""
        each = self.group.slices[move.number]
        has_begun = each.is_revoked and (each.holder, each.taker) == (move.giver, move.taker)
        return has_begun or any(move in moves for moves in self.commanded)

    def go_on(self) -> None:
        """Begin what is due, unless a pair is waited for."""
        if self.group.revoked and self.group.host.now < self._session_until:
            return
        if not self._sessions and (not self.is_settled or (self._newcomers and not self.group.revoked)):
            self._settle()
        elif not self._sessions and self.commanded:
            self._sessions = [self.commanded.pop(0)]
        elif not self._sessions and self.group.host.now >= self._next_balance:
            self._balance()
        while self._sessions and not self._begin(self._sessions.pop(0)):
            pass

    def consumers(self) -> list[ConsumerLoad]:
        """The members with the slices that they have, or are about to get."""
        slices: dict[str, list[int]] = {name: [] for name in self.group.members}
        for each in self.group.slices:
            holder = each.taker if each.is_revoked and each.taker else each.holder
            if holder in slices:
                slices[holder].append(each.number)
        takers = any(not (member.is_leaving or member.is_emptied) for member in self.group.members.values())
        return [
            member.consumer(slices[name], takes=not (takers and member.is_emptied))
            for name, member in sorted(self.group.members.items())
        ]

    def _settle(self) -> None:
        free = [each.number for each in self.group.slices if not each.holder]
        self.is_settled = True
        staying = [member for member in self.group.members.values() if not member.is_leaving]
        if staying:
            if all(member.is_emptied for member in staying):
                for member in staying:  # no other consumer is left; one that comes later gets its share as ever
                    member.is_emptied = False
            self._share_out(free)
            return
        for each in self.group.slices:  # the last ones leave: their slices wait for the next member
            if each.holder and not each.is_revoked:
                self.group.revoke(each, "")

    def _share_out(self, free: list[int]) -> None:
        """Every slice has a consumer, and a newcomer its even share.

        What happens meanwhile cuts a plan short, so one stays a newcomer until nothing is left to move for it.
        """
        consumers = self.consumers()
        self._newcomers |= {each.name for each in consumers if each.stays and not each.slices}
        plan = settle(consumers, free, self._newcomers)
        if not plan.moves and not self.group.revoked:
            self._newcomers.clear()
        self.take_plan(plan)

    def _balance(self) -> None:
        self._next_balance = self.group.host.now + self.group.times.balance
        if self.policy is None or len(self.group.members) < 2:
            return
        consumers = self.consumers()
        plan = self.policy.balance(consumers)
        if plan.moves and self.announce(self.group.name, consumers, plan):
            plan = SlicePlan(reason="mediators have been told; a session moves slices")
        self.take_plan(plan)

    def take_plan(self, plan: SlicePlan) -> None:
        """Carry this plan out, one pair after another."""
        self.plan, self._sessions = plan, list(plan.sessions)

    def _begin(self, session: tuple[SliceMove, ...]) -> bool:
        """Begin a session of two members; returns whether it takes time, for the next begins when it has ended."""
        is_waiting = False
        for move in session:
            each, taker = self.group.slices[move.number], self.group.members.get(move.taker)
            if taker is None or each.is_revoked or each.holder != move.giver:
                continue
            if each.holder:
                self.group.revoke(each, move.taker)
                is_waiting = True
            else:
                self.group.assign(each, taker)
        if is_waiting:
            self.group.counts["sessions"] += 1
            self._session_until = self.group.host.now + self.group.times.session
        return is_waiting
