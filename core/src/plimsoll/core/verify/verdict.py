"""The verdict of an audit: counts, and each violation with its place."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class LawViolation:
    """A broken law. `at` is on the journal's clock, in seconds; `subject` is the party affected."""

    law: str
    subject: str
    text: str
    at: float

    def __str__(self) -> str:
        return f"{self.law} at {self.at:.6f} {self.subject}: {self.text}"


@dataclass(frozen=True, slots=True)
class AuditVerdict:
    """Counts over the whole journal.

    `expected` counts due pairs of publication and subscriber, gaps included; of these `excused` lie in a gap that the
    subscriber was told of, and `lost` are missing without one. `delivered` counts wanted first deliveries. `uncertain`
    pairs may or may not have been due: the subscription or its end was being acknowledged, or the answer to the
    publisher is unknown. `processed_once` counts publications that one consumer of a group has finished once,
    `redelivered` items that came marked as such. `violations` holds the first ones found, `violated` the number of all
    per law.
    """

    published: int
    accepted: int
    refused: int
    unknown: int
    unanswered: int
    expected: int
    delivered: int
    lost: int
    duplicated: int
    reordered: int
    unwanted: int
    gaps: int
    excused: int
    uncertain: int
    undisturbed: int
    violated: dict[str, int]
    violations: tuple[LawViolation, ...]
    processed_once: int = 0
    redelivered: int = 0

    @property
    def ok(self) -> bool:
        """Whether every law held."""
        return not self.violated

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON-able values, violations as text."""
        return {**asdict(self), "violations": [str(one) for one in self.violations]}

    def __str__(self) -> str:
        counts = {name: value for name, value in asdict(self).items() if isinstance(value, int) and value}
        told = ", ".join(f"{name} {value}" for name, value in counts.items())
        return "\n".join([told or "nothing happened", *map(str, self.violations)])
