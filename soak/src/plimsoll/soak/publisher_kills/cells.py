"""The cells: the step that a move of publishers has reached, and the process that is hit then."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, get_args

import msgspec

Step = Literal["planned", "asked", "cut", "moved"]
Victim = Literal["mediator", "old head", "new head", "head between", "edge", "publishers"]
"""`edge`: one of the cluster between the two. `publishers`: the process of all of them, which is frozen for a while."""

VICTIMS: Final[tuple[Victim, ...]] = get_args(Victim)
HEADS: Final[tuple[Victim, ...]] = ("old head", "new head", "head between")
FROZEN_SECONDS: Final = 3.0

MEANINGS: Final[dict[Step, str]] = {
    "planned": "the session has a plan that waits for approval; no head was told of it",
    "asked": "the old head has asked all publishers; the new head is frozen, so that none is on standby",
    "cut": "no publisher publishes: the old head has cut them, and the head between, on the way of the MARKER, is"
    " frozen",
    "moved": "the session has moved all, and lists those that remain",
}  # fmt: skip


class PublisherKillCell(msgspec.Struct, frozen=True):
    """One run. A cell without a victim is the baseline."""

    step: Step
    victim: Victim | None

    @property
    def words(self) -> frozenset[str]:
        """What it is selected by."""
        return frozenset((self.step, self.victim or "nothing"))

    @property
    def may_gap(self) -> bool:
        """Whether gaps are allowed: a killed head takes with it what it alone had, and reports a gap for it."""
        return self.victim in HEADS

    def __str__(self) -> str:
        what = f"SIGSTOP for {FROZEN_SECONDS:g} s" if self.victim == "publishers" else "SIGKILL"
        return f"{self.step}: " + (f"{what} {self.victim}" if self.victim else "nothing")


class PublisherKillResult(msgspec.Struct, kw_only=True):
    """The result of a cell.

    `phase`, `reason`: of the session. `moved`: publishers by its status. `at`: how many each head has at the end, by
    its role. `settled_seconds`: from the signal until every publisher was at one head, and the session over, and stayed
    so. `unknown`: publications whose answer is not known. `broken`: why the cell failed.
    """

    cell: PublisherKillCell
    phase: str
    reason: str
    moved: int
    at: dict[str, int]
    settled_seconds: float
    delivered: int
    lost: int
    duplicated: int
    reordered: int
    gaps: int
    excused: int
    unknown: int
    broken: list[str] = []

    @property
    def is_passed(self) -> bool:
        return not self.broken


def all_cells() -> Iterator[PublisherKillCell]:
    """Every cell, behind the baseline."""
    yield PublisherKillCell("moved", None)
    for step in MEANINGS:
        for victim in VICTIMS:
            yield PublisherKillCell(step, victim)
