"""Faults of plans of Pulsar: a right plan has none, and each wrong one has its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.core.policies.pulsar.small import names, sample

from plimsoll.core.policies.pulsar import Pulsar
from plimsoll.core.policies.rebalancer import FleetSample, RebalancingPlan, fleet_plan
from plimsoll.core.verify.pulsar_plan_checker import PulsarPlanContext, pulsar_plan_faults

GIVEN = replace(sample(a={0: 500.0, 1: 300.0, 2: 10.0}, b={3: 50.0}), unload=tuple(names(0)), target="b")


def planned(given: FleetSample = GIVEN) -> RebalancingPlan:
    return fleet_plan(Pulsar(bundles=8), given, {})


def faults(plan: RebalancingPlan, **fields: Any) -> list[str]:
    context = PulsarPlanContext(GIVEN.profiles, frozenset({"a", "b"}))
    return pulsar_plan_faults(plan, replace(context, **fields))


def with_move(plan: RebalancingPlan, **fields: Any) -> RebalancingPlan:
    (wave,) = plan.waves
    return replace(plan, waves=((replace(wave[0], **fields), *wave[1:]),))


def test_a_plan_of_the_policy_has_none():
    plan = planned()
    assert [(move.key, move.target) for move in plan.moves] == [(names(0)[0], "b")]
    assert faults(plan) == []
    assert faults(planned(replace(GIVEN, unload=()))) == []


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"target": "a"}, "a would give to itself"),
        ({"key": names(1)[0]}, "is no unit of"),
        ({"key": names(1)[0]}, "are left at a"),
        ({"subscribers": ()}, "no subscriber moves with"),
        ({"reason": " "}, "moves without a reason"),
    ],
)
def test_each_wrong_plan_has_its_fault(change: Mapping[str, Any], what: str):
    assert any(what in fault for fault in faults(with_move(planned(), **change)))


def test_a_bundle_belongs_to_the_edge_that_it_goes_to():
    assert f"{names(0)[0]} goes to b, and is owned by None then" in faults(replace(planned(), owners=()))
    assert any("may not take" in fault for fault in faults(planned(), takes=frozenset({"a"})))
    assert any("may not move" in fault for fault in faults(planned(), stays=planned().moves[0].subscribers))
