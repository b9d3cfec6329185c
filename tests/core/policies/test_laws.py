"""The laws of balancing decisions, over random small fleets; and that the checker sees each of them broken."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.core.policies.exact_fleet import ExactFleet, Hardware
from tests.core.policies.laws import LAWS, count, policies, random_fleet, run

from plimsoll.core.policies.greedy import Greedy
from plimsoll.core.policies.least_loaded import LeastLoaded
from plimsoll.core.policies.model.load import BrokerLoad
from plimsoll.core.policies.model.match_delay import SubscriptionMatchDelay
from plimsoll.core.policies.model.parameters import BalancingParameters
from plimsoll.core.policies.model.plan import OffloadPlan
from plimsoll.core.policies.model.plan_builder import PlanBuilder, PlanEnd
from plimsoll.core.policies.padres import Padres

FLEETS = [pytest.param(300, id="300 fleets"), pytest.param(3000, id="3,000 fleets", marks=pytest.mark.sweep)]
KEPT = ("endless", "return", "target", "stranded", "reason")
LETTER = Padres(BalancingParameters(rules="Paper"))


@pytest.mark.slow
@pytest.mark.parametrize("fleets", FLEETS)
def test_padres_keeps_the_laws(fleets: int):
    """That of moves for nearly all fleets: a session knows two edges, so some of what it moves moves again to a third;
    and output counts a tenth, so a plan with more moves may leave inputs and delays more even.
    """
    found = count(Padres(), range(fleets), "Measured")
    assert {law: found[law] for law in KEPT} == dict.fromkeys(KEPT, 0)
    assert found["moves"] <= 0.015 * fleets
    assert found["one pair"] + found["several pairs"] <= 0.01 * fleets


def test_only_policies_that_know_what_moves_overload_no_target():
    for name, policy in policies():
        assert bool(count(policy, range(100), "Measured")["target"]) == (name == "LeastLoaded"), name


def test_without_the_base_a_subscriber_moves_for_ever():
    """A base of five subscriptions at each of two edges; eq. 4 takes all of the delay for that of subscriptions."""
    fleet = random_fleet(44, "Linear")
    assert {"endless", "target"} <= run(fleet, Padres()).broken.keys()
    assert not run(replace(fleet, knowledge="Measured"), Padres()).broken


def test_by_the_letter_of_the_paper_a_subscriber_moves_for_ever():
    """The larger of the two only changes places, though all of the costs are known."""
    fleet = random_fleet(22)
    assert "endless" in run(fleet, LETTER).broken
    assert not run(fleet, Padres()).broken


class Idle(Padres):
    """Moves no subscriber, whatever the load."""

    def choose(self, draft: PlanBuilder) -> PlanEnd:
        return PlanEnd("NoBetter", "it does not want to")


def test_each_law_is_seen_broken():
    """Each policy that breaks a law is caught on one of 100 fleets, and one that moves no subscriber on its reasons."""
    seen = {law for policy in (LETTER, LeastLoaded(), Greedy(), Idle()) for law, number in
            count(policy, range(100), "Measured").items() if law in LAWS and number}  # fmt: skip
    assert seen == set(LAWS)
    assert {"stranded", "reason"} <= count(Idle(), range(50), "Measured").keys()


def fleet_of(*at: str) -> ExactFleet:
    """Subscribers of everything at edges of 10 ms and 5 ms for each subscription, at 4 publications a second."""
    asks = {f"s{number}": "all" for number in range(len(at))}
    kinds = {name: Hardware(0.01, 0.005, 4000.0) for name in ("b1", "b2")}
    return ExactFleet((4.0,), {"all": 1}, kinds, asks, {f"s{number}": edge for number, edge in enumerate(at)})


def test_loads_are_exact():
    """Two subscribers: 10 ms and twice 5 ms of a publication, 4/s; 8 deliveries of 100 bytes are 0.2 of 4,000 B/s."""
    fleet = fleet_of("b1", "b1")
    found = fleet.load("b1")
    assert found.measures == fleet.measures("b1")
    assert (found.input_utilization, found.output_utilization) == pytest.approx((0.08, 0.2))
    assert found.delay == SubscriptionMatchDelay(0.01, 0.005, 2)
    idle = fleet.load("b2")
    assert (idle.match_delay_seconds, idle.delay) == (0.0, None), "nothing was measured"
    assert replace(fleet, knowledge="Linear").load("b1").delay is None


def test_predictions_are_what_comes():
    """So that a law that is broken here is broken by a decision."""
    fleet, plans = fleet_of(*["b1"] * 8), 0
    found = run(fleet, Padres())
    for plan in found.plans:
        fleet, plans = fleet.after(plan), plans + 1
        assert near(plan, fleet.load(plan.source.name), fleet.load(plan.target.name))
    assert plans
    assert not found.broken


def near(plan: OffloadPlan, source: BrokerLoad, target: BrokerLoad) -> bool:
    pairs = ((plan.predicted_source, source), (plan.predicted_target, target))
    return all(one.measures == pytest.approx(two.measures) for one, two in pairs)
