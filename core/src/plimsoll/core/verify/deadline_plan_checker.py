"""Faults of a plan that defends deadlines, found without the code that made it: topics move whole if they can.

A topic is known here only by its hash, which ends the name of a move and that of each unit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from plimsoll.core.verify.plan_accounting import member_faults, reason_faults
from plimsoll.core.verify.shuffle_plan_checker import ShufflePlanView


@dataclass(frozen=True, slots=True)
class DeadlinePlanContext:
    """The data to check a plan against. `profiles`: of each edge; `takes`: who may take.

    `stays`: subscribers that may not move; `most`: how many may.
    """

    profiles: Mapping[str, Any]
    takes: Set[str]
    stays: Set[str] = frozenset()
    most: int | None = None


def deadline_plan_faults(plan: ShufflePlanView, fleet: DeadlinePlanContext) -> list[str]:
    """Every fault of a plan in words; empty if there is none.

    What holds for any plan, and: a move is of units of one topic; an edge gives topics or takes them; and a source
    either gives whole topics or units of topics of which it keeps some, never both.
    """
    moves = [move for wave in plan.waves for move in wave]
    found = [*member_faults(moves, fleet), *reason_faults(plan, moves, fleet)]
    return [*found, *_topic_faults(moves, fleet), *_direction_faults(moves)]


def _topic_faults(moves: Sequence[Any], fleet: DeadlinePlanContext) -> Iterator[str]:
    gone: dict[tuple[str, str], set[str]] = {}
    for move in moves:
        digits = _digits(move.key)
        yield from (f"{name} is no unit of {move.key}" for name in move.subscribers if _digits(name) != digits)
        gone.setdefault((move.source, digits), set()).update(move.subscribers)
    kept: dict[str, set[bool]] = {}
    for (source, digits), names in gone.items():
        here = {name for row in fleet.profiles[source].rows for name in row.names if _digits(name) == digits}
        kept.setdefault(source, set()).add(here <= names)
    yield from (f"{source} gives whole topics and units of others" for source in sorted(kept) if len(kept[source]) > 1)


def _direction_faults(moves: Sequence[Any]) -> Iterator[str]:
    both = {move.source for move in moves} & {move.target for move in moves}
    yield from (f"{name} gives topics and takes others" for name in sorted(both))


def _digits(name: str) -> str:
    return str(name.rpartition("#")[2]) if "#" in name else ""
