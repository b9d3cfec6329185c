"""A head counts what publishers bring with each topic, and who takes it; bounded, and only where topics are known."""

from __future__ import annotations

import json
from typing import Any

from tests.core.fleet import Fleet, Publishing, resume, tree

from plimsoll.core.head import publisher_topics
from plimsoll.core.head.publisher_topics import PublisherTopics
from plimsoll.core.policies.model.publisher_load import PublisherTopicLoad, reported_publishers
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.topic_units import topic_hash
from plimsoll.core.spec.types.policy import PolicySpec, PulsarParameters

PULSAR = {"type": "Pulsar", "pulsar": {"topicAttribute": "topic"}}


def counted(topics: PublisherTopics, seconds: float = 1.0) -> dict[tuple[str, int | None], PublisherTopicLoad]:
    return {(load.publisher, load.topic): load for load in reported_publishers(topics.report(seconds))}


def under_topics() -> PublisherTopics:
    return PublisherTopics(PolicySpec(type="Pulsar", pulsar=PulsarParameters(topic_attribute="topic")))


def test_local_remote_both_and_none():
    topics, neighbors = under_topics(), {"b": None, "c": None}
    for name, keys in (("n", set()), ("r", {"b", "c"}), ("rl", {"b", "e1#1"}), ("l", {"e1#1", "e2#1", "e3#1"})):
        topics.count(name, {"topic": name}, 10, keys, neighbors)
        topics.count(name, {"topic": name}, 10, set(), neighbors)
    found = counted(topics, 2.0)
    shown = {
        name: (one.local_rate, one.remote_rate, one.local_bytes, one.remote_bytes) for (name, _), one in found.items()
    }
    assert shown == {
        "n": (0.0, 0.0, 0.0, 0.0), "r": (0.0, 0.5, 0.0, 10.0), "rl": (0.5, 0.5, 5.0, 5.0), "l": (0.5, 0.0, 15.0, 0.0)
    }  # fmt: skip
    assert {(one.input_rate, one.input_bytes) for one in found.values()} == {(1.0, 10.0)}
    assert counted(topics) == {}, "each interval starts at zero"


def test_publications_without_the_attribute_have_no_topic():
    topics = under_topics()
    topics.count("p", {"other": 1}, 10, set(), {})
    topics.count("p", {"topic": 1}, 10, set(), {})
    topics.count("p", {"topic": 1.0}, 10, set(), {})
    found = counted(topics)
    assert {pair: one.input_rate for pair, one in found.items()} == {("p", None): 1.0, ("p", topic_hash(1)): 2.0}


def test_pairs_are_bounded(monkeypatch: Any):
    monkeypatch.setattr(publisher_topics, "PAIRS_AT_MOST", 3)
    topics = under_topics()
    for each in range(5):
        topics.count("p", {"topic": each}, 10, set(), {})
    topics.count("p", {"topic": 0}, 10, set(), {})
    report = topics.report(1.0)
    assert len(reported_publishers(report)) == 3
    assert report["publisher_topics_uncounted"] == 2


def test_without_topics_nothing_is_reported():
    assert PublisherTopics(None).report(1.0) == {}
    assert PublisherTopics(PolicySpec(type="Padres")).report(1.0) == {}


def test_another_attribute_counts_anew():
    topics = under_topics()
    topics.count("p", {"topic": 1}, 10, set(), {})
    topics.take_policy(PolicySpec(type="Pulsar", pulsar=PulsarParameters(topic_attribute="topic")))
    assert counted(topics), "the same attribute changes nothing"
    topics.count("p", {"topic": 1}, 10, set(), {})
    topics.take_policy(PolicySpec(type="Pulsar", pulsar=PulsarParameters(topic_attribute="stock")))
    assert counted(topics) == {}


def test_a_head_reports_who_takes_what():
    fleet: Fleet = tree([("a", "b")])
    client = fleet.client("c", "a", "a1", "b1")
    mediator = fleet.mediator("a", "b")
    fleet.run(0.2)
    mediator.say_control("a", msg.ClusterPolicy(json.dumps(PULSAR)))
    client.tell("a1", resume(1, "here", "[n,=,1]", "[n,=,2]"))
    client.tell("b1", resume(2, "there", "[n,=,2]", "[n,=,3]"))
    publishing = Publishing(client, "a")
    fleet.run(1.0)
    publishing.publish(4, topic="x")
    fleet.run(2.0)
    reports: list[Any] = [said.report for said in mediator.heard["a"] if isinstance(said, msg.LoadUpdate)]
    loads = [(load, report["interval_seconds"]) for report in reports for load in reported_publishers(report)]
    assert {(load.publisher, load.topic) for load, _ in loads} == {("p", topic_hash("x"))}
    assert round(sum(load.input_rate * seconds for load, seconds in loads)) == 4
    assert round(sum(load.local_rate * seconds for load, seconds in loads)) == 2
    assert round(sum(load.remote_rate * seconds for load, seconds in loads)) == 2
    assert sum(load.local_bytes for load, _ in loads) > 0
