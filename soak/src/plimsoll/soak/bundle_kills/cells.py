"""The cells: what is done to a bundle, the step that is reached, and the process that is killed then."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, get_args

import msgspec

Change = Literal["transfer", "lookup", "split"]
"""A bundle is unloaded in one of the two ways, or split."""
Step = Literal["requested", "planned", "assigned", "moved", "released", "looked up", "stored", "told", "done"]
Victim = Literal["mediator", "head", "owner", "target"]
"""`owner`: the edge that owns the bundle. `target`: the edge that the session names for it; by lookup another edge."""

CHANGES: Final[tuple[Change, ...]] = get_args(Change)
VICTIMS: Final[tuple[Victim, ...]] = get_args(Victim)

MEANINGS: Final[dict[Change, dict[Step, str]]] = {
    "transfer": {
        "planned": "the session has a plan that waits for approval; no broker was told of it",
        "assigned": "the head has given the bundle to the target, which is frozen: no unit has moved",
        "moved": "the target serves all units; loads settle",
    },
    "lookup": {
        "planned": "the session has a plan that waits for approval; no broker was told of it",
        "released": "the head has taken the bundle from its owner, which is frozen: its units have not left it",
        "looked up": "units have looked the bundle up and are served again; loads settle",
    },
    "split": {
        "requested": "the split is requested, and the mediator, which is frozen, has not seen it",
        "stored": "the store has just got the new ranges; the head is frozen at once, before or while it is told",
        "told": "the head has just reported the new ranges",
        "done": "the session is over, and its halves are unloaded next",
    },
}


class BundleKillCell(msgspec.Struct, frozen=True):
    """One run. A cell without a victim is the baseline of its change."""

    change: Change
    step: Step
    victim: Victim | None

    @property
    def words(self) -> frozenset[str]:
        """What it is selected by."""
        return frozenset((self.change, self.step, self.victim or "nothing"))

    def __str__(self) -> str:
        return f"{self.change}, {self.step}: " + (f"SIGKILL {self.victim}" if self.victim else "nothing")


class BundleKillResult(msgspec.Struct, kw_only=True):
    """The result of a cell.

    `phase`, `reason`: of the session. `moved`: units by its status. `bundles`: how many there are at the end. `at`: the
    role of the edge that owns the bundle, or its first half, then. `settled_seconds`: from the signal until ranges and
    owners were right, and stayed so. `broken`: why the cell failed.
    """

    cell: BundleKillCell
    phase: str
    reason: str
    moved: int
    bundles: int
    at: str
    settled_seconds: float
    delivered: int
    lost: int
    duplicated: int
    reordered: int
    gaps: int
    excused: int
    broken: list[str] = []

    @property
    def is_passed(self) -> bool:
        return not self.broken


def victims_of(change: Change) -> tuple[Victim, ...]:
    """All victims of this change; a split has no target."""
    return VICTIMS[:-1] if change == "split" else VICTIMS


def all_cells() -> Iterator[BundleKillCell]:
    """Every cell; those of a change follow its baseline."""
    for change in CHANGES:
        yield BundleKillCell(change, list(MEANINGS[change])[-1], None)
        for step in MEANINGS[change]:
            for victim in victims_of(change):
                yield BundleKillCell(change, step, victim)
