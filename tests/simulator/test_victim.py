"""The victim of a scenario: the seed chooses it, and only those that share its fate are exempt from law I7."""

from __future__ import annotations

import random

import pytest

from plimsoll.core.verify import observations as seen
from plimsoll.simulator.run import SimulationRun
from plimsoll.simulator.scenarios.catalogue import SCENARIOS
from plimsoll.simulator.victim import FLOOD_PUBLICATIONS, Victim


def victim_of(scenario: str, seed: int = 1) -> Victim:
    return Victim(SCENARIOS[scenario], random.Random(seed))


def test_a_scenario_without_one_singles_out_nothing():
    victim = victim_of("calm")
    assert (victim.name, victim.hardware()) == ("", {})


@pytest.mark.parametrize(
    ("scenario", "kind"), [("slow-edge", "e"), ("frozen-subscriber", "s"), ("flooding-publisher", "p")]
)
def test_the_seed_chooses(scenario: str, kind: str):
    names = {victim_of(scenario, seed).name for seed in range(20)}
    assert all(kind in name for name in names)
    assert victim_of(scenario, 3).name == victim_of(scenario, 3).name
    assert (len(names) > 1) == (kind != "p"), "the flooding publisher is always the first"


def test_only_a_slow_edge_has_hardware_of_its_own():
    edge = victim_of("slow-edge")
    assert list(edge.hardware()) == [edge.name]
    assert victim_of("frozen-subscriber").hardware() == {}


def test_a_slow_edge_exempts_those_that_it_has_served():
    run = SimulationRun(SCENARIOS["slow-edge"], 1)
    name = run.victim.name
    observed = [
        seen.OwnerObserved("s2", (1, 2), name, 1.0),
        seen.OwnerObserved("s1", (1, 2), "another", 1.0),
        seen.OwnerObserved("s0", (1, 2), name, 2.0),
        seen.OwnerObserved("s2", (1, 4), name, 3.0),
    ]
    assert run.victim.exempt(run.apps, observed) == ["s0", "s2"]


def test_a_frozen_subscriber_exempts_all_of_its_process():
    run = SimulationRun(SCENARIOS["frozen-subscriber"], 1)
    exempt = run.victim.exempt(run.apps, [])
    assert run.victim.name in exempt
    assert set(exempt) == {
        name for name, process in run.apps.process_of.items() if process is run.apps.process_of[run.victim.name]
    }


def test_a_flooding_publisher_publishes_evenly_until_the_end():
    run = SimulationRun(SCENARIOS["flooding-publisher"], 1)
    said: list[float] = []
    run.victim.plan(run.schedule, run.apps, lambda one: said.append(one.at), random.Random(1), 1.0, 3.0)
    run.schedule.run(4.0)
    assert len(said) == FLOOD_PUBLICATIONS
    assert (said[0], said == sorted(said), said[-1] < 3.0) == (1.0, True, True)
    assert run.victim.exempt(run.apps, []) == ["p0"]
