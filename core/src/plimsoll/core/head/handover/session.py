"""One hand-over at the head that decides it: each member's state, the sums over them, and the deadlines."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from plimsoll.core.head.handover.outcomes import ABORTING, CUT, OPEN
from plimsoll.core.head.ownership import OwnerEntry
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import OwnerEpoch


@dataclass(slots=True)
class HandoverMember:
    """`is_draining`: detached here, but the other cluster may still come back with it."""

    state: str
    owner: OwnerEntry
    is_draining: bool = False
    why: str = ""

    @property
    def epoch(self) -> OwnerEpoch:
        return self.owner.epoch


@dataclass(slots=True)
class Handover:
    """One hand-over. `is_across`: to an edge of another head. `decides_at`: until then there may be a cut;
    `drains_until`: after one.
    """

    id: str
    plan: msg.HandoverPlan
    members: dict[str, HandoverMember]
    is_across: bool
    decides_at: float
    state: str = "preparing"
    drains_until: float = float("inf")
    endpoint: str = ""
    public_key: str = ""
    reason: str = ""
    reported_at: float = float("-inf")
    reported_state: str = ""
    is_changed: bool = True
    revoke_at: float = float("inf")
    counts: Counter[str] = field(default_factory=Counter)
    freed: list[str] = field(default_factory=list)
    asked: deque[tuple[float, list[str]]] = field(default_factory=deque)
    """Until when the source may answer for members that were undone, the earliest first."""

    draining: int = 0
    """How many members are in each state, and drain; kept because both are asked in every round."""

    def __post_init__(self) -> None:
        self.counts.update(member.state for member in self.members.values())

    @property
    def is_open(self) -> bool:
        """Whether some member can still be undone."""
        return any(self.counts[state] for state in OPEN)

    @property
    def is_settled(self) -> bool:
        return not self.is_open and not self.counts[CUT] and not self.counts[ABORTING]

    @property
    def over(self) -> bool:
        return self.state in ("done", "aborted") and not self.draining

    def put(self, x: str, state: str, why: str) -> None:
        member = self.members[x]
        self.counts[member.state] -= 1
        self.counts[state] += 1
        member.state, member.why = state, why or member.why

    def set_draining(self, x: str, is_draining: bool) -> None:
        self.draining += is_draining - self.members[x].is_draining
        self.members[x].is_draining = is_draining

    def of(self, *states: str) -> list[str]:
        return [x for x, member in self.members.items() if member.state in states]

    def items(self, members: Iterable[str]) -> list[msg.MemberItem]:
        return [msg.MemberItem(x, self.members[x].epoch) for x in members]
