"""In which order moves may happen: nobody takes what it has room for only once something else has gone.

Moves of one wave may happen at the same time and in any order, so a broker must bear all that comes to it in a wave
before anything of its own has gone in that wave.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from plimsoll.core.policies.fleet import Thresholds
from plimsoll.core.policies.shuffle.holding import Holding
from plimsoll.core.policies.steps import Move


def in_waves(
    moves: Sequence[Move], brokers: Mapping[str, Holding], thresholds: Thresholds
) -> tuple[tuple[Move, ...], ...]:
    """The moves in as few waves as their order allows. `brokers`: as they are before all of them."""
    waves: list[list[Move]] = [[]]
    giving = {move.source for move in moves}
    for move in moves:
        number = 0
        while move.target in giving and number < len(waves) and not _bears(move, number, waves, brokers, thresholds):
            number += 1
        if number == len(waves):
            waves.append([])
        waves[number].append(move)
    return tuple(tuple(wave) for wave in waves if wave)


def moved(waves: Iterable[Iterable[Move]], brokers: Mapping[str, Holding]) -> list[Holding]:
    """All brokers, by name, when everybody has moved in this order."""
    after = {name: holding.copy() for name, holding in brokers.items()}
    for wave in waves:
        for move in wave:
            source, row = after[move.source], after[move.source].rows[move.key]
            after[move.target].take(row, len(move.subscribers), source)
            source.give(row, len(move.subscribers))
    return [after[name] for name in sorted(after)]


def _bears(
    move: Move, number: int, waves: Sequence[Sequence[Move]], brokers: Mapping[str, Holding], thresholds: Thresholds
) -> bool:
    """Whether the target of a move is never overloaded if it comes in this wave."""
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
