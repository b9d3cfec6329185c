"""Scenarios are what their names say."""

from __future__ import annotations

from plimsoll.simulator.fault_injection.random_faults import FaultRates
from plimsoll.simulator.scenarios.catalogue import SCENARIOS


def test_the_scenarios_that_are_promised():
    assert {"calm", "cluster", "chain", "star", "slow-edge", "frozen-subscriber", "flooding-publisher"} <= set(
        SCENARIOS
    )
    assert {"edge-restart", "head-restart", "storm", "lossy", "everything"} <= set(SCENARIOS)
    assert SCENARIOS["chain"].shape.clusters >= 4
    assert SCENARIOS["star"].shape.clusters >= 4
    assert len({scenario.about for scenario in SCENARIOS.values()}) == len(SCENARIOS)


def test_a_claim_to_be_undisturbed_stands_alone():
    for scenario in SCENARIOS.values():
        if scenario.undisturbed_seconds:
            assert scenario.victim
            assert scenario.fault_rates == FaultRates(), "other faults would disturb"


def test_limits_are_the_scenarios_own():
    assert SCENARIOS["small-log"].limits().log_bytes < SCENARIOS["calm"].limits().log_bytes
