"""Random balancing: any subscribers, to any broker that carries less.

A baseline: it draws subscribers one at a time until the metric is balanced or the target would be overloaded. All that
it knows about a subscriber's cost is whether the move would make matters worse.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from plimsoll.core.policies.balancing_policy import RowChoosingPolicy
from plimsoll.core.policies.model.load import BrokerLoad
from plimsoll.core.policies.model.plan import BrokerAction, PlanRejection
from plimsoll.core.policies.model.plan_builder import PlanBuilder, PlanEnd
from plimsoll.core.spec.types.policy import PolicyType


@dataclass(frozen=True)
class Random(RowChoosingPolicy):
    """Draws targets and subscribers at random. Equal seeds and load reports draw the same."""

    name: ClassVar[PolicyType] = "Random"

    seed: int = 1

    def ranked(
        self, own: BrokerLoad, actions: Sequence[BrokerAction], others: Mapping[str, BrokerLoad]
    ) -> tuple[BrokerAction, ...]:
        """Targets in the order drawn."""
        return tuple(sorted(actions, key=lambda action: self._drawn(own, f"{action.target}/{action.metric}")))

    def choose(self, draft: PlanBuilder) -> PlanEnd:
        """Choose subscribers in the order drawn, until the metric is balanced."""
        pair, metric = draft.pair, draft.action.metric
        rows = dict(draft.left)
        drawn = sorted(
            ((name, key) for key in rows for name in pair.movable[key]),
            key=lambda each: self._drawn(pair.source, each[0]),
        )
        for name, key in drawn:
            if pair.difference(metric) <= pair.parameters.balance_threshold:
                return PlanEnd("Balanced", f"{metric} differs by {pair.difference(metric):+.4f}")
            if not pair.moves_left:
                return PlanEnd("Limit", "as many move as the session's limit allows")
            at, before = pair.predict_move(rows[key], 1), pair.difference(metric)
            if over := pair.parameters.thresholds.above_lower(at.target):
                why = f"would bring {pair.target.name} above its lower overload threshold: {', '.join(over)}"
                draft.reject(PlanRejection("WouldOverload", key, 1, why), for_good=False)
            elif abs(after := pair.difference(metric, at)) >= before or pair.higher_metric(
                metric, at
            ) >= pair.higher_metric(metric):
                why = f"would not bring the two closer in {metric}: {before:+.4f} -> {after:+.4f}"
                draft.reject(PlanRejection("NoBetter", key, 1, why), for_good=False)
            else:
                draft.choose_one(rows[key], name, f"drawn; {metric} difference {before:+.4f} -> {after:+.4f}")
        return PlanEnd("Exhausted", "every subscriber has been drawn")

    def _drawn(self, own: BrokerLoad, name: str) -> bytes:
        return hashlib.sha256(f"{self.seed}/{own.name}/{own.epoch}/{own.seq}/{name}".encode()).digest()
