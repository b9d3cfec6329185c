"""A group without links and messages: members are names, and a slice is given up when the test says so."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

from plimsoll.core.head.groups.member import MemberEntry
from plimsoll.core.head.groups.slices import GroupSlice
from plimsoll.core.head.groups.times import GroupTimes
from plimsoll.core.protocol.messages import MemberLoad, SliceReport

NAME, EPOCH, LAST = "h", 1 << 30, 40
"""Of its head, and of what that has accepted."""


class ScriptedGroup:
    """`did`: what was decided, as (slice, giver, taker), in order."""

    name = "readings"

    def __init__(self, *members: str, count: int = 4) -> None:
        self.host: Any = SimpleNamespace(now=100.0, name=NAME, epoch=EPOCH, log=SimpleNamespace(last=LAST))
        self.times = GroupTimes.of(60.0, 1.0)
        self.members: dict[str, MemberEntry] = {}
        self.slices = [GroupSlice(number) for number in range(count)]
        self.revoked: set[int] = set()
        self.is_unwritten = False
        self.counts: Counter[str] = Counter()
        self.did: list[tuple[int, str, str]] = []
        for name in members:
            self.add(name)

    def add(self, name: str) -> None:
        self.members[name] = MemberEntry(name, name, 1, None, self.host.now, self.host.now)

    def assign(self, each: GroupSlice, member: MemberEntry) -> None:
        self.did.append((each.number, each.holder, member.name))
        each.begin(member.name, each.epoch + 1)

    def revoke(self, each: GroupSlice, taker: str) -> None:
        self.did.append((each.number, each.holder, taker))
        each.is_revoked, each.taker = True, taker
        self.revoked.add(each.number)

    def let_go(self, *numbers: int) -> None:
        """The holders of these slices have given them up, and the takers have them."""
        for number in numbers:
            each = self.slices[number]
            self.revoked.discard(number)
            if taker := each.end(None):
                each.begin(taker, each.epoch + 1)

    def has(self) -> dict[str, list[int]]:
        """The slices of each member."""
        return {
            name: [each.number for each in self.slices if each.holder == name] for name in ("", *sorted(self.members))
        }

    def measure(self, name: str, rate: float) -> None:
        """This member has worked for 1 ms on each of so many items a second, of each of its slices."""
        slices = [SliceReport(each.number, rate, 0.001, 0) for each in self.slices if each.holder == name]
        member = self.members[name]
        member.load, member.measured_at = MemberLoad(1.0, 0.5, 0.1, slices), self.host.now

    def take_did(self) -> list[tuple[int, str, str]]:
        did, self.did = self.did, []
        return did
