"""A plan in the making: what has been chosen and rejected, in words, and why it ends.

An algorithm chooses rows of a `BrokerPair`; rows left over at the end are rejected with the reason why the plan ended.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from plimsoll.core.policies.model.broker_pair import BrokerPair
from plimsoll.core.policies.model.plan import (
    BrokerAction,
    OffloadPlan,
    PlanEnding,
    PlanMove,
    PlanRejection,
    PlanStep,
    bounded_rejections,
)
from plimsoll.core.policies.model.profile import ProfileRow


@dataclass(frozen=True, slots=True)
class PlanEnd:
    """Why a draft ends: in one word and as a sentence."""

    kind: PlanEnding
    text: str


class PlanBuilder:
    """`left` holds the rows that are not decided yet, by key."""

    def __init__(self, pair: BrokerPair, action: BrokerAction) -> None:
        self.pair, self.action = pair, action
        self.left: dict[str, ProfileRow] = {row.key: row for row in pair.profile.rows}
        self._steps: list[PlanStep] = []
        self._rejected: dict[str, PlanRejection] = {}

    def choose(self, row: ProfileRow, count: int, reason: str) -> None:
        """`count` subscribers of a row move; the row is not considered again."""
        names = self.pair.choose(row, count)
        move = PlanMove(row.key, names, self.pair.source.name, self.pair.target.name, reason)
        self._steps.append(PlanStep((move,)))
        self._rejected.pop(row.key, None)
        self.left.pop(row.key, None)
        if more := self.pair.present[row.key]:
            self._rejected[row.key] = PlanRejection("Enough", row.key, more, f"{count} of {row.count} move: {reason}")

    def choose_one(self, row: ProfileRow, name: str, reason: str) -> None:
        """One subscriber moves; the others of its row may still be chosen."""
        self.pair.choose_one(row, name)
        self._steps.append(
            PlanStep((PlanMove(row.key, (name,), self.pair.source.name, self.pair.target.name, reason),))
        )
        if not self.pair.present[row.key]:
            self.left.pop(row.key, None)
            self._rejected.pop(row.key, None)

    def reject(self, rejection: PlanRejection, *, for_good: bool = True) -> None:
        """A row stays. With `for_good` it is not considered again."""
        self._rejected[rejection.key] = rejection
        if for_good:
            self.left.pop(rejection.key, None)

    def is_rejected(self, kind: str) -> bool:
        """Whether a row that could still be chosen was rejected for this kind of reason."""
        return any(key in self._rejected and self._rejected[key].kind == kind for key in self.left)

    def plan(self, end: PlanEnd) -> OffloadPlan:
        """The finished plan. Undecided rows stay, with the reason recorded for them or else the reason of the end."""
        present = self.pair.present
        for key in self.left:
            self._rejected.setdefault(key, PlanRejection("NotNeeded", key, present[key], end.text))
        rejected = [replace(self._rejected[key], subscribers=present[key]) for key in sorted(self._rejected)]
        source, target = self.pair.predicted()
        return OffloadPlan(
            action=self.action,
            source=self.pair.source,
            target=self.pair.target,
            predicted_source=source,
            predicted_target=target,
            steps=tuple(self._steps),
            rejected=bounded_rejections(rejected),
            ended=end.kind,
            stopped=end.text,
        )
