"""The fewest units whose moves do as much as a plan of Pulsar, where so few placements are possible that all are tried.

Both shedders take the bundles of the highest throughput first. With few bundles a lighter one, or one that goes to
another edge, often does as much. Ours (`rules: Plimsoll`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from statistics import fmean, pstdev

from plimsoll.core.policies.model.load import RESOURCES, ResourceThresholds
from plimsoll.core.policies.model.plan import PlanMove
from plimsoll.core.policies.pulsar.fleet import BundleUnits, PulsarFleet
from plimsoll.core.policies.pulsar.usage import UsageWeights
from plimsoll.core.policies.rebalancer import Step

PLACEMENTS_AT_MOST = 1_000
"""The most placements of which all are tried: some ten thousandths of a second each."""

EQUAL = 1e-9
"""Usages are sums of measured rates: those that differ by less are equal."""

Placed = tuple[BundleUnits, str, str]
"""A bundle that goes from one edge to another."""


def fewest_moves(
    first: PulsarFleet, reached: PulsarFleet, moved: int, weights: UsageWeights, limits: ResourceThresholds
) -> list[Step] | None:
    """Moves of fewer units to a fleet as good as the one reached with `moved` units; None if there are none."""
    held = [(edge, units) for edge in sorted(first.served) for units in first.owned(edge) if not units.fixed]
    able = sorted(first.takes)
    if not moved or (len(able) + 1) ** len(held) > PLACEMENTS_AT_MOST:
        return None
    wanted = _quality(reached, weights, limits)
    for _, placed in sorted(_placements(held, able, moved), key=lambda each: each[0]):
        steps = [_step(*each) for each in placed]
        after = first
        for step in steps:
            after = after.after(step)
        one = _quality(after, weights, limits)
        spared = all(not limits.above_lower(after.load(target).measures) for _, _, target in placed)
        if spared and all(a <= b + EQUAL for a, b in zip(one, wanted, strict=True)):
            return steps
    return None


def _placements(
    held: Sequence[tuple[str, BundleUnits]], able: Sequence[str], most: int
) -> Iterator[tuple[int, list[Placed]]]:
    """Every placement of these bundles by which fewer units than `most` move, each with their number."""
    choices = [dict.fromkeys((edge, *able)) for edge, _ in held]
    for targets in product(*choices):
        some = [(units, edge, to) for (edge, units), to in zip(held, targets, strict=True) if to != edge]
        count = sum(len(units.units) for units, _, _ in some)
        if count < most:
            yield count, some


def _quality(fleet: PulsarFleet, weights: UsageWeights, limits: ResourceThresholds) -> tuple[float, float, float]:
    """Overload; the highest usage; the deviation of usages."""
    usages = [weights.usage(load) for load in fleet.loads]
    over = sum(
        max(0.0, load.measures.of_resource(each) - limits.of(each).lower) for load in fleet.loads for each in RESOURCES
    )
    mean = fmean(usages) if usages else 0.0
    return over, max(usages, default=0.0), pstdev(usages) / mean if mean else 0.0


def _step(units: BundleUnits, source: str, target: str) -> Step:
    name = units.bundle.name
    why = f"{name} goes from {source} to {target}: fewest moves, {len(units.units)} units do as much as a plan of more"
    return Step((PlanMove(name, units.units, source, target, why),), owners=((name, target),))
