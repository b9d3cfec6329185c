"""A plan while it is made: what has been chosen and rejected, in words, and why it ends.

Whoever drafts chooses rows of a `Pair`; what is left over when it ends is rejected with the reason for which it ended.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from plimsoll.core.policies.pair import Pair
from plimsoll.core.policies.profile import Row
from plimsoll.core.policies.steps import Action, Ended, Move, Plan, Rejection, Step, bounded


@dataclass(frozen=True, slots=True)
class End:
    """Why a draft ends: in one word and in many."""

    kind: Ended
    text: str


class Draft:
    """`left` holds the rows that are not decided yet, by key."""

    def __init__(self, pair: Pair, action: Action) -> None:
        self.pair, self.action = pair, action
        self.left: dict[str, Row] = {row.key: row for row in pair.profile.rows}
        self._steps: list[Step] = []
        self._rejected: dict[str, Rejection] = {}

    def choose(self, row: Row, count: int, reason: str) -> None:
        """So many subscribers of a row move; the row is not considered again."""
        names = self.pair.take(row, count)
        move = Move(row.key, names, self.pair.source.name, self.pair.target.name, reason)
        self._steps.append(Step((move,)))
        self._rejected.pop(row.key, None)
        self.left.pop(row.key, None)
        if more := self.pair.present[row.key]:
            self._rejected[row.key] = Rejection("Enough", row.key, more, f"{count} of {row.count} move: {reason}")

    def choose_one(self, row: Row, name: str, reason: str) -> None:
        """One subscriber moves; the others of its row may still be chosen."""
        self.pair.take_one(row, name)
        self._steps.append(Step((Move(row.key, (name,), self.pair.source.name, self.pair.target.name, reason),)))
        if not self.pair.present[row.key]:
            self.left.pop(row.key, None)
            self._rejected.pop(row.key, None)

    def reject(self, rejection: Rejection, *, for_good: bool = True) -> None:
        """A row stays; `for_good`: it is not considered again."""
        self._rejected[rejection.key] = rejection
        if for_good:
            self.left.pop(rejection.key, None)

    def is_rejected(self, kind: str) -> bool:
        """Whether something that could still be chosen was rejected for this kind of reason."""
        return any(key in self._rejected and self._rejected[key].kind == kind for key in self.left)

    def plan(self, end: End) -> Plan:
        """All that was decided. What is left stays for the reason that it was given, or because the draft has ended."""
        present = self.pair.present
        for key in self.left:
            self._rejected.setdefault(key, Rejection("NotNeeded", key, present[key], end.text))
        rejected = [replace(self._rejected[key], subscribers=present[key]) for key in sorted(self._rejected)]
        source, target = self.pair.predicted()
        return Plan(
            action=self.action,
            source=self.pair.source,
            target=self.pair.target,
            predicted_source=source,
            predicted_target=target,
            steps=tuple(self._steps),
            rejected=bounded(rejected),
            ended=end.kind,
            stopped=end.text,
        )
