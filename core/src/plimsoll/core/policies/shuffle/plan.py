"""What a shuffle proposes for all brokers at once: moves in waves, what stays, and every load before and after."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from plimsoll.core.policies.model.load import METRICS, BrokerLoad, LoadMeasures, Metric
from plimsoll.core.policies.model.plan import PlanMove, PlanRejection

ShuffleEnding = Literal["Balanced", "NoBetter", "Limit", "Nothing"]
"""Why a plan ends: all differ by less than the trigger; nothing lowers any of the highest; the limit of moves is
reached; no broker could give, or none could take."""


@dataclass(frozen=True, slots=True)
class ShufflePlan:
    """A plan for all brokers. Moves of one wave may happen at the same time; each wave begins after the one before.

    `before` and `after` hold every broker by name: as reported, with gaps in the reports filled in, and as predicted.
    `high_before` and `high_after`: the highest metric of any broker, a utilisation or the matching delay by N_f.
    """

    before: tuple[BrokerLoad, ...]
    after: tuple[BrokerLoad, ...]
    waves: tuple[tuple[PlanMove, ...], ...]
    rejected: tuple[PlanRejection, ...]
    high_before: float
    high_after: float
    ended: ShuffleEnding
    stopped: str

    @property
    def moves(self) -> tuple[PlanMove, ...]:
        """All moves, in order."""
        return tuple(move for wave in self.waves for move in wave)


def highest_metric(measures: LoadMeasures, normalization_seconds: float) -> tuple[float, Metric]:
    """The highest metric of a broker, as a ratio, and its name."""
    return max((measures.of_metric(metric, normalization_seconds), metric) for metric in METRICS)


METRIC_WORDS: dict[Metric, str] = {"input": "input", "match": "matching delay", "output": "output"}
