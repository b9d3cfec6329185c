"""Our policy: even costs, few moves, rest under constant load; held against the best of all assignments."""

from __future__ import annotations

import itertools
import random

from tests.core.policies.consumer_groups.small import applied, consumer, drawn, highest

from plimsoll.core.policies.consumer_groups.cost_balancing import CostBalancing
from plimsoll.core.policies.consumer_groups.model import ConsumerLoad, SliceMove, owners
from plimsoll.core.verify.slice_plan_checker import slice_plan_faults


def test_the_slices_move_that_bring_two_consumers_closest() -> None:
    plan = CostBalancing().balance([consumer("a", 0.1, 0.3, 0.6), consumer("b", 0.2, first=3)])
    assert plan.moves == (SliceMove("a", "b", 0), SliceMove("a", "b", 1))


def test_idle_slices_are_spread_by_number() -> None:
    consumers = [consumer("a", *[0.0] * 6), consumer("b", first=6)]
    assert sorted(len(c.slices) for c in applied(consumers, CostBalancing().balance(consumers))) == [3, 3]


def test_one_slice_of_all_the_load_stays() -> None:
    plan = CostBalancing().balance([consumer("a", 1.0), consumer("b", first=1)])
    assert (plan.moves, plan.reason) == ((), "no slice of a would bring it closer to the others")


def test_without_a_new_measurement_nothing_is_decided() -> None:
    assert CostBalancing().balance([consumer("a", 0.5, 0.4, has_measured=False), consumer("b", first=2)]).moves == ()


def test_constant_load_comes_to_rest_and_the_highest_cost_never_rises() -> None:
    for seed in range(3000):
        consumers = drawn(seed)
        count = len(owners(consumers))
        plan = CostBalancing().balance(consumers)
        assert slice_plan_faults(plan.sessions, owners(consumers), {c.name for c in consumers}, count) == [], seed
        shuffled = [*consumers]
        random.Random(seed).shuffle(shuffled)
        assert CostBalancing().balance(shuffled) == plan, seed
        looks = 0
        while plan.moves:
            after = applied(consumers, plan)
            assert highest(after) <= highest(consumers) + 1e-9, seed
            consumers, looks = after, looks + 1
            plan = CostBalancing().balance(consumers)
            assert looks < 4, seed


def test_neither_many_more_moves_nor_much_more_load_than_the_best() -> None:
    """Exhaustively for three consumers and up to six slices: the least highest cost, and the fewest moves to it."""
    worst_cost, worst_moves = 0.0, 0
    for seed in range(300):
        source = random.Random(seed)
        costs = [round(source.random(), 2) for _ in range(source.randint(2, 6))]
        where = [source.randrange(3) for _ in costs]
        consumers = [_with(f"c{n}", costs, where, n) for n in range(3)]
        plan = CostBalancing().balance(consumers)
        reached = highest(applied(consumers, plan))
        best = min(_highest(costs, each) for each in itertools.product(range(3), repeat=len(costs)))
        fewest = min(
            sum(a != b for a, b in zip(where, each, strict=True))
            for each in itertools.product(range(3), repeat=len(costs)) if _highest(costs, each) <= reached + 1e-3
        )  # fmt: skip
        worst_cost = max(worst_cost, reached / best)
        worst_moves = max(worst_moves, len(plan.moves) - fewest)
    assert worst_cost < 1.5
    assert worst_moves <= 1


def _with(name: str, costs: list[float], where: list[int], at: int) -> ConsumerLoad:
    own = [consumer(name, cost, first=i).slices[0] for i, cost in enumerate(costs) if where[i] == at]
    return ConsumerLoad(name, tuple(own))


def _highest(costs: list[float], where: tuple[int, ...]) -> float:
    return max(sum(cost for cost, at in zip(costs, where, strict=True) if at == n) for n in range(3))
