"""Loads that are counted by interval are those of F = I + O, and plans are the policy's."""

import pytest

from plimsoll.core.verify.bad_plan_checker import BadPlanContext, bad_plan_faults
from plimsoll.experiments.bad.arm import BadArm, run_arm
from plimsoll.experiments.bad.channels import ChannelSubscriber, ChannelWorld, Parameters, Results
from plimsoll.experiments.bad.counted_fleet import CountedFleet, bytes_by_interval, run_counted
from plimsoll.experiments.bad.large_world import LargePlan, large_world

A, B = (Parameters("c", (("value", value),)) for value in (1, 2))
TIMES = tuple(float(at) for at in range(1, 60, 2))
TWO = ChannelWorld(
    {"b1": (0.0, 0.0), "b2": (1.0, 1.0)},
    [ChannelSubscriber(f"s{n}", (0.1, 0.1), 0.0, (A,)) for n in range(2)]
    + [ChannelSubscriber("t", (0.9, 0.9), 0.0, (A, B))],
    {A: Results(TIMES, (20,) * len(TIMES)), B: Results(TIMES, (40,) * len(TIMES))},
    60.0,
)
SMALL = LargePlan(subscribers=150, parameters_per_channel=5, seconds=400.0)


def test_equal_back_end_subscriptions_come_in_once_and_go_out_to_each():
    """Two subscribers of 10 B/s at one broker: I = 10, O = 20. One of 10 and 20: I = 30, O = 30."""
    run = run_counted(TWO, BadArm("none", "Nearest"), 1)
    assert run.points[-1].loads == pytest.approx({"b1": 30.0, "b2": 60.0})
    assert run.points[-1].highest == pytest.approx(60.0)
    assert run.moved == 0
    assert run.points[-1].cov == pytest.approx(1 / 3)


def test_bytes_are_counted_in_their_interval():
    first, *_ = bytes_by_interval(TWO, 10.0)
    assert first == {A.text: 100, B.text: 200}


@pytest.mark.parametrize(
    ("placement", "homes"), [("Nearest", ["b1", "b1", "b2"]), ("RoundRobin", ["b1", "b2", "b1"])]
)  # fmt: skip
def test_newcomers_go_where_the_placer_says(placement: str, homes: list[str]):
    fleet = CountedFleet(TWO, BadArm("none", placement), 1)
    fleet.run()
    assert [fleet.homes[name] for name in ("s0", "s1", "t")] == homes


@pytest.mark.parametrize(
    ("migration", "shuffle"), [("LoadBased", "None"), ("SimilarityBased", "None"), ("None", "Greedy")]
)
def test_schemes_lower_cov_and_their_plans_are_without_faults(migration: str, shuffle: str):
    world = large_world(SMALL, 1)
    none, arm = BadArm("none", "Nearest"), BadArm("some", "Nearest", migration, shuffle)
    alone, balanced = run_counted(world, none, 1), run_counted(world, arm, 1)
    assert balanced.moved > 0
    assert balanced.cov(200.0, 400.0) < alone.cov(200.0, 400.0)
    fleet = CountedFleet(world, none, 1)
    fleet.run()
    fleet.policy = CountedFleet(world, arm, 1).policy
    sample, plan = fleet.sample(), fleet.plan()
    assert plan.moves
    known = BadPlanContext(sample.profiles, set(sample.profiles), dict.fromkeys(sample.profiles, 1.0))
    assert bad_plan_faults(plan, known) == []


def test_it_agrees_with_the_queueing_model():
    """The same world with all brokers, frames and reports: loads differ by the heads of frames and no more."""
    world = large_world(LargePlan(subscribers=60, parameters_per_channel=4, seconds=300.0), 1)
    arm = BadArm("none", "Nearest")
    counted, modelled = run_counted(world, arm, 1), run_arm(world, arm, 1)
    assert counted.cov(100.0, 300.0) == pytest.approx(modelled.cov(100.0, 300.0), abs=0.03)
    assert modelled.highest(100.0, 300.0) == pytest.approx(counted.highest(100.0, 300.0), rel=0.15)


def test_the_same_seed_gives_the_same_run():
    world, arm = large_world(SMALL, 2), BadArm("some", "Random", "LoadBased")
    assert run_counted(world, arm, 1).points == run_counted(world, arm, 1).points
    assert run_counted(world, arm, 1).points != run_counted(world, arm, 2).points
