"""Fleets of which every assignment can be tried, and what they would report: for shuffles of all brokers at once."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tests.core.policies.hand import Broker, World

from plimsoll.core.policies.model.load import BrokerLoad
from plimsoll.core.policies.model.parameters import BalancingParameters
from plimsoll.core.policies.model.profile import SubscriptionProfile
from plimsoll.core.policies.model.traffic import union_bits
from plimsoll.core.policies.shuffle import Shuffle, ShufflePlan
from plimsoll.core.policies.shuffle.plan import highest_metric

FACTOR = BalancingParameters().normalization_seconds
Places = Mapping[str, str]
"""Where each subscriber is."""


def loads(world: World) -> list[BrokerLoad]:
    return [world.load(name) for name in world.brokers]


def profile(world: World, source: str) -> SubscriptionProfile:
    """With all other brokers as takers."""
    takers = tuple(
        (name, union_bits(world.wants[key] for key, names in broker.served.items() if names))
        for name, broker in world.brokers.items() if name != source
    )  # fmt: skip
    return replace(world.profile(source, source), accepting=0, takers=takers)


def profiles(world: World) -> dict[str, SubscriptionProfile]:
    return {name: profile(world, name) for name in world.brokers}


def shuffled(world: World, policy: Shuffle | None = None, **more: Any) -> ShufflePlan:
    return (policy or Shuffle()).plan(loads(world), profiles(world), **more)


def places(world: World) -> dict[str, str]:
    return {name: broker for broker, at in world.brokers.items() for names in at.served.values() for name in names}


def placed(world: World, where: Places) -> World:
    """The same brokers with this assignment of subscribers."""
    key_of = {name: key for at in world.brokers.values() for key, names in at.served.items() for name in names}
    found = {}
    for broker, at in world.brokers.items():
        served: dict[str, list[str]] = {}
        for name in sorted(where):
            if where[name] == broker:
                served.setdefault(key_of[name], []).append(name)
        found[broker] = replace(at, served={key: tuple(names) for key, names in served.items()})
    return replace(world, brokers=found)


def after(world: World, plan: ShufflePlan) -> World:
    """The assignment of subscribers after the plan."""
    return placed(world, places(world) | {name: move.target for move in plan.moves for name in move.subscribers})


def high(world: World) -> float:
    """The highest metric of any broker, from its subscribers alone."""
    return max(highest_metric(load.measures, FACTOR)[0] for load in loads(world))


def optimum(world: World) -> tuple[float, int]:
    """The lowest highest metric of all assignments, and the fewest moves that reach it within a thousandth."""
    here = places(world)
    names = sorted(here)
    found: list[tuple[float, int]] = []
    for targets in itertools.product(world.brokers, repeat=len(names)):
        where = dict(zip(names, targets, strict=True))
        found.append((high(placed(world, where)), sum(where[name] != here[name] for name in names)))
    best = min(level for level, _ in found)
    return best, min(moves for level, moves in found if level <= best + 0.001)


def lpt(world: World) -> World:
    """BAD 2019: the heaviest first, to the broker that carries least; the weight of each is its own traffic."""
    wants = {name: key for at in world.brokers.values() for key, names in at.served.items() for name in names}
    carried = dict.fromkeys(world.brokers, 0.0)
    where = {}
    for name in sorted(wants, key=lambda each: (-world.traffic.rate(world.wants[wants[each]]), each)):
        broker = min(carried, key=lambda each: (carried[each] / world.load(each).capacity, each))
        carried[broker] += world.traffic.rate(world.wants[wants[name]]) * 2
        where[name] = broker
    return placed(world, where)


def drawn(seed: int, subscribers: int = 6, brokers: int = 3, width: int = 6) -> World:
    """A small fleet of unequal brokers, with most subscribers at the first."""
    draw = random.Random(seed)
    wants = {f"k{number}": draw.randrange(1, 1 << width) for number in range(draw.randint(2, subscribers))}
    at: list[dict[str, tuple[str, ...]]] = [{} for _ in range(brokers)]
    for number in range(subscribers):
        where = 0 if draw.random() < 0.7 else draw.randrange(brokers)
        key = draw.choice(sorted(wants))
        at[where][key] = (*at[where].get(key, ()), f"s{number}")
    made = {
        f"b{number}": Broker(draw.choice([0.005, 0.01, 0.02]), draw.choice([4_000.0, 10_000.0]), served)
        for number, served in enumerate(at)
    }
    return World(width, wants, made)


def worlds(seeds: range, **sizes: int) -> Iterator[tuple[int, World]]:
    for seed in seeds:
        yield seed, drawn(seed, **sizes)
