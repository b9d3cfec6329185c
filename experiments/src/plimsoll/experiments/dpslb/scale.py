"""A large group: 1,000 consumers and 10,000 slices, uneven from the start, then hotter, then with others."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from plimsoll.core.policies.consumer_groups.cost_balancing import CostBalancing
from plimsoll.experiments.dpslb.group_world import GroupWorld
from plimsoll.experiments.result import Claim, ExperimentResult, Figure
from plimsoll.pages.charts import Chart, ChartLine

NAME: Final = "dpslb-scale"
LOOK_SECONDS: Final = 5.0
MEAN_LOAD: Final = 0.5
EVEN: Final = 1.0 + CostBalancing().tolerance + 0.02
"""How far the highest may be above the average: the policy's tolerance, and what measuring in steps leaves open."""


@dataclass(frozen=True)
class ScalePlan:
    """`change`: consumers that leave, and as many that join, at once. Seconds of the parts; `step`: of the model."""

    consumers: int = 1000
    slices: int = 10_000
    change: int = 50
    seconds: tuple[float, float, float] = (120.0, 120.0, 60.0)
    step: float = 0.5


PLAN: Final = ScalePlan()


def small(plan: ScalePlan = PLAN) -> ScalePlan:
    """Few consumers: to see it work, not to judge."""
    return replace(plan, consumers=20, slices=200, change=2, seconds=(90.0, 90.0, 60.0))


@dataclass(frozen=True)
class PartOfRun:
    """What a part came to: loads by the true rates, relative to the average; sessions and moves that began in it."""

    name: str
    began: float
    highest_at_first: float
    highest: float
    even_after: float | None
    sessions: int
    moved: int
    moved_late: int
    without_consumer: int


def run(seed: int, *, plan: ScalePlan = PLAN) -> ExperimentResult:
    """All consumers join; a tenth of the slices triples; some leave and others join."""
    rng = random.Random(seed)
    rates = [rng.uniform(1.0, 10.0) for _ in range(plan.slices)]
    seconds_per_item = MEAN_LOAD * plan.consumers / sum(rates)
    world = GroupWorld(rates, "Rates", seed, step=plan.step)
    series: list[tuple[float, float]] = []
    for number in range(plan.consumers):
        world.join(f"c{number:04}", seconds_per_item)
    parts = [_part(world, "join", plan.seconds[0], series)]
    for number in rng.sample(range(plan.slices), plan.slices // 10):
        stream = world.streams[number]
        stream.phase += stream.rate * world.now - 3 * stream.rate * world.now  # as many items as before, until now
        stream.rate *= 3
    for consumer in world.consumers.values():
        consumer.seconds_per_item /= 1.2  # the same load altogether: a tenth of the slices carries a quarter of it
    parts.append(_part(world, "hot", plan.seconds[1], series))
    for number in range(plan.change):
        world.leave(f"c{number:04}")
        world.join(f"d{number:04}", seconds_per_item / 1.2)
    parts.append(_part(world, "change", plan.seconds[2], series))
    rows = [{name: getattr(each, name) for name in each.__dataclass_fields__} for each in parts]
    items = world.items()
    return ExperimentResult(
        NAME, f"DPSLB 2014: {plan.consumers:,} consumers and {plan.slices:,} slices", "Rates", seed,
        _claims(parts, items, plan), [_figure(series)], {"items": items, "parts": rows}, NOTES, runs=rows,
    )  # fmt: skip


NOTES: Final = (
    "Slices differ by ten times in items per second; the group uses half of its consumers. Loads are by the true "
    "rates, not by what is reported.",
)


def _loads(world: GroupWorld) -> list[float]:
    costs = list(world.costs().values())
    mean = sum(costs) / len(costs)
    return [cost / mean for cost in costs]


def _part(world: GroupWorld, name: str, seconds: float, series: list[tuple[float, float]]) -> PartOfRun:
    began, known = world.now, {one.uid for one in world.sessions()}
    world.run(LOOK_SECONDS)
    first = max(_loads(world))
    looks = [(world.now, first)]
    late = 0
    while world.now < began + seconds:
        before = world.group.counts["moved"]
        world.run(LOOK_SECONDS)
        looks.append((world.now, max(_loads(world))))
        late = late + world.group.counts["moved"] - before if world.now > began + 0.75 * seconds else 0
    series += looks
    uneven = [at for at, highest in looks if highest > EVEN]
    even = next((at - began for at, _ in looks if not uneven or at > uneven[-1]), None)
    own = [one for one in world.sessions() if one.uid not in known]
    without = sum(not each.holder for each in world.group.slices)
    moved = sum(one.counts()["moved"] for one in own)
    return PartOfRun(name, began, first, looks[-1][1], even, len(own), moved, late, without)


def _claims(parts: Sequence[PartOfRun], items: Mapping[str, int], plan: ScalePlan) -> list[Claim]:
    said = {"join": "All have joined", "hot": "A tenth of the slices has tripled",
            "change": f"{plan.change} have left and {plan.change} others joined"}  # fmt: skip
    found = [
        Claim(f"{said[each.name]}: the highest load is within the tolerance", f"<= {EVEN:.2f} of the average",
              f"{each.highest_at_first:.2f} to {each.highest:.2f}"
              + ("" if each.even_after is None else f", after {each.even_after:.0f} s"), each.highest <= EVEN)
        for each in parts
    ]  # fmt: skip
    late = sum(each.moved_late for each in parts)
    without = sum(each.without_consumer for each in parts)
    return [
        *found,
        Claim("Moves end under constant load", "0 moves", f"{late} in the last quarter of each part", late == 0),
        Claim("Every slice has a consumer", "yes", f"{without} without", without == 0),
        Claim("No item is lost or worked on twice", "0",
              f"{items['lost']} and {items['repeated']} of {items['worked_on']:,}",
              not (items["lost"] or items["repeated"])),
    ]  # fmt: skip


def _figure(series: Sequence[tuple[float, float]]) -> Figure:
    line = ChartLine("highest", 0, list(series))
    return Figure(
        "highest", Chart("The busiest consumer", "of the average", [line]), "By the true rates of its slices."
    )
