"""Small groups of consumers, drawn from a seed, and what a plan makes of them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from plimsoll.core.policies.consumer_groups.model import ConsumerLoad, SliceLoad, SlicePlan


def consumer(name: str, *costs: float, first: int = 0, **fields: object) -> ConsumerLoad:
    """A consumer whose slices, numbered from `first`, cost this much work each, in seconds per second."""
    slices = tuple(SliceLoad(first + i, cost, 1.0) for i, cost in enumerate(costs))
    return ConsumerLoad(name, slices, cpu=min(1.0, sum(costs)), **fields)  # type: ignore[arg-type]  # by keyword


def drawn(seed: int) -> list[ConsumerLoad]:
    """Two to five consumers with up to seven slices each; some without any."""
    source, number, found = random.Random(seed), 0, []
    for i in range(source.randint(2, 5)):
        costs = [round(source.random() ** 3, 3) for _ in range(source.choice((0, 1, 2, 3, 5, 7)))]
        found.append(consumer(f"c{i}", *costs, first=number))
        number += len(costs)
    source.shuffle(found)
    return found


def applied(consumers: Sequence[ConsumerLoad], plan: SlicePlan) -> list[ConsumerLoad]:
    """The consumers after a plan, under the same load: their processors carry what their slices cost."""
    has = {c.name: {each.number: each for each in c.slices} for c in consumers}
    for move in plan.moves:
        load = has[move.giver].pop(move.number) if move.giver else SliceLoad(move.number)
        has[move.taker][move.number] = load
    return [
        replace(
            c,
            slices=tuple(has[c.name].values()),
            cpu=min(1.0, sum(each.items_per_second for each in has[c.name].values())),
        )
        for c in consumers
    ]


def highest(consumers: Sequence[ConsumerLoad]) -> float:
    return max(c.cost for c in consumers)
