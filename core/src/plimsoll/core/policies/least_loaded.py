"""Least-loaded balancing: every subscriber counts as an equal share of its broker's load, and goes to the lightest.

A baseline: a balancer that knows loads but not content. The first by name move; each is assumed to cost the target the
average of what a subscriber costs the source.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from plimsoll.core.policies.balancing_policy import BalancingPolicy
from plimsoll.core.policies.model.load import RESOURCES, BrokerLoad
from plimsoll.core.policies.model.plan import (
    BrokerAction,
    OffloadPlan,
    PlanMove,
    PlanRejection,
    PlanStep,
    bounded_rejections,
)
from plimsoll.core.policies.model.profile import SubscriptionProfile
from plimsoll.core.spec.types.policy import PolicyType


@dataclass(frozen=True)
class LeastLoaded(BalancingPolicy):
    """As many subscribers as would even out the two brokers."""

    name: ClassVar[PolicyType] = "LeastLoaded"

    def ranked(
        self, own: BrokerLoad, actions: Sequence[BrokerAction], others: Mapping[str, BrokerLoad]
    ) -> tuple[BrokerAction, ...]:
        """The target whose highest utilisation is lowest comes first."""
        return tuple(sorted(actions, key=lambda a: (_highest(others[a.target]), a.target, -a.difference)))

    def plan(
        self,
        source: BrokerLoad,
        target: BrokerLoad,
        profile: SubscriptionProfile,
        action: BrokerAction,
        staying: Mapping[str, str] | None = None,
        most: int | None = None,
        others: Iterable[BrokerLoad] = (),
    ) -> OffloadPlan:
        """The first by name, as many as even out the two by their average share of the load: it predicts no pair."""
        names = sorted((name, row) for row in profile.rows for name in row.names if name not in (staying or {}))
        wanted = self._wanted(source, target, action, sum(row.count for row in profile.rows))
        count = min(wanted, len(names), len(names) if most is None else most)
        share = f"one of {count}, each taken to be an equal part of the load of {source.name}"
        moves = [PlanMove(row.key, (name,), source.name, target.name, share) for name, row in names[:count]]
        after = _shared(source, target, count)
        kept = [PlanRejection("Enough", row.key, 1, f"{count} even out {action.metric}") for _, row in names[count:]]
        held = [PlanRejection("Staying", row.key, 1, (staying or {})[n]) for row in profile.rows for n in row.names
                if n in (staying or {})]  # fmt: skip
        return OffloadPlan(
            action=action,
            source=source,
            target=target,
            predicted_source=after[0] if moves else source,
            predicted_target=after[1] if moves else target,
            steps=tuple(PlanStep((move,)) for move in moves),
            rejected=bounded_rejections([*kept, *held]),
            ended="Balanced" if count == wanted else "Exhausted" if count == len(names) else "Limit",
            stopped=f"{wanted} subscribers of average load would even out {action.metric}",
        )

    def _wanted(self, source: BrokerLoad, target: BrokerLoad, action: BrokerAction, served: int) -> int:
        """The most subscribers that neither overload the target nor bring it above the source."""
        low, high = 0, served
        while low < high:
            middle = (low + high + 1) // 2
            left, come = _shared(source, target, middle)
            factor = self.parameters.normalization_seconds
            is_below = come.measures.of_metric(action.metric, factor) <= left.measures.of_metric(action.metric, factor)
            fits = is_below and not self.parameters.thresholds.above_lower(come.measures)
            low, high = (middle, high) if fits else (low, middle - 1)
        return low


def _shared(source: BrokerLoad, target: BrokerLoad, count: int) -> tuple[BrokerLoad, BrokerLoad]:
    """Both brokers with `count` equal shares of the source's load moved, scaled by the target's capacity."""
    part = count / source.subscribers if source.subscribers else 0.0
    scale = source.capacity / target.capacity
    ratios = {name: getattr(source, name) * part for name in _RATIOS}
    rates = {name: getattr(source, name) * part for name in _RATES}
    less = {name: max(0.0, getattr(source, name) - each) for name, each in (ratios | rates).items()}
    more = {name: getattr(target, name) + each * scale for name, each in ratios.items()}
    more |= {name: getattr(target, name) + each for name, each in rates.items()}
    return (
        replace(source, subscribers=max(0, source.subscribers - count), **less),
        replace(target, subscribers=target.subscribers + count, **more),
    )


_RATIOS = ("input_utilization", "output_utilization", "match_delay_seconds", "cpu_ratio", "memory_ratio")
_RATES = ("input_rate", "output_rate", "output_bytes_per_second")


def _highest(load: BrokerLoad) -> float:
    return max(load.measures.of_resource(resource) for resource in RESOURCES)
