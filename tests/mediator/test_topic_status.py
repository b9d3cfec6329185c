"""Topics in the status of a cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.mediator.test_bundle_status import broker

from plimsoll.core.policies.model.topic_load import TopicLoad, topic_report
from plimsoll.core.protocol.topic_units import topic_hash
from plimsoll.core.spec import parse
from plimsoll.core.spec.resources import Resources
from plimsoll.local.manifests import parse_text
from plimsoll.mediator.topic_status import topic_status, worst_first

POLICY = """
  policy:
    type: DelaySensitive
    delaySensitive: {topicAttribute: topic, balancingTime: 100ms, topics: [{name: fast, latency: 1100ms}]}
"""
FLEET = """
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerFleet
metadata: {name: f}
spec:
  security: {plain: true}
---
apiVersion: plimsoll.dev/v1alpha1
kind: HardwareProfile
metadata: {name: p}
spec: {}
---
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerCluster
metadata: {name: east}
spec:
  head: {profile: p}
  edges: [{name: e, profile: p, replicas: 2}]
"""
HEAD = broker("h", "head", {"topic_owners": {}})
FAST = TopicLoad(7, "fast", 7, 7, 200.0, 0.0, 0.0, 1225.0, 0.0, 100, 200.0, 175.0, 1.1, 0.3, 0.0, 12)


def resources(policy: str = POLICY) -> Resources:
    return parse(parse_text(FLEET + policy, "fleet.yaml"))


def topics(*reports: tuple[str, list[TopicLoad]], **own: Any) -> list[dict[str, Any]]:
    """The topics that subscribers ask for."""
    return [row for row in everything(*reports, **own) if row.get("reason") != "NoSubscribers"]


def everything(*reports: tuple[str, list[TopicLoad]], owners: Any = None, memory: Any = None) -> list[dict[str, Any]]:
    head = broker("h", "head", {"topic_owners": owners})
    edges = [broker(name, "edge", topic_report(loads)) for name, loads in reports]
    found = topic_status(resources(), "east", head, edges, memory).get("topics", [])
    assert isinstance(found, list)
    return found


def test_a_topic_has_its_edge_its_latency_and_its_threshold():
    assert topics(("a", [FAST]), ("b", []), owners={"00000007": "a"}) == [
        {
            "hash": "00000007", "name": "fast", "edge": "a", "subscribers": 7, "publicationsPerSecond": 200,
            "deliveriesPerSecond": 1225, "depth": 100, "latencyMilliseconds": 871, "late": 12,
            "requiredMilliseconds": 1100, "depthThreshold": 97,
        }
    ]  # fmt: skip


def named(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that no subscriber asks for, but the policy names."""
    return [row for row in rows if row.get("reason") == "NoSubscribers"]


def test_a_deadline_that_no_path_keeps_says_so():
    (row,) = topics(("a", [TopicLoad(7, "fast", 1, input_rate=5.0, required_seconds=0.2, transmission_seconds=0.25,
                                     broker_seconds=0.01)]))  # fmt: skip
    assert row["reason"] == "PathTooLong"
    assert row["message"] == "links take 250 ms and brokers 10 ms without any queue; 200 ms are required"
    (row,) = topics(("a", [TopicLoad(7, "fast", 1, input_rate=5.0, required_seconds=0.3, transmission_seconds=0.25)]))
    assert "reason" not in row


def test_a_topic_of_the_policy_without_subscribers_or_publications_says_so():
    found = everything(("a", [TopicLoad(1, "free", 5, input_rate=1.0)]))
    assert named(found) == [{
        "hash": f"{topic_hash('fast'):08x}", "name": "fast", "subscribers": 0, "requiredMilliseconds": 1100,
        "reason": "NoSubscribers", "message": "no subscriber of this cluster asks for it",
    }]  # fmt: skip
    (silent,) = topics(("a", [TopicLoad(topic_hash("fast"), "fast", 5, required_seconds=1.1)]))
    assert silent["reason"] == "NoPublications"
    assert named(everything(("a", [TopicLoad(topic_hash("fast"), "fast", 5)]))) == []


def test_a_topic_that_only_the_head_knows_is_on_its_way_to_its_edge():
    digits = f"{topic_hash('fast'):08x}"
    assert everything(("a", []), ("b", []), owners={digits: "b"}) == [{
        "hash": digits, "name": "fast", "edge": "b", "requiredMilliseconds": 1100, "reason": "NotMeasured",
        "message": "its subscribers have just come, or are on their way to b, which has not measured it yet",
    }]  # fmt: skip
    assert len(named(everything(("a", []), owners={digits: ["no", "name"]}))) == 1


def test_nothing_is_said_of_topics_that_an_edge_without_a_report_may_have():
    head = broker("h", "head", {})
    assert named(topic_status(resources(), "east", head, [broker("a", "edge", {})], None)["topics"]) == []


def test_the_threshold_is_that_of_the_policy_with_what_it_remembers():
    memory = {"balancing_seconds": 0.3, "rates": {"a": {"00000007": [150.0, 175.0, 90]}}}
    assert topics(("a", [FAST]), memory=memory)[0]["depthThreshold"] == round((0.8 - 0.3) * 175 - (250 - 175) - 0.5)


def test_the_edge_with_the_least_time_left_stands_for_a_topic_that_several_serve():
    (row,) = topics(
        ("a", [TopicLoad(7, "fast", 2, required_seconds=1.1, late=3)]), ("b", [FAST]), owners={"00000007": "a"}
    )
    assert (row["edge"], row["subscribers"], row["depth"], row["late"]) == ("a", 9, 100, 15)


def test_topics_without_a_deadline_come_last_and_have_no_threshold():
    rows = topics(("a", [TopicLoad(1, "free", 5, depth=9), FAST]))
    assert [row["name"] for row in rows] == ["fast", "free"]
    assert rows[1].keys().isdisjoint({"requiredMilliseconds", "depthThreshold"})


def test_a_topic_whose_text_is_not_known_is_called_by_its_hash():
    assert topics(("a", [TopicLoad(0xAB)]))[0]["name"] == "000000ab"


def test_under_another_policy_the_status_says_nothing_of_topics():
    head = broker("h", "head", {})
    assert topic_status(resources("  policy: {type: Bad}\n"), "east", head, [], None) == {}
    assert topic_status(resources(), "gone", head, [], None) == {}


def test_topics_of_several_clusters_are_sorted_by_how_much_of_the_time_is_used():
    rows: list[dict[str, Any]] = [
        {"name": "free"}, {"name": "near", "requiredMilliseconds": 100, "latencyMilliseconds": 95},
        {"name": "far", "requiredMilliseconds": 1000, "latencyMilliseconds": 100},
    ]  # fmt: skip
    assert [row["name"] for row in worst_first(rows)] == ["near", "far", "free"]


def test_a_danger_in_a_cluster_with_one_edge_says_why_nothing_is_done():
    assert [row.get("reason") for row in topics(("a", [FAST]))] == ["NoOtherEdge"]
    assert [row.get("reason") for row in topics(("a", [FAST]), ("b", []))] == [None]
    (row,) = topics(("a", [replace(FAST, depth=90)]))
    assert "reason" not in row
    joined = FLEET.replace("{plain: true}", "{plain: true}\n  globalBalancing: {enabled: true}")
    assert joined != FLEET
    found = topic_status(
        parse(parse_text(joined + POLICY, "f")), "east", HEAD, [broker("a", "edge", topic_report([FAST]))], {}
    )
    assert "reason" not in found["topics"][0]


def test_a_threshold_leaves_room_for_what_comes_until_the_next_report():
    """25 messages a second more come than go: in 4 s 100, in 1 s 25."""
    slow = broker("a", "edge", {**topic_report([FAST]), "interval_seconds": 4.0})
    found = topic_status(resources(), "east", HEAD, [slow, broker("b", "edge", {})], {})
    assert found["topics"][0]["depthThreshold"] == 97 - 75


def test_a_latency_below_a_millisecond_is_not_shown_as_none():
    (row,) = topics(("a", [replace(FAST, required_seconds=0.0004)]))
    assert row["requiredMilliseconds"] == 1
