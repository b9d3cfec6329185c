"""Faults of a plan of Pulsar, found without the code that made it: bundles move whole, and each has one edge then.

Bundles are known here only by their names, which are two hashes, and units by the hash in theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Protocol

from plimsoll.core.verify.plan_accounting import member_faults, reason_faults
from plimsoll.core.verify.shuffle_plan_checker import ShufflePlanView


class PulsarPlanView(ShufflePlanView, Protocol):
    """A plan of moves, and the bundles that have another edge after it."""

    @property
    def owners(self) -> Sequence[tuple[str, str]]: ...


@dataclass(frozen=True, slots=True)
class PulsarPlanContext:
    """The data to check a plan against. `profiles`: of each edge; `takes`: who may take.

    `stays`: subscribers that may not move; `most`: how many may.
    """

    profiles: Mapping[str, Any]
    takes: Set[str]
    stays: Set[str] = frozenset()
    most: int | None = None


def pulsar_plan_faults(plan: PulsarPlanView, fleet: PulsarPlanContext) -> list[str]:
    """Every fault of a plan in words; empty if there is none.

    What holds for any plan, and: a move is of units of one bundle; it takes all that its source serves of it; and all
    moves of a bundle end at the edge that owns it then.
    """
    moves = [move for wave in plan.waves for move in wave]
    found = [*member_faults(moves, fleet), *reason_faults(plan, moves, fleet)]
    return [*found, *_bundle_faults(plan, moves, fleet)]


def _bundle_faults(plan: PulsarPlanView, moves: Sequence[Any], fleet: PulsarPlanContext) -> Iterator[str]:
    owners = dict(plan.owners)
    gone = {name for move in moves for name in move.subscribers}
    for move in moves:
        if owners.get(move.key) != move.target:
            yield f"{move.key} goes to {move.target}, and is owned by {owners.get(move.key)} then"
        low, high = (int(each, 16) for each in move.key.split("_"))
        yield from (f"{name} is no unit of {move.key}" for name in move.subscribers if not _is_of(name, low, high))
        here = [name for row in fleet.profiles[move.source].rows for name in row.names if _is_of(name, low, high)]
        left = [name for name in here if name not in gone]
        if left:
            yield f"{len(left)} units of {move.key} are left at {move.source}"


def _is_of(name: str, low: int, high: int) -> bool:
    digits = name.rpartition("#")[2]
    is_unit = len(digits) == 8 and "#" in name and all(each in "0123456789abcdef" for each in digits)
    return is_unit and (low <= int(digits, 16) < high or int(digits, 16) == high == 0xFFFFFFFF)
