"""A member of a group at its head: its link, when it was last heard, and its last load report."""

from __future__ import annotations

from dataclasses import dataclass, field

from plimsoll.core.head.groups.group_links import MemberLink
from plimsoll.core.policies.consumer_groups.model import ConsumerLoad, SliceLoad
from plimsoll.core.protocol.messages import MemberLoad


@dataclass(slots=True)
class MemberEntry:
    """`link`: None between two. `heard_at`, `changed_at`: seconds; the latter of its slices.

    `is_emptied`: a session has taken all its slices, and it gets none but by another session.
    """

    name: str
    identity: str
    incarnation: int
    link: MemberLink | None
    heard_at: float
    joined_at: float
    changed_at: float = 0.0
    is_leaving: bool = False
    is_emptied: bool = False
    load: MemberLoad = field(default_factory=MemberLoad)
    measured_at: float = -1.0

    def is_of(self, link: MemberLink, incarnation: int) -> bool:
        """Whether it is the same life of the same identity, perhaps over a new link."""
        return self.identity == link.identity and self.incarnation == incarnation

    def consumer(self, slices: list[int], *, takes: bool = True) -> ConsumerLoad:
        """It, with these slices, as policies see it; `takes`: whether it may get others."""
        reported = {each.number: each for each in self.load.slices}
        loads = []
        for number in slices:
            found = reported.get(number)
            loads.append(
                SliceLoad(number, is_known=False)
                if found is None
                else SliceLoad(number, found.items_per_second, found.seconds_per_item, found.backlog)
            )
        has_measured = self.measured_at - self.load.seconds >= self.changed_at
        return ConsumerLoad(
            self.name, tuple(loads), self.load.cpu, self.load.memory, has_measured, self.is_leaving, takes
        )  # fmt: skip
