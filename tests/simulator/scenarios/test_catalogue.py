"""The catalogue has the documented scenarios, with consistent claims."""

from __future__ import annotations

from plimsoll.simulator.fault_injection.random_faults import FaultRates
from plimsoll.simulator.scenarios.catalogue import SCENARIOS


def test_the_documented_scenarios_exist():
    assert {"calm", "cluster", "chain", "star", "slow-edge", "frozen-subscriber", "flooding-publisher"} <= set(
        SCENARIOS
    )
    assert {"edge-restart", "head-restart", "storm", "lossy", "everything"} <= set(SCENARIOS)
    assert SCENARIOS["chain"].shape.clusters >= 4
    assert SCENARIOS["star"].shape.clusters >= 4
    assert len({scenario.about for scenario in SCENARIOS.values()}) == len(SCENARIOS)


def test_a_scenario_with_a_latency_claim_has_a_victim_and_no_faults():
    for scenario in SCENARIOS.values():
        if scenario.undisturbed_seconds:
            assert scenario.victim
            assert scenario.fault_rates == FaultRates(), "other faults would disturb"


def test_a_scenario_overrides_limits():
    assert SCENARIOS["small-log"].limits().log_bytes < SCENARIOS["calm"].limits().log_bytes
