"""A batch as it is stored: what was commanded, and what each member has come to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from plimsoll.core.protocol.departures import UNCUT_OUTCOMES, UNKNOWN
from plimsoll.core.protocol.messages import Outcome

OUTCOMES: Final = ("moved", *UNCUT_OUTCOMES, "returned", "detached", UNKNOWN)
"""Outcomes of a member. `unknown`: its source has not said that it serves it; or its head has lost or not begun the
batch, or does not answer.
"""

LOST_BEFORE_CUT: Final = "again"
"""A member of a batch that a head has lost before its cut: it goes into another batch."""

STATE_RANKS: Final = {"": 0, "preparing": 1, "ready": 2, "cutting": 3, "cut": 4, "done": 5, "aborted": 5}
MEMBER_RANKS: Final = {"": 0, "preparing": 1, "attached": 2, "cutting": 3, "aborting": 4, "cut": 4} | dict.fromkeys(
    OUTCOMES, 5
)
"""OUTCOMEs may be late, repeated or out of order: a state of a lower rank than the known one is old."""


class AuditTotals(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Counts of deliveries by moved subscribers; `subscribers` have reported, of others nothing is known.

    `lost`: due, and not given to the application. `suppressed`: delivered again, and not given to it twice.

    What comes of `publishers` that have moved is counted by some of their subscribers: `asked` were asked to. `before`
    and `after`: how many deliveries were due to those that have reported, of what each of the two heads had accepted.
    """

    subscribers: int = 0
    lost: int = 0
    duplicated: int = 0
    reordered: int = 0
    suppressed: int = 0
    publishers: int = 0
    asked: int = 0
    before: int = 0
    after: int = 0

    @property
    def faults(self) -> tuple[int, int, int]:
        """What applications noticed: deliveries lost, duplicated and reordered."""
        return self.lost, self.duplicated, self.reordered

    @property
    def has_faults(self) -> bool:
        return any(self.faults)


def sum_audits(audits: Iterable[AuditTotals | None]) -> AuditTotals:
    """The sums of all audits that are known."""
    known = [audit for audit in audits if audit is not None]
    return AuditTotals(**{name: sum(getattr(audit, name) for audit in known) for name in AuditTotals.__struct_fields__})


class Batch(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One hand-over of some members: `id` is its name on the wire, EPOCH.NUMBER.

    `intent` is what the mediator wants: `resolve` lists the subscribers of both edges, as the head has lost the batch.
    `state` is that of the last OUTCOME, empty before the first; `members` has the state of each member. `since`: when
    the intent last changed. `ready_at`: when the first member was attached. `cut_at`: when the cut was first wanted;
    before that no member can have moved.
    """

    id: str
    head: str
    head_epoch: int
    source: str
    target: str
    target_head: str
    replay: bool
    prepare_seconds: float
    drain_seconds: float
    begun_at: float
    members: dict[str, str]
    why: str = ""
    predicted_seconds: float = 0.0
    intent: Literal["prepare", "cut", "abort", "resolve"] = "prepare"
    state: str = ""
    reason: str = ""
    since: float = 0.0
    ready_at: float | None = None
    cut_at: float | None = None
    ended_at: float | None = None
    audit: AuditTotals | None = None

    @property
    def epoch(self) -> int:
        """The epoch of the mediator that began it."""
        return int(self.id.partition(".")[0])

    @property
    def has_cut(self) -> bool:
        """Whether a member may have left the source. Before the cut is wanted, one that is `unknown` has not moved."""
        maybe = () if self.cut_at is not None else (UNKNOWN,)
        return any(state in OUTCOMES and state not in (*UNCUT_OUTCOMES, *maybe) for state in self.members.values())

    def wanting(self, intent: Literal["cut", "abort", "resolve"], now: float) -> Batch:
        """The batch with another intent. The time of the first cut stays: from then on members may have moved."""
        cut_at = now if intent == "cut" and self.cut_at is None else self.cut_at
        return replace(self, intent=intent, since=now, cut_at=cut_at)

    def progressed(self, outcome: Outcome, now: float) -> Batch:
        """The batch after its head's OUTCOME; the same one if that is old or has no news."""
        if STATE_RANKS[outcome.state] < STATE_RANKS[self.state]:
            return self
        members = dict(self.members)
        for name, state in outcome.members:
            if name in members and MEMBER_RANKS.get(state, 0) > MEMBER_RANKS.get(members[name], 0):
                members[name] = state
        reason = outcome.reason or self.reason
        if (outcome.state, members, reason) == (self.state, self.members, self.reason):
            return self
        ready_at = now if self.ready_at is None and outcome.state == "ready" else self.ready_at
        return replace(self, state=outcome.state, members=members, reason=reason, ready_at=ready_at)

    def located(self, at_source: set[str], at_target: set[str]) -> Batch:
        """The batch after both edges have listed their subscribers.

        A member in both lists, or in neither, is under way: its outcome stays open.
        """
        members = dict(self.members)
        for name, state in self.members.items():
            if state not in OUTCOMES and (name in at_source) != (name in at_target):
                members[name] = "moved" if name in at_target else "stayed"
        return self if members == self.members else replace(self, members=members)

    def ended(self, rest: str, now: float) -> Batch:
        """The batch at its end. Members without an outcome get `rest`."""
        members = {name: state if state in OUTCOMES else rest for name, state in self.members.items()}
        return replace(self, members=members, ended_at=now)
