"""Faults of a plan that defends deadlines, found without the code that made it: topics move whole if they can.

A topic is known here only by its hash, which ends the name of a move and that of each unit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from plimsoll.core.verify.plan_accounting import member_faults, reason_faults
from plimsoll.core.verify.pulsar_plan_checker import PulsarPlanView


@dataclass(frozen=True, slots=True)
class DeadlinePlanContext:
    """The data to check a plan against. `profiles`: of each edge; `takes`: who may take.

    `stays`: subscribers that may not move; `most`: how many may. `away`: edges of another cluster.
    """

    profiles: Mapping[str, Any]
    takes: Set[str]
    stays: Set[str] = frozenset()
    most: int | None = None
    away: Set[str] = frozenset()


def deadline_plan_faults(plan: PulsarPlanView, fleet: DeadlinePlanContext) -> list[str]:
    """Every fault of a plan in words; empty if there is none.

    What holds for any plan, and: a move is of units of one topic; an edge gives topics or takes them; a source either
    gives whole topics, each to one edge, or units of topics of which it keeps some or which it spreads, never both; a
    topic that leaves an edge is owned by one that has most of its units then; and edges of another cluster only take,
    no topic that another edge there has.
    """
    moves = [move for wave in plan.waves for move in wave]
    found = [*member_faults(moves, fleet), *reason_faults(plan, moves, fleet), *_away_faults(moves, fleet)]
    return [*found, *_topic_faults(moves, fleet), *_owner_faults(plan, moves, fleet), *_direction_faults(moves)]


def _away_faults(moves: Sequence[Any], fleet: DeadlinePlanContext) -> Iterator[str]:
    for move in moves:
        if move.source in fleet.away:
            yield f"{move.source} is of another cluster, and gives {move.key}"
        there = {edge for edge in fleet.away if _units(fleet, edge, _digits(move.key))}
        if move.target in fleet.away and there and move.target not in there:
            yield f"{move.key} goes to {move.target}, and {min(there)} of that cluster has it"


def _topic_faults(moves: Sequence[Any], fleet: DeadlinePlanContext) -> Iterator[str]:
    gone: dict[tuple[str, str], set[str]] = {}
    targets: dict[tuple[str, str], set[str]] = {}
    for move in moves:
        digits = _digits(move.key)
        yield from (f"{name} is no unit of {move.key}" for name in move.subscribers if _digits(name) != digits)
        gone.setdefault((move.source, digits), set()).update(move.subscribers)
        targets.setdefault((move.source, digits), set()).add(move.target)
    kept: dict[str, set[bool]] = {}
    for (source, digits), names in gone.items():
        is_whole = _units(fleet, source, digits) <= names and len(targets[source, digits]) == 1
        kept.setdefault(source, set()).add(is_whole)
    yield from (f"{source} gives whole topics and units of others" for source in sorted(kept) if len(kept[source]) > 1)


def _owner_faults(plan: PulsarPlanView, moves: Sequence[Any], fleet: DeadlinePlanContext) -> Iterator[str]:
    """Topics that a source has no unit of any more, and owners of others."""
    owners = {_digits(key): edge for key, edge in plan.owners}
    left = set[str]()
    for digits in sorted({_digits(move.key) for move in moves}):
        before = {edge: _units(fleet, edge, digits) for edge in fleet.profiles}
        after = {edge: set(names) for edge, names in before.items()}
        for move in moves:
            if _digits(move.key) == digits:
                after[move.source] -= set(move.subscribers)
                after[move.target] |= set(move.subscribers)
        if any(before[edge] and not after[edge] for edge in before):
            left.add(digits)
            most, owner = max(len(names) for names in after.values()), owners.get(digits, "")
            if len(after.get(owner, ())) < most:
                yield f"{digits} is owned by {owner!r} then, and another edge has more of its units"
    yield from (f"{digits} has an owner, and leaves no edge" for digits in sorted(owners.keys() - left))


def _units(fleet: DeadlinePlanContext, edge: str, digits: str) -> set[str]:
    return {name for row in fleet.profiles[edge].rows for name in row.names if _digits(name) == digits}


def _direction_faults(moves: Sequence[Any]) -> Iterator[str]:
    both = {move.source for move in moves} & {move.target for move in moves}
    yield from (f"{name} gives topics and takes others" for name in sorted(both))


def _digits(name: str) -> str:
    return str(name.rpartition("#")[2]) if "#" in name else ""
