"""The order of moves: a broker takes subscribers only after the moves that make room for them.

Moves of one wave may happen at the same time and in any order, so a broker must bear all that comes to it in a wave
before anything of its own has gone in that wave.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from plimsoll.core.policies.model.load import ResourceThresholds
from plimsoll.core.policies.model.plan import PlanMove
from plimsoll.core.policies.shuffle.broker_model import ShuffledBroker


def scheduled_waves(
    moves: Sequence[PlanMove], brokers: Mapping[str, ShuffledBroker], thresholds: ResourceThresholds
) -> tuple[tuple[PlanMove, ...], ...]:
    """The moves in as few waves as their order allows. `brokers`: as they are before the first wave."""
    waves: list[list[PlanMove]] = [[]]
    giving = {move.source for move in moves}
    for move in moves:
        number = 0
        while move.target in giving and number < len(waves) and not _bears(move, number, waves, brokers, thresholds):
            number += 1
        if number == len(waves):
            waves.append([])
        waves[number].append(move)
    return tuple(tuple(wave) for wave in waves if wave)


def brokers_after(waves: Iterable[Iterable[PlanMove]], brokers: Mapping[str, ShuffledBroker]) -> list[ShuffledBroker]:
    """All brokers, by name, after these waves."""
    after = {name: holding.copy() for name, holding in brokers.items()}
    for wave in waves:
        for move in wave:
            source, row = after[move.source], after[move.source].rows[move.key]
            after[move.target].take(row, len(move.subscribers), source)
            source.give(row, len(move.subscribers))
    return [after[name] for name in sorted(after)]


def _bears(
    move: PlanMove,
    number: int,
    waves: Sequence[Sequence[PlanMove]],
    brokers: Mapping[str, ShuffledBroker],
    thresholds: ResourceThresholds,
) -> bool:
    """Whether the target of a move is never overloaded if the move happens in this wave."""
    name = move.target
    for last in range(number, len(waves)):
        holding = brokers[name].copy()
        for wave in waves[:last]:
            for gone in wave:
                if gone.source == name:
                    holding.give(holding.rows[gone.key], len(gone.subscribers))
        for come in (*(one for wave in waves[: last + 1] for one in wave if one.target == name), move):
            source = brokers[come.source]
            holding.take(source.rows[come.key], len(come.subscribers), source)
        if thresholds.above_lower(holding.now):
            return False
    return True
