"""Topics that are owned singly: one edge for all units of a topic, through joins, restarts and assignments."""

from __future__ import annotations

from typing import Any

from plimsoll.core.head import topic_owners as module
from plimsoll.core.head.placement import Placement
from plimsoll.core.head.topic_owners import TopicOwners
from plimsoll.core.policies.delay_sensitive.placer import LeastUsedPlacer
from plimsoll.core.policies.model.publisher_load import PublisherTopicLoad
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.topic_units import topic_hash, unit_name
from plimsoll.core.spec.parser import parse_block
from plimsoll.core.spec.types.policy import PolicySpec

A, B, C, D, E = map(topic_hash, "abcde")


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
    topics.adopt({unit_name("s", A): "e1", unit_name("t", A): "e2", unit_name("u", A): "e2", "whole": "e1"})
    assert topics.owners == {A: "e2"}


def test_an_owner_that_serves_none_of_a_topic_any_more_has_lost_it():
    """A client that cannot reach its edge is sent elsewhere, before the head knows that the edge is gone or after."""
    topics, edges = owners(), placement("e1", "e2", "e3")
    topics.owners = {A: "e1", B: "e1"}
    assert placed(topics, edges, A, "e1") != "e1"
    served = {unit_name("s", A): "e2", unit_name("t", A): "e1", unit_name("s", B): "e3", "whole": "e3"}
    topics.reconcile(lambda: served, 1.0)
    assert topics.owners == {A: "e1", B: "e3"}, "it may be this client alone that cannot reach it"
    del served[unit_name("t", A)]
    topics.reconcile(lambda: served, 1.0, soon=True)
    assert topics.owners == {A: "e2", B: "e3"}
    topics.reconcile(dict, 2.0)
    assert topics.owners == {A: "e2", B: "e3"}, "a topic that waits for its first unit keeps its edge"


def test_an_assigned_topic_keeps_its_edge_while_its_units_are_on_their_way():
    topics = owners()
    topics.take_table(assigned(A, "e2"))
    for look in range(module.ASSIGNED_FOR + 1):
        topics.reconcile(lambda: {unit_name("s", A): "e1"}, float(look))
        assert topics.owners[A] == "e2"
    topics.reconcile(lambda: {unit_name("s", A): "e1"}, 99.0)
    assert topics.owners[A] == "e1", "none has come, and nothing is said of it any more"


def test_topics_without_a_unit_are_forgotten_and_reports_are_bounded(monkeypatch: Any):
    monkeypatch.setattr(module, "FORGET_ABOVE", 10)
    monkeypatch.setattr(module, "REPORTED_AT_MOST", 3)
    topics, edges = owners(), placement("e1")
    topics._forget_above = 10
    served = {unit_name("s", each): "e1" for each in (1, 2, 3, 4)}
    for unit in range(100):
        placed(topics, edges, unit)
        topics.reconcile(lambda: served, float(unit))
        assert len(topics.owners) <= 13
    assert {1, 2, 3, 4} <= topics.owners.keys()
    assert len(topics.report()["topic_owners"]) == 3


def test_reports_have_the_topics_with_units_also_when_an_edge_is_assigned_that_has_none_of_them_yet():
    topics, edges = owners(), placement("e1", "e2")
    placed(topics, edges, A)
    placed(topics, edges, B)
    topics.reconcile(lambda: {unit_name("s", A): "e1"}, 0.0)
    topics.take_table(assigned(A, "e2"))
    assert topics.report()["topic_owners"] == {f"{A:08x}": "e2"}
    topics.reconcile(dict, 10.0)
    assert topics.report()["topic_owners"] == {}, "nobody asks for it any more"


def test_large_fleets_are_looked_at_less_often():
    topics, looks = owners(), 0

    def served() -> dict[str, str]:
        nonlocal looks
        looks += 1
        return {unit_name(f"s{number}", A): "e1" for number in range(module.UNITS_PER_SECOND * 4)}

    for second in range(9):
        topics.reconcile(served, float(second))
    assert looks == 3


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


def test_a_topic_without_an_owner_goes_where_its_first_unit_prefers_and_no_other_unit_moves_it():
    topics, edges = owners(), placement("e1", "e2", "e3")
    for topic, wanted, other in ((A, "e3", "e1"), (B, "e2", "e3")):
        first, second = topics.place(topic, edges, (), wanted), topics.place(topic, edges, (), other)
        assert first is not None
        assert second is not None
        assert (first.name, second.name, topics.owners[topic]) == (wanted, wanted, wanted)
    edges.cordoned = frozenset({"e3"})
    elsewhere = topics.place(A, edges, (), "e3")
    assert elsewhere is not None
    assert elsewhere.name == topics.owners[A] != "e3", "a wish does not open an edge that takes no newcomers"


def test_correlated_topics_are_placed_at_different_edges():
    """Two topics of a group, and two whose publishers have risen together; a third one is placed as before."""
    policy = parse_block(PolicySpec, {"type": "DelaySensitive", "delaySensitive": {
        "topicAttribute": "topic", "correlation": {"groups": [{"name": "north", "topics": ["a", "b"]}]}}})  # fmt: skip
    topics, edges = TopicOwners(policy), placement("e1", "e2")
    edges.placer = LeastUsedPlacer()
    for seen, other in ((A, B), (C, D)):
        for number in range(12):
            topics.rates.look(PublisherTopicLoad("p", topic, 10.0 + 90.0 * (number > 8)) for topic in (C, D))
        first = topics.place(seen, edges, (), "e1")
        assert first is not None
        assert placed(topics, edges, other) == "e2"
    assert topics.beside(E) == {}
    topics.take_policy(parse_block(PolicySpec, {"type": "DelaySensitive", "delaySensitive": {
        "topicAttribute": "topic", "correlation": {"apart": False}}}))  # fmt: skip
    assert topics.beside(B) == {}
