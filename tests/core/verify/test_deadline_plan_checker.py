"""Faults of plans that defend deadlines: a right plan has none, and each wrong one has its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.core.policies.delay_sensitive.small import Topic, sample, unit

from plimsoll.core.policies.delay_sensitive import DelaySensitive
from plimsoll.core.policies.rebalancer import RebalancingPlan, fleet_plan
from plimsoll.core.verify.deadline_plan_checker import DeadlinePlanContext, deadline_plan_faults

EDGES = {
    "a": [Topic(1, 2, 10.0, 100.0, 9.0), Topic(3, 1, 100.0, 100.0, 1.0, depth=60, delivery=89.0), Topic(4, 2)],
    "b": [],
}
GIVEN = sample(EDGES, {"a": 12_900.0, "b": 50_000.0})


def planned() -> RebalancingPlan:
    return fleet_plan(DelaySensitive(), GIVEN, {})


def faults(plan: RebalancingPlan, **fields: Any) -> list[str]:
    return deadline_plan_faults(plan, replace(DeadlinePlanContext(GIVEN.profiles, frozenset({"a", "b"})), **fields))


def with_move(plan: RebalancingPlan, **fields: Any) -> RebalancingPlan:
    (wave,) = plan.waves
    return replace(plan, waves=((replace(wave[0], **fields), *wave[1:]),))


def test_a_plan_of_the_policy_has_none():
    assert planned().moves
    assert faults(planned()) == []


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"target": "a"}, "a would give to itself"),
        ({"key": "1#00000009"}, "is no unit of 1#00000009"),
        ({"subscribers": ()}, "no subscriber moves with"),
        ({"reason": " "}, "moves without a reason"),
    ],
)
def test_each_wrong_plan_has_its_fault(change: Mapping[str, Any], what: str):
    assert any(what in fault for fault in faults(with_move(planned(), **change)))


def test_units_of_another_topic_beside_whole_ones():
    plan = planned()
    (wave,) = plan.waves
    rest = next(topic for topic in (1, 4) if not any(move.key.startswith(f"{topic}#") for move in wave))
    single = replace(wave[0], key=f"{rest}#{rest:08x}", subscribers=(unit("a", rest),))
    assert "a gives whole topics and units of others" in faults(replace(plan, waves=((*wave, single),)))
    back = replace(wave[0], source="b", target="a")
    assert "a gives topics and takes others" in faults(replace(plan, waves=((*wave, back),)))


def test_a_topic_that_leaves_an_edge_belongs_to_one_with_most_of_its_units():
    plan = planned()
    assert plan.owners
    assert any("is owned by '' then" in fault for fault in faults(replace(plan, owners=())))
    wrong = tuple((key, "a") for key, _ in plan.owners)
    assert any("another edge has more" in fault for fault in faults(replace(plan, owners=wrong)))
    other = (*plan.owners, ("7#00000007", "b"))
    assert "00000007 has an owner, and leaves no edge" in faults(replace(plan, owners=other))


def test_an_edge_of_another_cluster_only_takes_and_a_topic_has_one_edge_there():
    assert faults(planned(), away={"b"}) == []
    assert any("a is of another cluster, and gives" in fault for fault in faults(planned(), away={"a"}))
    elsewhere = {**GIVEN.profiles, "c": GIVEN.profiles["a"]}
    found = faults(planned(), profiles=elsewhere, away={"b", "c"})
    assert any("goes to b, and c of that cluster has it" in fault for fault in found)
