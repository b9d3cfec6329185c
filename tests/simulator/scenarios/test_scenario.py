"""The defaults of a scenario, and what follows from its fields."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from plimsoll.core.config import BrokerLimits
from plimsoll.simulator.engine.network import ConnectionQuality
from plimsoll.simulator.fault_injection.random_faults import FaultRates
from plimsoll.simulator.mediators.handover_plan import HandoverMix
from plimsoll.simulator.mediators.session_mediator import PlannedSessionMix
from plimsoll.simulator.scenarios.scenario import SMALL_LIMITS, SimulationScenario


def scenario(**fields: Any) -> SimulationScenario:
    return SimulationScenario("x", "about nothing", **fields)


def test_a_scenario_has_no_faults_and_no_handovers_by_default():
    plain = scenario()
    assert (plain.has_handovers, plain.is_disturbed, plain.is_gap_free, plain.victim) == (False, False, False, "")
    assert plain.limits() == SMALL_LIMITS


@pytest.mark.parametrize("fields", [{"handovers": HandoverMix(1)}, {"sessions": PlannedSessionMix(1)}])
def test_a_scenario_has_commanded_or_planned_handovers(fields: dict[str, object]):
    assert scenario(**fields).has_handovers
    assert not scenario(**fields).is_disturbed


@pytest.mark.parametrize(
    "fields",
    [
        {"fault_rates": FaultRates(reconnect=0.1)},
        {"control": ConnectionQuality()},
        {"handovers": HandoverMix(1, aim=0.1)},
        {"handovers": HandoverMix(1, lives=0.1)},
    ],
)
def test_a_scenario_with_faults_is_disturbed(fields: dict[str, object]):
    assert scenario(**fields).is_disturbed


def test_a_scenario_overrides_limits():
    limits = scenario(log_bytes=123, window_bytes=456).limits()
    assert (limits.log_bytes, limits.window_bytes) == (123, 456)
    assert (
        msgspec.structs.replace(limits, log_bytes=SMALL_LIMITS.log_bytes, window_bytes=SMALL_LIMITS.window_bytes)
        == SMALL_LIMITS
    )
    other = scenario(base=msgspec.structs.replace(SMALL_LIMITS, queue_bytes=77)).limits()
    assert (other.queue_bytes, other.lease_seconds) == (77, SMALL_LIMITS.lease_seconds)


def test_limits_are_smaller_than_the_defaults():
    defaults = BrokerLimits()
    for name in ("log_bytes", "window_bytes", "link_buffer_bytes", "queue_bytes", "inbox_bytes"):
        assert getattr(SMALL_LIMITS, name) < getattr(defaults, name), name
    for name in ("lease_seconds", "dead_seconds", "block_seconds", "confirm_seconds"):
        assert getattr(SMALL_LIMITS, name) <= getattr(defaults, name), name
    assert SMALL_LIMITS.heartbeat_seconds < SMALL_LIMITS.dead_seconds < SMALL_LIMITS.lease_seconds
