"""Greedy balancing: each step moves the set that lowers the highest metric of the two brokers most.

A baseline that is not in the paper. It uses the same predictions, but considers all metrics at once and every set of
subscriptions in each step; so it needs no phases and no covering sets, and is the slowest policy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from plimsoll.core.policies.balancing_policy import RowChoosingPolicy
from plimsoll.core.policies.model.broker_pair import BrokerPair, PairPrediction
from plimsoll.core.policies.model.load import METRICS, Metric
from plimsoll.core.policies.model.plan import PlanRejection
from plimsoll.core.policies.model.plan_builder import PlanBuilder, PlanEnd
from plimsoll.core.policies.model.profile import ProfileRow
from plimsoll.core.spec.types.policy import PolicyType

MIN_GAIN = 1e-6
"""A step that gains less is not worth a move."""


@dataclass(frozen=True)
class Greedy(RowChoosingPolicy):
    """The largest relief first."""

    name: ClassVar[PolicyType] = "Greedy"

    def choose(self, draft: PlanBuilder) -> PlanEnd:
        """Choose sets of subscriptions until none lowers the busier of the two."""
        pair, metric = draft.pair, draft.action.metric
        while pair.moves_left:
            before = highest_pair_metric(pair, pair.now)
            ranked = [_best(pair, row, metric) for row in draft.left.values() if pair.movable[row.key]]
            after, _, row, count = min(ranked, key=lambda each: (each[0], each[1]), default=(before, "", None, 0))
            if row is None or after > before - MIN_GAIN:
                for after, key, _, count in ranked:
                    why = f"would not lower the highest metric: {before:.4f} -> {after:.4f}"
                    if math.isinf(after):
                        why = f"would overload {pair.target.name}, or bring the two further apart in {metric}"
                    draft.reject(PlanRejection("NoBetter", key, count, why), for_good=False)
                return PlanEnd("NoBetter", "no set lowers the busier of the two")
            draft.choose(row, count, f"highest metric {before:.4f} -> {after:.4f}, the lowest that any set brings")
        return PlanEnd("Limit", "as many move as the session's limit allows")


def highest_pair_metric(pair: BrokerPair, at: PairPrediction) -> float:
    """The highest metric of either broker."""
    return max(pair.higher_metric(metric, at) for metric in METRICS)


def _best(pair: BrokerPair, row: ProfileRow, metric: Metric) -> tuple[float, str, ProfileRow, int]:
    """The number of subscribers of a row that leaves the busier of the two least busy.

    It falls while the source is the busier one, and rises from where the target is.
    """
    most = min(len(pair.movable[row.key]), pair.moves_left)
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        is_up = highest_pair_metric(pair, pair.predict_move(row, middle)) <= highest_pair_metric(
            pair, pair.predict_move(row, middle + 1)
        )
        low, high = (low, middle) if is_up else (middle + 1, high)
    after, count = min((_after(pair, row, k, metric), k) for k in {low, most})
    return after, row.key, row, count


def _after(pair: BrokerPair, row: ProfileRow, count: int, metric: Metric) -> float:
    """The highest metric of either; infinite if the target is overloaded or the metric of the action gets worse."""
    at = pair.predict_move(row, count)
    is_worse = abs(pair.difference(metric, at)) > abs(pair.difference(metric))
    is_worse = is_worse or pair.higher_metric(metric, at) > pair.higher_metric(metric)
    if is_worse or pair.parameters.thresholds.above_lower(at.target):
        return float("inf")
    return highest_pair_metric(pair, at)
