"""Overloaded brokers are relieved first, and no move overloads its target; by the letter of the paper neither holds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.core.policies.bad.small import sample

from plimsoll.core.policies.bad import Bad
from plimsoll.core.policies.bad.relief import OverloadRules
from plimsoll.core.policies.model.load import BrokerLoad
from plimsoll.core.policies.rebalancer import FleetLook, FleetSample, fleet_plan
from plimsoll.core.verify.bad_plan_checker import BadPlanContext, bad_plan_faults

OURS = Bad(beta=0.0, gamma=9.0)
LETTER = replace(OURS, rules="Paper")


def with_output(given: FleetSample, **bandwidths: float) -> FleetSample:
    """The sample with the output that its subscribers take, in bytes per second at each broker."""
    loads = []
    for load in given.loads:
        profile = given.profiles[load.name]
        sent = sum(profile.traffic.bytes_per_second(row.bits) * len(row.names) for row in profile.rows)
        rate = sum(profile.rate(row) * len(row.names) for row in profile.rows)
        count, room = sum(len(row.names) for row in profile.rows), bandwidths[load.name]
        loads.append(
            replace(
                load, output_bytes_per_second=sent, output_utilization=sent / room, bandwidth=room, output_rate=rate,
                subscribers=count, subscriptions=count,
            )
        )  # fmt: skip
    return replace(given, loads=tuple(loads))


WEAK = with_output(sample(B1="a b", B2="a a a a"), B1=16.0, B2=1000.0)
"""B1 sends all that it can, at an F of 32; B2 sends 4 %, at an F of 50."""


def test_an_overloaded_broker_is_relieved_though_its_load_is_the_lower():
    assert [(move.subscribers, move.source, move.target) for move in fleet_plan(OURS, WEAK, {}).moves] == [
        (("B1-0",), "B1", "B2")
    ]
    reason = fleet_plan(OURS, WEAK, {}).moves[0].reason
    assert "output of B1 is above the lower threshold by 0.100" in reason or "fewest moves" in reason


def test_by_the_letter_it_gets_more():
    (move,) = fleet_plan(LETTER, replace(WEAK, most=1), {}).moves
    assert (move.source, move.target) == ("B2", "B1")


def test_no_target_is_overloaded():
    """B2 carries most by F; B1 would be above its lower threshold with any of its subscribers."""
    given = with_output(sample(B1="d", B2="a a a a"), B1=8.0, B2=1000.0)
    assert fleet_plan(OURS, given, {}).moves == ()
    assert "of those that it leaves below their lower thresholds" in fleet_plan(OURS, given, {}).stopped
    assert fleet_plan(LETTER, given, {}).moves


def test_nothing_moves_where_no_broker_has_room():
    given = with_output(sample(B1="a b", B2="a a"), B1=16.0, B2=21.0)
    assert fleet_plan(OURS, given, {}).moves == ()


def test_those_that_are_fixed_stay():
    given = replace(WEAK, staying={"B1-0": "pinned"})
    assert [move.subscribers for move in fleet_plan(OURS, given, {}).moves] == [("B1-1",)]


@pytest.mark.parametrize(("policy", "wanted"), [(OURS, "overloaded: output of B1 at 1.000"), (LETTER, "")])
def test_an_overload_asks_for_a_plan(policy: Bad, wanted: str):
    loads = (BrokerLoad(name="B1", output_utilization=1.0), BrokerLoad(name="B2"))
    memory = policy.observe(policy.observe({}, FleetLook(loads)), FleetLook(loads))
    assert policy.wanted(memory) == wanted
    assert policy.imbalance(FleetLook(loads)) == wanted
    assert not policy.wanted(policy.observe(memory, FleetLook((BrokerLoad(name="B1"),))))


def test_the_checker_knows_what_was_relieved():
    plan = fleet_plan(OURS, WEAK, {})
    context = BadPlanContext(WEAK.profiles, {"B1", "B2"}, {"B1": 1.0, "B2": 1.0})
    assert bad_plan_faults(plan, context), "the highest F rises"
    assert OURS.relieved(WEAK.loads) == {"B1"}
    assert bad_plan_faults(plan, replace(context, relieved=OURS.relieved(WEAK.loads))) == []
    assert LETTER.relieved(WEAK.loads) == frozenset()


def test_excess_is_what_is_above_the_lower_thresholds():
    assert OverloadRules().excess(WEAK.loads) == pytest.approx(0.1)
