"""Dynamic migration: the heaviest subscriber that helps leaves the broker of the highest load, one after another.

LDM sends it to the broker of the lowest load, SDM to the one below the mean that shares most with it.

By the letter a move is taken if the target's load is not above the source's before the move. One subscriber that is
heavier than all else would go back and forth for ever. Ours: the highest load has to fall, or fewer brokers be at it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Literal

from plimsoll.core.policies.bad.fleet import BadBroker, BadFleet, BadSubscriber
from plimsoll.core.policies.bad.imbalance import Imbalance
from plimsoll.core.policies.model.plan import PlanMove
from plimsoll.core.policies.rebalancer import Step

Migration = Literal["LoadBased", "SimilarityBased", "None"]

TOLERANCE = 1e-9
"""Loads are sums of measured rates: those that differ by a smaller part are equal."""


@dataclass(frozen=True, slots=True)
class MoveLimits:
    """Migration goes on while cov is above `alpha` and the mean above `beta`."""

    alpha: float = 0.15
    beta: float = 300.0

    def allow(self, now: Imbalance) -> bool:
        """Whether another subscriber should move."""
        return now.cov > self.alpha and now.mean > self.beta


Spares = Callable[[BadFleet, BadBroker, BadSubscriber], bool]
"""Whether a broker may take a subscriber: by the letter it always may."""


def migrations(
    fleet: BadFleet, scheme: Migration, limits: MoveLimits, spares: Spares | None = None
) -> Generator[Step, None, BadFleet]:
    """The moves of dynamic migration, each a step; returns the fleet after all of them."""
    while scheme != "None" and limits.allow(imbalance := imbalance_of(fleet)):
        step = next_migration(fleet, scheme, imbalance, spares)
        if step is None:
            break
        yield step
        fleet = fleet.after(step)
    return fleet


def imbalance_of(fleet: BadFleet) -> Imbalance:
    """The imbalance of a fleet."""
    return Imbalance.of(fleet.brokers[name].load for name in sorted(fleet.brokers))


def next_migration(
    fleet: BadFleet, scheme: Migration, imbalance: Imbalance, spares: Spares | None = None
) -> Step | None:
    """The next move; None if no subscriber of the broker of the highest load can lower it."""
    brokers = [fleet.brokers[name] for name in sorted(fleet.brokers)]
    source = max(brokers, key=lambda broker: (broker.load, -brokers.index(broker)))
    for subscriber in heaviest_first(source.subscribers.values()):
        if subscriber.fixed:
            continue
        able = _in_order([broker for broker in brokers if broker.takes and broker is not source], subscriber, scheme,
                         imbalance.mean)  # fmt: skip
        target = next((each for each in able if spares is None or spares(fleet, each, subscriber)), None)
        if target is None or target.load > source.load:
            continue
        if _helps(brokers, source, target, subscriber):
            return Step((_move(source, target, subscriber, scheme, imbalance),))
    return None


def heaviest_first(subscribers: Iterable[BadSubscriber]) -> list[BadSubscriber]:
    """By u, ties by name."""
    return sorted(subscribers, key=lambda subscriber: (-subscriber.load, subscriber.name))


def _in_order(able: list[BadBroker], subscriber: BadSubscriber, scheme: Migration, mean: float) -> list[BadBroker]:
    """Where a subscriber would go by the scheme; by our rules to the first of these that it does not overload."""
    if scheme == "LoadBased":
        return sorted(able, key=lambda broker: (broker.load, broker.name))
    below = [broker for broker in able if broker.load < mean]
    return sorted(below, key=lambda broker: (-broker.similarity(subscriber), broker.load, broker.name))


def _helps(brokers: list[BadBroker], source: BadBroker, target: BadBroker, subscriber: BadSubscriber) -> bool:
    """Whether the highest load falls, or fewer brokers are at it."""
    before = [broker.load for broker in brokers]
    changed = {source.name: source.load_without(subscriber), target.name: target.load_with(subscriber)}
    return is_lower([changed.get(broker.name, broker.load) for broker in brokers], before)


def is_lower(after: list[float], before: list[float]) -> bool:
    """Whether the highest of these loads is lower than before, or as high at fewer brokers."""
    high, least = max(before), TOLERANCE * max(1.0, max(before))
    if abs(max(after) - high) > least:
        return max(after) < high
    return sum(load >= high - least for load in after) < sum(load >= high - least for load in before)


def _move(
    source: BadBroker, target: BadBroker, subscriber: BadSubscriber, scheme: Migration, imbalance: Imbalance
) -> PlanMove:
    where = "which carries least"
    if scheme == "SimilarityBased":
        shared = target.similarity(subscriber)
        where = f"which is below the mean and shares {shared:.4g} of it" if shared else "the lowest below the mean"
    why = (
        f"cov {imbalance.cov:.3f}; {source.name} carries most, F = {source.load:.4g}; u = {subscriber.load:.4g} goes to"
        f" {target.name}, {where}, F = {target.load:.4g}; then {source.load_without(subscriber):.4g} and"
        f" {target.load_with(subscriber):.4g}"
    )
    return PlanMove(subscriber.key, (subscriber.name,), source.name, target.name, why)
