"""Overload under BAD, which has no measure of it: F is in bytes per second, whatever a broker can take.

Ours (`rules: Plimsoll`): an overloaded broker gives subscribers away before loads are evened out, and no move brings
its target above a lower threshold. Both go by the utilisations that brokers report and the change that moves make.
"""

# ruff: noqa: RUF009  # frozen values, safe as defaults

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass

from plimsoll.core.policies.bad.dynamic_moves import Migration, heaviest_first
from plimsoll.core.policies.bad.fleet import BadBroker, BadFleet, BadSubscriber
from plimsoll.core.policies.model.load import RESOURCES, BrokerLoad, LoadMeasures, Resource, ResourceThresholds
from plimsoll.core.policies.model.plan import PlanMove
from plimsoll.core.policies.rebalancer import Step

LEAST_RELIEF = 1e-9
"""A smaller fall of an overload is a rounding error of sums of rates."""


@dataclass(frozen=True, slots=True)
class OverloadRules:
    """The thresholds: above `higher` a broker is relieved, until it is not above `lower`."""

    thresholds: ResourceThresholds = ResourceThresholds()

    def overloaded(self, loads: Iterable[BrokerLoad]) -> tuple[str, ...]:
        """What is overloaded, in words."""
        limits = self.thresholds
        return tuple(
            f"{each} of {load.name} at {load.measures.of_resource(each):.3f}"
            for load in loads for each in limits.above_higher(load.measures)
        )  # fmt: skip

    def excess(self, loads: Iterable[BrokerLoad]) -> float:
        """How far brokers are above their lower thresholds, in all."""
        return sum(self._above(load.measures, RESOURCES) for load in loads)

    def _above(self, measures: LoadMeasures, resources: Iterable[Resource]) -> float:
        return sum(max(0.0, measures.of_resource(each) - self.thresholds.of(each).lower) for each in resources)

    def admits(self, fleet: BadFleet, target: BadBroker, subscriber: BadSubscriber) -> bool:
        """Whether a broker may take a subscriber to even loads out: it has room, and is no return."""
        return target.name not in subscriber.left and self.spares(fleet, target, subscriber)

    def spares(self, fleet: BadFleet, target: BadBroker, subscriber: BadSubscriber) -> bool:
        """Whether a broker with one subscriber more is not above a lower threshold."""
        return not self.thresholds.above_lower(fleet.load_of(target.plus((subscriber,))).measures)

    def reliefs(self, fleet: BadFleet, scheme: Migration) -> Generator[Step, None, BadFleet]:
        """The moves that relieve overloaded brokers, each a step; returns the fleet after all of them."""
        pending = [load.name for load in fleet.loads if self.thresholds.above_higher(load.measures)]
        pending.sort(key=lambda name: (-self._above(fleet.load_of(fleet.brokers[name]).measures, RESOURCES), name))
        for name in pending:
            over = self.thresholds.above_higher(fleet.load_of(fleet.brokers[name]).measures)
            while step := self._next(fleet, name, over, scheme):
                yield step
                fleet = fleet.after(step)
        return fleet

    def _next(self, fleet: BadFleet, name: str, over: tuple[Resource, ...], scheme: Migration) -> Step | None:
        """The heaviest subscriber that lessens the overload, to the first broker that it does not overload."""
        source, tried = fleet.brokers[name], set[tuple[str, ...]]()
        before = self._above(fleet.load_of(source).measures, over)
        if not before:
            return None
        for subscriber in heaviest_first(source.subscribers.values()):
            if subscriber.fixed or subscriber.subscriptions in tried:
                continue
            tried.add(subscriber.subscriptions)
            after = self._above(fleet.load_of(source.minus((subscriber.name,))).measures, over)
            if after > before - LEAST_RELIEF:
                continue
            for target in _in_order(fleet, source, subscriber, scheme):
                if self.spares(fleet, target, subscriber):
                    why = f"{', '.join(over)} of {name} is above the lower threshold by {before:.3f} in all, then by"
                    why += f" {after:.3f}; {target.name} stays below its own"
                    move = PlanMove(subscriber.key, (subscriber.name,), name, target.name, why)
                    return Step((move,))
        return None


def _in_order(
    fleet: BadFleet, source: BadBroker, subscriber: BadSubscriber, scheme: Migration
) -> list[BadBroker]:  # fmt: skip
    """Where a subscriber might go: by F, or first by what it shares with them (SDM)."""
    able = [each for each in fleet.brokers.values() if each.takes and each.name != source.name]
    is_similar = scheme == "SimilarityBased"
    return sorted(able, key=lambda each: (-each.similarity(subscriber) if is_similar else 0.0, each.load, each.name))
