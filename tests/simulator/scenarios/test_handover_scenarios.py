"""Scenarios with hand-overs: together they have every fault, and none claims more than its faults allow."""

from __future__ import annotations

from dataclasses import fields

import pytest

from plimsoll.simulator.fault_injection.random_faults import FaultRates
from plimsoll.simulator.run import run_seed
from plimsoll.simulator.scenarios.catalogue import SCENARIOS
from plimsoll.simulator.scenarios.handover_scenarios import HANDOVER_SCENARIOS, QUICK
from plimsoll.simulator.scenarios.scenario import SimulationScenario

each = pytest.mark.parametrize("scenario", HANDOVER_SCENARIOS, ids=lambda scenario: scenario.name)


@pytest.mark.sampled(without=("-balanced", "-shuffled", "-bundles", "-deadlines"))
@each
def test_subscribers_are_moved(scenario: SimulationScenario):
    assert scenario.has_handovers
    assert scenario.name.startswith("sessions-")
    assert SCENARIOS[scenario.name] is scenario
    is_looked_up = scenario.policy is not None and scenario.policy.unload == "Lookup"
    what = "succeeded" if is_looked_up else "moved"  # no hand-over moves what looks its edge up again
    assert any(run_seed(scenario.name, seed).handovers.get(what, 0) for seed in range(12))


@each
def test_no_fault_can_cause_a_gap_in_a_gap_free_scenario(scenario: SimulationScenario):
    """No client is killed at random, nor a head without a disk; logs and queues are large enough for the whole run."""
    if not scenario.is_gap_free:
        return
    assert scenario.durable or not {"head", "target-head"} & set(scenario.handovers.crashable)
    assert scenario.durable or scenario.fault_rates.crash_head == 0.0
    assert scenario.fault_rates.crash_client == 0.0
    largest = 400 + scenario.load.payload_bytes
    published = scenario.load.publications * largest
    assert published < min(scenario.limits().log_bytes, 2**30)
    assert scenario.load.holds == 0, "a subscriber that pauses for long fills its queue"


@each
def test_leases_and_timeouts_end_before_the_run_does(scenario: SimulationScenario):
    assert scenario.settle_seconds > 2 * QUICK.lease_seconds + QUICK.dead_seconds


def test_together_they_have_every_fault():
    for field in fields(FaultRates):
        if field.name not in ("seconds", "storm", "lose_head", "lose_node"):  # lost nodes are for heads with a standby
            assert any(getattr(one.fault_rates, field.name) for one in HANDOVER_SCENARIOS), field.name
    assert any(one.handovers.replay == 1.0 for one in HANDOVER_SCENARIOS)
    assert any(one.handovers.across for one in HANDOVER_SCENARIOS)
    assert any(one.handovers.tight for one in HANDOVER_SCENARIOS)
    assert any(one.handovers.stale for one in HANDOVER_SCENARIOS)
    assert any(one.handovers.batch >= 10 for one in HANDOVER_SCENARIOS)
    assert any(one.slow is not None for one in HANDOVER_SCENARIOS)
    crashable = {name for one in HANDOVER_SCENARIOS for name in one.handovers.crashable}
    assert crashable >= {"subscriber", "source", "target", "head", "target-head"}
    assert any(one.sessions.sessions and one.fault_rates.crash_head for one in HANDOVER_SCENARIOS)


def test_names_and_descriptions_are_unique():
    assert (
        len({one.about for one in HANDOVER_SCENARIOS})
        == len({one.name for one in HANDOVER_SCENARIOS})
        == len(HANDOVER_SCENARIOS)
    )
