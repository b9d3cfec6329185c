"""The fewest moves that do as much: found where all plans can be tried, and no other plan where they cannot."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.core.policies.exact_fleet import ExactFleet, Hardware
from tests.core.policies.laws import overload, random_fleet, run

from plimsoll.core.policies.model.parameters import BalancingParameters
from plimsoll.core.policies.model.plan import BrokerAction, OffloadPlan
from plimsoll.core.policies.model.plan_builder import PlanBuilder
from plimsoll.core.policies.padres import Padres, fewest_moves


class AlgorithmAlone(Padres):
    """PADRES without the search for fewer moves."""

    def refined(self, made: OffloadPlan, begin: Callable[[], PlanBuilder]) -> OffloadPlan:
        return made


def fleet_of(light: int, heavy: int) -> ExactFleet:
    """b1 is overloaded by 100 ms for each subscription, at 4/s for the heavy ones; the light ones take 1/s of it."""
    asks = {f"l{number}": "light" for number in range(light)} | {f"h{number}": "heavy" for number in range(heavy)}
    kinds = {"b1": Hardware(0.0, 0.1, 40_000.0), "b2": Hardware(0.0, 0.01, 40_000.0)}
    return ExactFleet((1.0, 3.0), {"light": 1, "heavy": 3}, kinds, asks, dict.fromkeys(asks, "b1"))


def plans(fleet: ExactFleet) -> tuple[OffloadPlan, OffloadPlan]:
    """The plan of the algorithm, and that with the fewest moves, to relieve the input of b1."""
    action = BrokerAction("b2", "match", 1.0, ("input",))
    source, target, profile = fleet.load("b1"), fleet.load("b2"), fleet.profile("b1", "b2")
    alone, whole = AlgorithmAlone(), Padres()
    return alone.plan(source, target, profile, action), whole.plan(source, target, profile, action)


def test_what_one_heavy_subscriber_does_needs_no_light_ones():
    """Input of b1 is 4/s x 0.3 s = 1.2. The light ones go first, each for 0.4; without the heavy one 1/s is left."""
    fleet = fleet_of(light=2, heavy=1)
    made, fewest = plans(fleet)
    assert len(made.members) == 1
    assert made.members == fewest.members or len(fewest.members) == 1
    after = fleet.after(fewest)
    assert overload(after, "b1", Padres()) == 0.0
    assert overload(after, "b2", Padres()) == 0.0


def test_over_many_fleets_no_plan_has_more_moves_and_some_have_fewer():
    fewer = 0
    for seed in range(150):
        before, after = (run(random_fleet(seed), policy, optimum=False) for policy in (AlgorithmAlone(), Padres()))
        if before.plans and after.plans:
            assert len(after.plans[0].members) <= len(before.plans[0].members), seed
            fewer += len(after.plans[0].members) < len(before.plans[0].members)
    assert fewer >= 3


def test_a_plan_says_how_many_it_saves():
    found = [plan for seed in range(150) for plan in run(random_fleet(seed), Padres(), optimum=False).plans
             if any(move.reason.startswith("fewest moves: ") for move in plan.moves)]  # fmt: skip
    assert found
    assert any(" do as much as " in plan.stopped for plan in found)


def test_where_too_many_plans_are_possible_the_algorithm_has_the_last_word(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fewest_moves, "PLANS_AT_MOST", 1)
    for seed in range(20):
        before, after = (run(random_fleet(seed), policy, optimum=False) for policy in (AlgorithmAlone(), Padres()))
        assert [plan.members for plan in before.plans] == [plan.members for plan in after.plans]


def test_the_letter_of_the_paper_is_left_as_it_is():
    letter = Padres(BalancingParameters(rules="Paper"))
    made = run(random_fleet(9), letter, optimum=False).plans
    assert not [move for plan in made for move in plan.moves if move.reason.startswith("fewest")]
