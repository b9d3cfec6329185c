"""The fewest moves that do as much: found where all plans can be tried, and no other plan where they cannot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.core.policies.exact_fleet import ExactFleet, Hardware
from tests.core.policies.laws import overload, random_fleet, run

from plimsoll.core.policies.model.parameters import BalancingParameters
from plimsoll.core.policies.model.plan import BrokerAction, OffloadPlan
from plimsoll.core.policies.model.plan_builder import PlanBuilder
from plimsoll.core.policies.padres import Padres, fewest_moves
from plimsoll.core.policies.padres.fewest_moves import FEW

LETTER = Padres(BalancingParameters(rules="Paper"))


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


def three_edges(at: str, *, power: float = 1.0) -> ExactFleet:
    """Six subscribers of everything at one of three edges, of which b3 has `power` times as much of all."""
    kinds = {
        name: Hardware(0.0, 0.05 / times, 800.0 * times) for name, times in (("b1", 1.0), ("b2", 1.0), ("b3", power))
    }
    asks = {f"s{number}": "all" for number in range(6)}
    return ExactFleet((1.0,), {"all": 1}, kinds, asks, dict.fromkeys(asks, at))


def test_a_target_gets_no_more_than_its_share_of_the_fleet():
    """Six at b1: two go to each of the others. By pairs alone three would go to b2, and one of them on to b3."""
    alone, whole = (run(three_edges("b1"), policy) for policy in (AlgorithmAlone(), Padres()))
    assert (alone.moves, whole.moves) == (5, 4)
    assert sorted(whole.fleet.at.values()) == ["b1", "b1", "b2", "b2", "b3", "b3"]
    assert "b2 has its share, the average of all in input, with 2 instead of 3" in whole.plans[0].stopped
    assert not whole.broken


def test_of_idle_edges_the_strongest_is_asked_first_where_few_subscribers_could_go():
    fleet = three_edges("b1", power=4.0)
    loads = {name: fleet.load(name) for name in fleet.hardware}
    actions = tuple(BrokerAction(name, "output", 0.75) for name in ("b2", "b3"))
    some, many = loads["b1"], replace(loads["b1"], subscribers=FEW + 1)
    assert [each.target for each in Padres().ranked(some, actions, loads)] == ["b3", "b2"]
    assert [each.target for each in Padres().ranked(many, actions, loads)] == ["b2", "b3"]
    assert [each.target for each in LETTER.ranked(some, actions, loads)] == ["b2", "b3"]
    further = (BrokerAction("b2", "output", 0.76), actions[1])
    assert [each.target for each in Padres().ranked(some, further, loads)] == ["b2", "b3"]


def test_where_too_many_plans_are_possible_the_algorithm_has_the_last_word(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fewest_moves, "PLANS_AT_MOST", 1)
    for seed in range(20):
        before, after = (run(random_fleet(seed), policy, optimum=False) for policy in (AlgorithmAlone(), Padres()))
        assert [plan.members for plan in before.plans] == [plan.members for plan in after.plans]


def test_the_letter_of_the_paper_is_left_as_it_is():
    made = run(random_fleet(9), LETTER, optimum=False).plans
    assert not [move for plan in made for move in plan.moves if move.reason.startswith("fewest")]
