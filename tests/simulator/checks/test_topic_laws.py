"""The laws of topics: a settled fleet keeps them, and each way to break one is reported."""

from __future__ import annotations

from typing import Any

import pytest
from tests.simulator.test_balancing import run

from plimsoll.core.edge.machine import Edge
from plimsoll.core.head.machine import Head
from plimsoll.core.protocol.topic_units import unit_name
from plimsoll.core.session.session_plan import PlannedPair, SessionPlan
from plimsoll.simulator.checks.topic_laws import TopicLaws
from plimsoll.simulator.mediators.session_mediator import SessionBackend
from plimsoll.simulator.run import SimulationRun

Patch = pytest.MonkeyPatch


@pytest.fixture(scope="module")
def over() -> SimulationRun:
    return run("sessions-deadlines", 1)


def head_of(over: SimulationRun) -> Head:
    head = over.fleet.heads()[0].host.node
    assert isinstance(head, Head)
    return head


def left(laws: TopicLaws | None) -> list[str]:
    assert laws is not None
    return [each.what for each in laws.leftovers(0.0)]


def test_a_settled_fleet_keeps_them(over: SimulationRun):
    assert left(over.laws.topics) == []


@pytest.mark.slow
def test_so_does_one_whose_topics_went_to_another_cluster():
    over = run("sessions-deadlines-clusters", 4)
    backend = over.mediators.backend
    assert isinstance(backend, SessionBackend)
    assert any(pair.is_across for plan in backend.plans() for pair in plan.pairs)
    assert left(over.laws.topics) == []


@pytest.mark.parametrize("owner", ["", "elsewhere"])
def test_an_owner_that_does_not_serve_its_topic_is_reported(over: SimulationRun, monkeypatch: Patch, owner: str):
    head = head_of(over)
    monkeypatch.setattr(head.topics, "owners", dict.fromkeys(head.topics.owners, owner))
    assert any(f"is owned by {owner!r}, and served by" in what for what in left(over.laws.topics))


def test_units_away_from_their_owner_are_reported_where_no_fault_explains_them(over: SimulationRun, monkeypatch: Patch):
    original = TopicLaws._places

    def places(self: TopicLaws, name: str) -> Any:
        found = original(self, name)
        for edges in found.values():
            edges["elsewhere"] += 1
        return found

    monkeypatch.setattr(TopicLaws, "_places", places)
    assert any("and owned by" in what for what in left(over.laws.topics))
    assert left(TopicLaws(over.fleet, list, is_disturbed=True)) == []


def test_a_report_that_is_not_true_is_reported(over: SimulationRun, monkeypatch: Patch):
    edges = [broker.host.node for broker in over.fleet.edges()]
    edge = next(each for each in edges if isinstance(each, Edge) and each.reporter.last["topics"])
    monkeypatch.setattr(edge.reporter, "last", {**edge.reporter.last, "topics": []})
    assert any("0 reported" in what for what in left(over.laws.topics))


def test_topics_of_which_a_plan_has_moved_units_singly_may_be_divided(over: SimulationRun):
    topic, unit = 7, unit_name("s", 7)
    pair = PlannedPair(source="a", target="b", source_head="h", target_head="h", members=[unit])
    single, whole = (SessionPlan(hash="", pairs=[pair], made_at=0.0, bundles=moved)
                     for moved in ({}, {f"seven#{topic:08x}": "b"}))  # fmt: skip
    assert TopicLaws(over.fleet, lambda: [whole, single], is_disturbed=False)._divided() == {topic}
    assert TopicLaws(over.fleet, lambda: [whole], is_disturbed=False)._divided() == set()


def test_a_topic_that_a_plan_has_spread_over_several_edges_may_be_divided_though_it_has_an_owner(over: SimulationRun):
    one, other = (
        PlannedPair(source="a", target=target, source_head="h", target_head="h", members=[unit_name(name, 7)])
        for name, target in (("s", "b"), ("t", "c"))
    )
    spread = SessionPlan(hash="", pairs=[one, other], made_at=0.0, bundles={"seven#00000007": "b"})
    assert TopicLaws(over.fleet, lambda: [spread], is_disturbed=False)._divided() == {7}
    moved_on = PlannedPair(source="b", target="c", source_head="h", target_head="h", members=[unit_name("s", 7)])
    twice = [
        SessionPlan(hash="", pairs=[pair], made_at=0.0, bundles={"seven#00000007": pair.target})
        for pair in (one, moved_on)
    ]
    assert TopicLaws(over.fleet, lambda: twice, is_disturbed=False)._divided() == set()
