"""The checker of BAD's plans finds each fault, and none in a plan of the policy."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from tests.core.policies.bad.small import MIXED, sample

from plimsoll.core.policies.bad import Bad
from plimsoll.core.policies.model.plan import PlanMove, PlanRejection
from plimsoll.core.policies.rebalancer import FleetSample, RebalancingPlan, fleet_plan
from plimsoll.core.verify.bad_plan_checker import BadPlanContext, bad_plan_faults


def context(given: FleetSample, **more: Any) -> BadPlanContext:
    names = [load.name for load in given.loads]
    return BadPlanContext(given.profiles, set(names), dict.fromkeys(names, 1.0), given.staying.keys(), **more)


MIGRATING = Bad(beta=0.0, shuffle="None")


def made(policy: Bad = MIGRATING) -> tuple[RebalancingPlan, FleetSample]:
    given = sample(**MIXED)
    return fleet_plan(policy, given, {}), given


def with_move(plan: RebalancingPlan, **fields: Any) -> RebalancingPlan:
    """The plan with another first move."""
    first, *others = plan.waves[0]
    return replace(plan, waves=((replace(first, **fields), *others),))


@pytest.mark.parametrize("policy", [Bad(beta=0.0), MIGRATING, replace(MIGRATING, migration="SimilarityBased")])
def test_plans_of_the_policy_have_no_faults(policy: Bad):
    plan, given = made(policy)
    assert plan.moves
    assert bad_plan_faults(plan, context(given)) == []


def test_what_cannot_be_is_found():
    plan, given = made()
    assert bad_plan_faults(with_move(plan, subscribers=("B1-0", "B1-0")), context(given))[0] == "B1-0 moves 2 times"
    assert "B9-9 is not at B1" in bad_plan_faults(with_move(plan, subscribers=("B9-9",)), context(given))
    assert "B1 would give to itself" in bad_plan_faults(with_move(plan, target="B1"), context(given))
    assert "B9 may not take" in bad_plan_faults(with_move(plan, target="B9"), context(given))
    assert any("without a reason" in each for each in bad_plan_faults(with_move(plan, reason=" "), context(given)))
    assert "2 move, and 1 may" in bad_plan_faults(plan, context(given, most=1))
    assert "the plan does not say why it ends" in bad_plan_faults(replace(plan, stopped=""), context(given))


def test_those_that_stay_are_kept():
    plan, given = made()
    assert "B1-0 may not move" in bad_plan_faults(plan, context(replace(given, staying={"B1-0": "is excluded"})))


def test_a_subscriber_without_a_reason_is_found():
    plan, given = made()
    assert bad_plan_faults(replace(plan, rejected=plan.rejected[1:]), context(given))


def test_a_plan_that_makes_it_worse_is_found():
    """d goes to B1, which carries most: 70 becomes 72."""
    given = sample(**MIXED)
    worse = RebalancingPlan((), (), ((PlanMove("d", ("B3-0",), "B3", "B1", "why not"),),),
                      (PlanRejection("NotNeeded", "", 5, "stay"),), "Balanced", "said")  # fmt: skip
    assert bad_plan_faults(worse, context(given)) == ["the highest load would rise from 70 to 72"]


def test_a_plan_that_changes_nothing_that_matters_is_found():
    given = sample(B1="a a", B2="c", B3="d")
    idle = RebalancingPlan((), (), ((PlanMove("d", ("B3-0",), "B3", "B2", "why not"),),),
                     (PlanRejection("NotNeeded", "", 3, "stay"),), "Balanced", "said")  # fmt: skip
    assert bad_plan_faults(idle, context(given)) == ["the highest load stays 30, at as many brokers"]


@pytest.mark.parametrize("seed", range(20))
def test_no_plan_of_a_random_fleet_has_a_fault(seed: int):
    drawn = random.Random(seed)
    rates = {text: drawn.choice([1.0, 3.0, 10.0, 50.0]) for text in "abcdef"}
    brokers = {
        f"B{number}": " ".join("".join(drawn.sample("abcdef", drawn.randint(1, 3))) for _ in range(drawn.randint(0, 9)))
        for number in range(drawn.randint(2, 5))
    }
    given = sample(rates, **brokers)
    for policy in (Bad(beta=0.0), Bad(beta=0.0, shuffle="None"), Bad(beta=0.0, migration="SimilarityBased")):
        assert bad_plan_faults(fleet_plan(policy, given, {}), context(given)) == []
