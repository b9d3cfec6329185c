"""The laws of policies that plan for a whole cluster, over random small fleets; and that each is seen broken."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

import pytest
from tests.core.policies.fleet_laws import FleetPolicy, count, fleet_for, policies, run
from tests.core.policies.laws import LAWS

from plimsoll.core.policies.bad import Bad
from plimsoll.core.policies.bad.fleet import BadFleet
from plimsoll.core.policies.rebalancer import Memory, Step, StepsEnd

POLICIES = {chosen.label: chosen for chosen in policies()}
LETTER = "Pulsar, ThresholdShedder by the letter"
KEPT = ("endless", "return", "target", "reason")
FLEETS = [pytest.param(40, id="40 fleets"), pytest.param(500, id="500 fleets", marks=pytest.mark.sweep)]


@pytest.mark.slow
@pytest.mark.parametrize("fleets", FLEETS)
@pytest.mark.parametrize("label", [label for label in POLICIES if label != LETTER])
def test_policies_keep_the_laws(label: str, fleets: int):
    """All but two of them: overload is no measure of BAD and of Pulsar, and both take the heaviest first."""
    found = count(POLICIES[label], range(fleets))
    assert {law: found[law] for law in KEPT} == dict.fromkeys(KEPT, 0)
    assert found["moved"] > fleets / 2


@pytest.mark.parametrize("seed", [589, 678, 1703])
def test_edges_that_are_equal_do_not_swap_for_ever(seed: int):
    """Usages of the same subscribers differ in their last digits by the order in which rates were added."""
    chosen = POLICIES["Pulsar, ThresholdShedder"]
    assert not {"endless", "return"} & run(fleet_for(chosen, seed), chosen, optimum=False).broken.keys()


@pytest.mark.parametrize("seed", [9, 70, 175])
def test_a_bundle_costs_something_at_an_edge_that_was_idle(seed: int):
    """It has measured no matching delay; taken for none, it was sent more than it can match, and gave some back."""
    for label in ("Pulsar, ThresholdShedder", "Pulsar, AvgShedder"):
        found = run(fleet_for(POLICIES[label], seed), POLICIES[label])
        assert not set(KEPT) & found.broken.keys()
        for plan in found.plans[-1:]:
            measures = {load.name: found.fleet.load(load.name).measures for load in plan.after}
            for load in plan.after:
                assert load.measures == pytest.approx(measures[load.name]), load.name


class Silent(Bad):
    """Moves no subscriber, and says that all is even."""

    def steps(self, fleet: BadFleet, memory: Memory) -> Generator[Step, None, StepsEnd]:
        """None."""
        yield from ()
        return StepsEnd("Balanced", "all is even")


def test_each_law_is_seen_broken():
    bad = POLICIES["Bad, LDM and shuffle by the letter"]
    silent = replace(bad, label="Silent", policy=Silent(beta=0.0, rules="Paper"))
    seen = set[str]()
    for chosen in (POLICIES[LETTER], silent):
        found: FleetPolicy = chosen
        seen |= {law for law in LAWS if count(found, range(30))[law]}
    assert seen == set(LAWS)
    assert count(silent, range(20))["reason"]
