"""Plans for all brokers at once are held against samples: each way in which one can be wrong is found and named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.core.policies.hand import Broker, World, named
from tests.core.policies.shuffle.fleets import FACTOR, profiles, shuffled

from plimsoll.core.policies.shuffle import ShufflePlan
from plimsoll.core.verify.shuffle_plan_checker import ShufflePlanContext, shuffle_plan_faults

LOWER = dict.fromkeys(("input", "output", "cpu", "memory"), 0.9)
WORLD = World(10, {"k": (1 << 10) - 1}, {"a": Broker(served={"k": named("s", 9)}), "b": Broker(), "c": Broker()})
FLEET = ShufflePlanContext(profiles(WORLD), LOWER, frozenset("abc"), FACTOR)
PLAN = shuffled(WORLD)
MOVES = PLAN.waves[0]


def in_one(*moves: Any) -> ShufflePlan:
    return replace(PLAN, waves=(moves,))


def test_what_is_right_has_no_fault():
    assert len(MOVES) == 2
    assert shuffle_plan_faults(PLAN, FLEET) == []


@pytest.mark.parametrize(
    ("plan", "fleet", "fault"),
    [
        (in_one(*MOVES, MOVES[0]), FLEET, "s000 moves 2 times"),
        (in_one(replace(MOVES[0], target="a"), MOVES[1]), FLEET, "a would give to itself"),
        (in_one(replace(MOVES[0], target="d"), MOVES[1]), FLEET, "d may not take"),
        (in_one(replace(MOVES[0], subscribers=()), MOVES[1]), FLEET, "no subscriber moves with k"),
        (in_one(replace(MOVES[0], key="m"), MOVES[1]), FLEET, "s000 does not ask for m"),
        (in_one(replace(MOVES[0], source="b", target="c"), MOVES[1]), FLEET, "s000 is not at b"),
        (in_one(replace(MOVES[0], reason=" "), MOVES[1]), FLEET, "k moves without a reason"),
        (replace(PLAN, rejected=()), FLEET, "of 9 subscribers 6 move and 0 have a reason to stay"),
        (replace(PLAN, stopped=""), FLEET, "the plan does not say why it ends"),
        (PLAN, replace(FLEET, stays=frozenset(["s001"])), "s001 may not move"),
        (PLAN, replace(FLEET, most=5), "6 move, and 5 may"),
        (PLAN, replace(FLEET, takes=frozenset("ab")), "c may not take"),
        (
            replace(PLAN, after=PLAN.before),
            FLEET,
            "input_utilization of a would be 0.300000, the plan predicts 0.900000",
        ),
        (
            replace(PLAN, after=(PLAN.after[0], replace(PLAN.after[1], memory_ratio=0.95), PLAN.after[2])),
            FLEET,
            "memory of b would be 0.9500, above 0.9",
        ),
        (PLAN, replace(FLEET, lower={**LOWER, "output": 0.2}), "output of b would be 0.3000 in wave 1, above 0.2"),
        (PLAN, replace(FLEET, lower={**LOWER, "input": 0.2}), "input of c would be 0.3000 in wave 1, above 0.2"),
    ],
)
def test_each_fault_is_named(plan: ShufflePlan, fleet: ShufflePlanContext, fault: str):
    assert fault in shuffle_plan_faults(plan, fleet)


def test_a_plan_that_lowers_nothing_is_a_fault():
    """All nine to b: the highest is as high as before."""
    moved = replace(MOVES[0], subscribers=named("s", 9), target="b")
    world = World(10, WORLD.wants, {"a": Broker(), "b": Broker(served={"k": named("s", 9)}), "c": Broker()})
    after = tuple(world.load(name) for name in "abc")
    plan = replace(in_one(moved), after=after, rejected=())
    assert [fault for fault in shuffle_plan_faults(plan, FLEET) if "less" in fault] == [
        "nothing would be less: 0.900, 0.000, 0.000 -> 0.900, 0.000, 0.000"
    ]
