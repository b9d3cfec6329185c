"""What a scenario says of itself."""

from __future__ import annotations

import msgspec
import pytest

from plimsoll.core.config import Limits
from plimsoll.simulator.faults import Chances
from plimsoll.simulator.moves import Moving
from plimsoll.simulator.network import Weather
from plimsoll.simulator.planning import Asking
from plimsoll.simulator.scenario import LIMITS, Scenario


def scenario(**fields: object) -> Scenario:
    return Scenario("x", "about nothing", **fields)  # type: ignore[arg-type]


def test_nothing_happens_unless_it_is_asked_for():
    plain = scenario()
    assert (plain.moves, plain.is_rough, plain.is_steady, plain.victim) == (False, False, False, "")
    assert plain.limits() == LIMITS


@pytest.mark.parametrize("fields", [{"moving": Moving(1)}, {"asking": Asking(1)}])
def test_hand_overs_are_commanded_or_planned(fields: dict[str, object]):
    assert scenario(**fields).moves
    assert not scenario(**fields).is_rough


@pytest.mark.parametrize(
    "fields",
    [
        {"chances": Chances(reconnect=0.1)},
        {"control": Weather()},
        {"moving": Moving(1, aim=0.1)},
        {"moving": Moving(1, lives=0.1)},
    ],
)
def test_what_stands_in_the_way_of_hand_overs_is_rough(fields: dict[str, object]):
    assert scenario(**fields).is_rough


def test_limits_are_the_scenarios_own():
    limits = scenario(log_bytes=123, window_bytes=456).limits()
    assert (limits.log_bytes, limits.window_bytes) == (123, 456)
    assert msgspec.structs.replace(limits, log_bytes=LIMITS.log_bytes, window_bytes=LIMITS.window_bytes) == LIMITS
    other = scenario(base=msgspec.structs.replace(LIMITS, queue_bytes=77)).limits()
    assert (other.queue_bytes, other.lease_seconds) == (77, LIMITS.lease_seconds)


def test_the_limits_of_runs_are_met_within_a_short_run():
    usual = Limits()
    for name in ("log_bytes", "window_bytes", "link_buffer_bytes", "queue_bytes", "inbox_bytes"):
        assert getattr(LIMITS, name) < getattr(usual, name), name
    for name in ("lease_seconds", "dead_seconds", "block_seconds", "confirm_seconds"):
        assert getattr(LIMITS, name) <= getattr(usual, name), name
    assert LIMITS.heartbeat_seconds < LIMITS.dead_seconds < LIMITS.lease_seconds
