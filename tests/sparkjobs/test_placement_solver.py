"""Fleet-wide placements: the definition of load, the lower bound, and plans compared with plain LPT."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.sparkjobs.placement_solver import (
    PlacementProblem,
    SubscriberGroup,
    SubscriberPlacement,
    lower_bound,
    pack_lpt,
    pack_sharing_input,
    relabel_brokers,
)


def problem(seed: int, brokers: int = 6, items: int = 30, groups: int = 40, most: int = 30) -> PlacementProblem:
    generator = random.Random(seed)
    rates = np.array([generator.choice([0.5, 1.0, 2.0, 8.0]) for _ in range(items)])
    found = {}
    for _ in range(groups):
        takes = tuple(sorted(generator.sample(range(items), generator.randint(1, 5))))
        at = {generator.randrange(brokers): generator.randint(1, most) for _ in range(3)}
        found[takes] = SubscriberGroup(takes, tuple(sorted(at.items())))
    return PlacementProblem(rates, np.full(brokers, 100.0), tuple(found.values()), generator.choice([1.0, 4.0]), 1.0)


def places_each_once(one: PlacementProblem, placement: SubscriberPlacement) -> bool:
    return all(
        sum(placed.values()) == group.count and all(number > 0 for number in placed.values())
        for group, placed in zip(one.groups, placement.placed, strict=True)
    )


def test_shared_input_counts_once_and_output_for_each_subscriber():
    one = PlacementProblem(
        np.array([2.0, 3.0]),
        np.array([10.0, 5.0]),
        [SubscriberGroup((0,), ((0, 2),)), SubscriberGroup((0, 1), ((1, 1),))],
        4.0,
    )
    together = SubscriberPlacement([{0: 2}, {0: 1}])
    assert together.utilizations(one).tolist() == pytest.approx([(4 * 5 + 2 * 2 + 5) / 10, 0.0])
    apart = SubscriberPlacement([{0: 2}, {1: 1}])
    assert apart.utilizations(one).tolist() == pytest.approx([(4 * 2 + 2 * 2) / 10, (4 * 5 + 5) / 5])
    assert (together.moves(one), apart.moves(one)) == (1, 0)


@pytest.mark.parametrize("seed", range(12))
def test_no_plan_is_below_the_bound_and_each_subscriber_is_placed_once(seed: int):
    one = problem(seed)
    bound = lower_bound(one)
    for plan in (pack_lpt(one), pack_sharing_input(one, bound), pack_sharing_input(one, bound, keep=True)):
        assert places_each_once(one, plan)
        assert plan.utilizations(one).max() >= bound * (1 - 1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_sharing_input_is_no_worse_than_lpt_and_keeping_moves_fewer(seed: int):
    one = problem(seed, groups=60)
    bound = lower_bound(one)
    lpt, shared, kept = pack_lpt(one), pack_sharing_input(one, bound), pack_sharing_input(one, bound, keep=True)
    assert shared.utilizations(one).max() <= lpt.utilizations(one).max() * 1.02
    assert kept.moves(one) <= shared.moves(one)
    assert kept.utilizations(one).max() <= max(1.25 * bound, lpt.utilizations(one).max())


def test_relabeling_brokers_changes_moves_and_not_loads():
    one = problem(3)
    plan = pack_sharing_input(one, lower_bound(one))
    better = relabel_brokers(one, plan)
    assert places_each_once(one, better)
    assert sorted(better.utilizations(one)) == pytest.approx(sorted(plan.utilizations(one)))
    swapped = SubscriberPlacement([dict(group.count_by_broker) for group in one.groups])
    swapped.placed = [{(broker + 1) % 6: number for broker, number in placed.items()} for placed in swapped.placed]
    assert relabel_brokers(one, swapped).moves(one) == 0


def test_brokers_of_different_capacity_do_not_trade_places():
    groups = [SubscriberGroup((0,), ((0, 1),)), SubscriberGroup((1,), ((1, 1),))]
    one = PlacementProblem(np.array([1.0, 1.0]), np.array([1.0, 2.0]), groups)
    plan = SubscriberPlacement([{1: 1}, {0: 1}])
    assert relabel_brokers(one, plan).placed == plan.placed


@given(st.integers(0, 10_000))
def test_the_bound_holds_for_the_optimum(seed: int):
    """Three subscribers on two brokers, so that all placements can be tried."""
    generator = random.Random(seed)
    rates = np.array([generator.uniform(0.1, 3.0) for _ in range(3)])
    groups = [
        SubscriberGroup(tuple(sorted(generator.sample(range(3), generator.randint(1, 3)))), ((0, 1),)) for _ in range(3)
    ]
    capacities = np.array([generator.uniform(1.0, 3.0), generator.uniform(1.0, 3.0)])
    one = PlacementProblem(rates, capacities, groups, generator.choice([0.5, 2.0]))
    best = min(
        SubscriberPlacement([{broker: 1} for broker in brokers]).utilizations(one).max()
        for brokers in itertools.product(range(2), repeat=3)
    )
    assert lower_bound(one) <= best * (1 + 1e-9)


def test_an_item_that_needs_several_brokers_counts_as_input_of_each():
    one = PlacementProblem(np.array([10.0]), np.full(4, 100.0), [SubscriberGroup((0,), ((0, 40),))])
    # 40 x 10 of output and at least 4 inputs of 10: 440 over 400; one input would make it 1.025.
    assert lower_bound(one) == pytest.approx(1.1)
    assert pack_sharing_input(one, lower_bound(one)).utilizations(one).max() == pytest.approx(1.1)


def test_an_empty_problem_has_an_empty_placement():
    one = PlacementProblem(np.array([1.0]), np.array([1.0]), [])
    assert lower_bound(one) == 0.0
    assert pack_lpt(one).placed == []
