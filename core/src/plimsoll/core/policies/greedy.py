"""Greedy balancing: each time the set that brings the busier of the two down most, whatever it is busy with.

A baseline that is not of the paper. It looks at all utilisations at once, by the same predictions, and at every set of
subscriptions in each step; so it knows no phases and no covering sets, and takes longest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from plimsoll.core.policies.draft import Draft, End
from plimsoll.core.policies.fleet import METRICS, BrokerLoad, Metric
from plimsoll.core.policies.pair import Pair, Prospect
from plimsoll.core.policies.parameters import Parameters, Scope
from plimsoll.core.policies.profile import Profile, Row
from plimsoll.core.policies.steps import Action, Plan, Rejection

LEAST = 1e-6
"""A step that brings less is not worth a move."""


@dataclass(frozen=True)
class Greedy:
    """The largest relief first."""

    parameters: Parameters = Parameters()  # noqa: RUF009  a frozen value
    scope: Scope = "Local"

    def ranked(
        self, own: BrokerLoad, actions: Sequence[Action], others: Mapping[str, BrokerLoad]
    ) -> tuple[Action, ...]:
        """The target with the largest difference first."""
        return tuple(actions)

    def plan(
        self,
        source: BrokerLoad,
        target: BrokerLoad,
        profile: Profile,
        action: Action,
        staying: Mapping[str, str] | None = None,
        most: int | None = None,
        others: Iterable[BrokerLoad] = (),
    ) -> Plan:
        """Sets of subscriptions until none lowers the busier of the two."""
        trigger = self.parameters.trigger(self.scope)
        draft = Draft(Pair(source, target, profile, self.parameters, trigger, staying or {}, most, others), action)
        return draft.plan(_drafted(draft))


def busiest(pair: Pair, at: Prospect) -> float:
    """The highest metric of either broker."""
    return max(pair.higher(metric, at) for metric in METRICS)


def _drafted(draft: Draft) -> End:
    pair = draft.pair
    while pair.room:
        before = busiest(pair, pair.now)
        ranked = [_best(pair, row, draft.action.metric) for row in draft.left.values() if pair.movable[row.key]]
        after, _, row, count = min(ranked, key=lambda each: (each[0], each[1]), default=(before, "", None, 0))
        if row is None or after > before - LEAST:
            for after, key, _, count in ranked:
                why = f"would not lower the highest metric: {before:.4f} -> {after:.4f}"
                if math.isinf(after):
                    why = f"would overload {pair.target.name}, or bring the two further apart in {draft.action.metric}"
                draft.reject(Rejection("NoBetter", key, count, why), for_good=False)
            return End("NoBetter", "no set lowers the busier of the two")
        draft.choose(row, count, f"highest metric {before:.4f} -> {after:.4f}, the lowest that any set brings")
    return End("Limit", "as many move as the session's limit allows")


def _best(pair: Pair, row: Row, metric: Metric) -> tuple[float, str, Row, int]:
    """The number of subscribers of a row that leaves the busier of the two least busy.

    It falls while the source is the busier one, and rises from where the target is.
    """
    most = min(len(pair.movable[row.key]), pair.room)
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        is_up = busiest(pair, pair.prospect(row, middle)) <= busiest(pair, pair.prospect(row, middle + 1))
        low, high = (low, middle) if is_up else (middle + 1, high)
    after, count = min((_after(pair, row, k, metric), k) for k in {low, most})
    return after, row.key, row, count


def _after(pair: Pair, row: Row, count: int, metric: Metric) -> float:
    """The highest metric of either; infinite where the target is overloaded, or what is asked for gets worse."""
    at = pair.prospect(row, count)
    is_worse = abs(pair.difference(metric, at)) > abs(pair.difference(metric))
    is_worse = is_worse or pair.higher(metric, at) > pair.higher(metric)
    if is_worse or pair.parameters.thresholds.above_lower(at.target):
        return float("inf")
    return busiest(pair, at)
