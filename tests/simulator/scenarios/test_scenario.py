"""What a scenario says of itself."""

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


def test_nothing_happens_unless_it_is_asked_for():
    plain = scenario()
    assert (plain.moves, plain.is_rough, plain.is_steady, plain.victim) == (False, False, False, "")
    assert plain.limits() == SMALL_LIMITS


@pytest.mark.parametrize("fields", [{"handovers": HandoverMix(1)}, {"sessions": PlannedSessionMix(1)}])
def test_hand_overs_are_commanded_or_planned(fields: dict[str, object]):
    assert scenario(**fields).moves
    assert not scenario(**fields).is_rough


@pytest.mark.parametrize(
    "fields",
    [
        {"fault_rates": FaultRates(reconnect=0.1)},
        {"control": ConnectionQuality()},
        {"handovers": HandoverMix(1, aim=0.1)},
        {"handovers": HandoverMix(1, lives=0.1)},
    ],
)
def test_what_stands_in_the_way_of_hand_overs_is_rough(fields: dict[str, object]):
    assert scenario(**fields).is_rough


def test_limits_are_the_scenarios_own():
    limits = scenario(log_bytes=123, window_bytes=456).limits()
    assert (limits.log_bytes, limits.window_bytes) == (123, 456)
    assert (
        msgspec.structs.replace(limits, log_bytes=SMALL_LIMITS.log_bytes, window_bytes=SMALL_LIMITS.window_bytes)
        == SMALL_LIMITS
    )
    other = scenario(base=msgspec.structs.replace(SMALL_LIMITS, queue_bytes=77)).limits()
    assert (other.queue_bytes, other.lease_seconds) == (77, SMALL_LIMITS.lease_seconds)


def test_the_limits_of_runs_are_met_within_a_short_run():
    usual = BrokerLimits()
    for name in ("log_bytes", "window_bytes", "link_buffer_bytes", "queue_bytes", "inbox_bytes"):
        assert getattr(SMALL_LIMITS, name) < getattr(usual, name), name
    for name in ("lease_seconds", "dead_seconds", "block_seconds", "confirm_seconds"):
        assert getattr(SMALL_LIMITS, name) <= getattr(usual, name), name
    assert SMALL_LIMITS.heartbeat_seconds < SMALL_LIMITS.dead_seconds < SMALL_LIMITS.lease_seconds
