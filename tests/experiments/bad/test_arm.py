"""An arm on the queueing model: placement by distance, plans of the policy, loads over time."""

from dataclasses import replace

import pytest

from plimsoll.experiments.bad.arm import BadArm, resources, run_arm
from plimsoll.experiments.bad.emergency_world import EmergencyPlan, emergency_world

PLAN = EmergencyPlan(subscribers=40, reports=1000, seconds=300.0, joined_seconds=60.0)


def test_policies_are_parsed_as_files_would_be():
    arm = BadArm("a", "Random", "SimilarityBased", "Greedy", alpha="50m")
    policy = resources({"b1": (0.25, 0.5)}, arm.policy(7)).fleet.spec.defaults.policy
    assert policy is not None
    assert policy.bad is not None
    assert (policy.bad.placement, policy.bad.migration, policy.bad.shuffle) == ("Random", "SimilarityBased", "Greedy")
    assert (float(policy.bad.alpha.value), policy.bad.seed, float(policy.bad.gamma.value)) == (0.05, 7, 0.5)


def test_balancing_lowers_cov_and_says_what_it_moved():
    world = emergency_world(PLAN, 1)
    alone, balanced = run_arm(world, BadArm("a", "Nearest"), 1), run_arm(world, BadArm("b", "Nearest", "LoadBased"), 1)
    assert (alone.moved, alone.plans, alone.last_move_at()) == (0, 0, 0.0)
    assert balanced.moved == balanced.points[-1].moved > 0
    assert balanced.cov(180.0, 300.0) < alone.cov(180.0, 300.0)
    assert balanced.highest(180.0, 300.0) < alone.highest(180.0, 300.0)
    assert balanced.first_plan_at() <= balanced.last_move_at()
    assert balanced.moved_between(0.0, 300.0) == balanced.moved
    assert balanced.delivered == pytest.approx(alone.delivered, rel=0.02)


def test_our_shuffle_runs_when_it_is_asked_for():
    run = run_arm(emergency_world(PLAN, 1), BadArm("ours", "Nearest", ours_at=150.0), 1)
    assert run.plans == 1
    assert run.moved_between(0.0, 150.0) == 0


def test_the_same_seed_gives_the_same_points():
    world, arm = emergency_world(replace(PLAN, seconds=120.0), 1), BadArm("a", "Nearest", "LoadBased", "Greedy")
    assert run_arm(world, arm, 1).points == run_arm(world, arm, 1).points
