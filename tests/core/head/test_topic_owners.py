"""Topics that are owned singly: one edge for all units of a topic, whoever joins, restarts or assigns it."""

from __future__ import annotations

from typing import Any

from plimsoll.core.head import topic_owners as module
from plimsoll.core.head.placement import Placement
from plimsoll.core.head.topic_owners import TopicOwners
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.topic_units import topic_hash, unit_name

A, B = topic_hash("a"), topic_hash("b")


def owners() -> TopicOwners:
    found = TopicOwners(None)
    found.attribute = "topic"
    return found


def placement(*edges: str) -> Placement:
    found = Placement()
    for name in edges:
        found.add(name, f"mem://{name}", "")
    return found


def placed(topics: TopicOwners, edges: Placement, unit: int, *exclude: str) -> str:
    found = topics.place(unit, edges, exclude)
    return "" if found is None else found.name


def assigned(topic: int, edge: str) -> msg.BundleTable:
    return msg.BundleTable(1, 0, [], [msg.AssignedBundle(topic, edge)])


def test_all_units_of_a_topic_go_to_one_edge_and_topics_spread():
    topics, edges = owners(), placement("e1", "e2")
    first = {placed(topics, edges, A) for _ in range(50)}
    other = {placed(topics, edges, B) for _ in range(50)}
    assert len(first) == len(other) == 1
    assert first != other, "the placer counts what it has placed"


def test_an_assigned_topic_is_met_at_its_target_by_newcomers():
    topics, edges = owners(), placement("e1", "e2")
    before = placed(topics, edges, A)
    target = "e2" if before == "e1" else "e1"
    assert topics.take_table(assigned(A, target))
    assert {placed(topics, edges, A) for _ in range(50)} == {target}


def test_an_owner_that_takes_no_newcomers_is_replaced_and_one_that_a_client_cannot_reach_is_not():
    topics, edges = owners(), placement("e1", "e2")
    owner = placed(topics, edges, A)
    assert placed(topics, edges, A, owner) != owner
    assert topics.owners[A] == owner
    edges.cordoned = frozenset({owner})
    assert placed(topics, edges, A) == topics.owners[A] != owner


def test_after_a_restart_the_edge_that_serves_most_of_a_topic_owns_it():
    topics = owners()
    served = {unit_name("s", A): "e1", unit_name("t", A): "e2", unit_name("u", A): "e2", "whole": "e1"}
    topics.adopt(served)
    assert topics.owners == {A: "e2"}
    topics.attached(unit_name("v", A), "e1")
    topics.attached(unit_name("v", B), "e1")
    topics.attached("whole", "e1")
    assert topics.owners == {A: "e2", B: "e1"}


def test_an_edge_that_is_gone_leaves_its_topics_to_those_that_serve_them():
    """A client that cannot reach its edge asks again before the head has learned that the edge is gone, or after."""
    topics, edges = owners(), placement("e1", "e2", "e3")
    topics.owners = {A: "e1", B: "e1"}
    assert placed(topics, edges, A, "e1") != "e1"
    topics.attached(unit_name("s", A), "e2")
    assert topics.owners[A] == "e1", "it may be this client alone that cannot reach it"
    topics.edge_lost("e1", {unit_name("s", A): "e2", unit_name("t", A): "e1", unit_name("s", B): "e1"})
    assert topics.owners == {A: "e2", B: "e1"}, "nobody else serves the other one yet"
    topics.attached(unit_name("s", B), "e3")
    assert topics.owners == {A: "e2", B: "e3"}
    topics.attached(unit_name("t", B), "e1")
    assert topics.owners[B] == "e3", "only the first that attaches decides"


def test_topics_without_a_unit_are_forgotten_and_reports_are_bounded(monkeypatch: Any):
    monkeypatch.setattr(module, "FORGET_ABOVE", 10)
    monkeypatch.setattr(module, "REPORTED_AT_MOST", 3)
    topics, edges = owners(), placement("e1")
    topics._forget_above = 10
    for unit in range(100):
        placed(topics, edges, unit)
        topics.forget([unit_name("s", each) for each in (1, 2)])
        assert len(topics.owners) <= 11
    assert {1, 2} <= topics.owners.keys()
    assert len(topics.report()["topic_owners"]) == 3


def test_tables_of_ranges_are_for_bundles():
    topics = owners()
    assert not topics.take_table(msg.BundleTable(1, 0, [0, 2**32 - 1], [msg.AssignedBundle(0, "e1")]))
    assert not TopicOwners(None).take_table(assigned(A, "e1"))
    assert TopicOwners(None).report() == {}


def test_another_policy_forgets_the_owners():
    topics = owners()
    topics.owners = {A: "e1"}
    topics.take_policy(None)
    assert (topics.owners, topics.is_used) == ({}, False)
