"""What a shuffle proposes for all brokers at once: moves in waves, what stays, and every load before and after."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from plimsoll.core.policies.fleet import METRICS, BrokerLoad, Measures, Metric
from plimsoll.core.policies.steps import Move, Rejection

Ended = Literal["Balanced", "NoBetter", "Limit", "Nothing"]
"""Why it is no more: all differ by less than the trigger; nothing lowers any of the highest; the limit of moves is
reached; nobody is there who could give, or who could take."""


@dataclass(frozen=True, slots=True)
class Shuffled:
    """A plan for all brokers. What is in one wave may move at the same time; each wave begins after the one before.

    `before` and `after` have every broker, by name: as reported with what reports leave open filled in, and as
    predicted. `high_before` and `high_after`: the highest metric of any broker, a utilisation or the matching delay by
    N_f.
    """

    before: tuple[BrokerLoad, ...]
    after: tuple[BrokerLoad, ...]
    waves: tuple[tuple[Move, ...], ...]
    rejected: tuple[Rejection, ...]
    high_before: float
    high_after: float
    ended: Ended
    stopped: str

    @property
    def moves(self) -> tuple[Move, ...]:
        """All moves, in order."""
        return tuple(move for wave in self.waves for move in wave)


def highest(measures: Measures, normalization_seconds: float) -> tuple[float, Metric]:
    """The metric of a broker that is highest, as a ratio, and which it is."""
    return max((measures.of_metric(metric, normalization_seconds), metric) for metric in METRICS)


WORDS: dict[Metric, str] = {"input": "input", "match": "matching delay", "output": "output"}
