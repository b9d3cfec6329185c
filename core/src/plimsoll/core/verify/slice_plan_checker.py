"""Faults of a plan of slices, found without the code that made it: every slice has one consumer before and after."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Protocol


class SliceMoveView(Protocol):
    """A slice from its giver, empty if it has none, to its taker."""

    @property
    def giver(self) -> str: ...
    @property
    def taker(self) -> str: ...
    @property
    def number(self) -> int: ...


def slice_plan_faults(
    sessions: Sequence[Sequence[SliceMoveView]],
    owners: Mapping[int, str],
    takes: Collection[str],
    count: int,
) -> list[str]:
    """Every fault in words; empty if there is none.

    `owners`: the consumer of each slice that has one. `takes`: consumers that may take. `count`: slices of the group.
    """
    return [*_session_faults(sessions), *_move_faults(sessions, owners, takes, count)]


def _session_faults(sessions: Sequence[Sequence[SliceMoveView]]) -> Iterator[str]:
    for i, session in enumerate(sessions):
        pairs = {(move.giver, move.taker) for move in session}
        if len(pairs) != 1:
            yield f"session {i} is of {len(pairs)} pairs, not of one giver and one taker"


def _move_faults(
    sessions: Sequence[Sequence[SliceMoveView]], owners: Mapping[int, str], takes: Collection[str], count: int
) -> Iterator[str]:
    moved: set[int] = set()
    for move in [move for session in sessions for move in session]:
        if not 0 <= move.number < count:
            yield f"slice {move.number} is none of {count}"
        if move.number in moved:
            yield f"slice {move.number} moves twice in one plan"
        moved.add(move.number)
        if owners.get(move.number, "") != move.giver:
            yield f"slice {move.number} is not {move.giver}'s, but {owners.get(move.number, 'without a consumer')}'s"
        if move.taker not in takes:
            yield f"slice {move.number} goes to {move.taker}, which takes none"
        if move.taker == move.giver:
            yield f"slice {move.number} goes from {move.giver} to itself"
