"""Worlds in which subscribers are moved: together they have every fault, and each claims no more than it can keep."""

from __future__ import annotations

from dataclasses import fields

import pytest

from plimsoll.simulator.fault_injection.random_faults import FaultRates
from plimsoll.simulator.run import run_seed
from plimsoll.simulator.scenarios.catalogue import SCENARIOS
from plimsoll.simulator.scenarios.handover_scenarios import HANDOVER_SCENARIOS, QUICK
from plimsoll.simulator.scenarios.scenario import SimulationScenario

each = pytest.mark.parametrize("scenario", HANDOVER_SCENARIOS, ids=lambda scenario: scenario.name)


@each
def test_somebody_is_moved(scenario: SimulationScenario):
    assert scenario.moves
    assert scenario.name.startswith("sessions-")
    assert SCENARIOS[scenario.name] is scenario
    assert any(run_seed(scenario.name, seed).handovers.get("moved", 0) for seed in range(12))


@each
def test_a_steady_world_claims_nothing_that_its_faults_take_away(scenario: SimulationScenario):
    """Who is told of no gap meets no bound: no head is killed, and logs and queues last for the whole run."""
    if not scenario.is_steady:
        return
    assert not {"head", "target-head"} & set(scenario.handovers.crashable)
    assert (scenario.fault_rates.crash_head, scenario.fault_rates.crash_client) == (0.0, 0.0)
    largest = 400 + scenario.load.payload_bytes
    published = scenario.load.publications * largest
    assert published < min(scenario.limits().log_bytes, 2**30)
    assert scenario.load.holds == 0, "who holds back for long meets the bound of its queue"


@each
def test_everything_comes_to_its_end_before_the_run_does(scenario: SimulationScenario):
    assert scenario.settle_seconds > 2 * QUICK.lease_seconds + QUICK.dead_seconds


def test_together_they_have_every_fault():
    for field in fields(FaultRates):
        if field.name not in ("seconds", "storm"):
            assert any(getattr(one.fault_rates, field.name) for one in HANDOVER_SCENARIOS), field.name
    assert any(one.handovers.replay == 1.0 for one in HANDOVER_SCENARIOS)
    assert any(one.handovers.across for one in HANDOVER_SCENARIOS)
    assert any(one.handovers.tight for one in HANDOVER_SCENARIOS)
    assert any(one.handovers.stale for one in HANDOVER_SCENARIOS)
    assert any(one.handovers.batch >= 10 for one in HANDOVER_SCENARIOS)
    assert any(one.slow is not None for one in HANDOVER_SCENARIOS)
    mortal = {name for one in HANDOVER_SCENARIOS for name in one.handovers.crashable}
    assert mortal >= {"subscriber", "source", "target", "head", "target-head"}
    assert any(one.sessions.sessions and one.fault_rates.crash_head for one in HANDOVER_SCENARIOS)


def test_each_is_about_something_else():
    assert (
        len({one.about for one in HANDOVER_SCENARIOS})
        == len({one.name for one in HANDOVER_SCENARIOS})
        == len(HANDOVER_SCENARIOS)
    )
