"""Topics that go to a neighbouring cluster: the own edges first, then one neighbour, on the queueing model.

Cluster near has two edges, one of which is to send more than it can while the other is HIGH; far has an idle edge.
"""

from __future__ import annotations

from typing import Any

from plimsoll.core.protocol.topic_units import hash_of_unit, topic_hash
from plimsoll.core.session import Session
from plimsoll.core.spec import Resources, SourceDocument, parse
from plimsoll.core.spec.brokers import head_name
from plimsoll.simulator.queueing.fleet import LinkDelays, QueueingFleet
from plimsoll.simulator.queueing.traffic import RateStep, Traffic, TrafficPublisher, TrafficSubscriber

API = "plimsoll.dev/v1alpha1"
BANDWIDTH = 100_000
TOPICS = ("tides", "winds", "rain")
SIZE = 500


def resources(
    *,
    is_global: bool = True,
    far: dict[str, Any] | None = None,
    latency: str = "2s",
    near: tuple[str, ...] = ("n0", "n1"),
) -> Resources:
    """`far`: the policy of the other cluster, if it is not the same; `near`: the edges of this one."""
    topics = [{"name": "tides", "latency": latency}, {"name": "winds", "latency": "5s"}]
    own = {"topicAttribute": "topic", "topics": topics, "defaultLatency": "30s", "correlation": {"apart": False}}
    policy = {"type": "DelaySensitive", "detection": {"stabilizeFor": "3s"}, "delaySensitive": own}
    balancing = {"globalBalancing": {"enabled": True, "interval": "2s"}} if is_global else {}
    edges = {"near": near, "far": ("f0", "f1")}
    policies: dict[str, dict[str, Any]] = {"near": policy, "far": far or policy}
    return parse([SourceDocument(each, "<test>") for each in (
        {"apiVersion": API, "kind": "BrokerFleet", "metadata": {"name": "test"},
         "spec": {"telemetry": {"reportInterval": "1s"}, **balancing}},
        {"apiVersion": API, "kind": "HardwareProfile", "metadata": {"name": "p"},
         "spec": {"cpu": "1", "memory": "1Gi", "bandwidth": {"outputBytesPerSecond": str(BANDWIDTH)}}},
        {"apiVersion": API, "kind": "HardwareProfile", "metadata": {"name": "h"},
         "spec": {"cpu": "1", "memory": "1Gi"}},
        *({"apiVersion": API, "kind": "BrokerCluster", "metadata": {"name": cluster},
           "spec": {"head": {"profile": "h"}, "edges": [{"name": name, "profile": "p"} for name in names],
                    "policy": policies[cluster],
                    "neighbors": [{"name": "far"}] if cluster == "near" else []}} for cluster, names in edges.items()),
    )])  # fmt: skip


def fleet(made: Resources, far_topics: tuple[str, ...] = (), own_topics: tuple[str, ...] = TOPICS) -> QueueingFleet:
    """n0 has tides, two thirds of what it can send, and from 10 s on half as much again with winds; n1 has rain."""
    steps = {"tides": (RateStep(0.0, 30.0),), "winds": (RateStep(0.0, 5.0), RateStep(10.0, 22.0)),
             "rain": (RateStep(0.0, 42.0),)}  # fmt: skip
    publishers = [
        TrafficPublisher(f"p-{topic}", head_name("near"), ({"topic": topic},), steps[topic], 0.01, SIZE)
        for topic in TOPICS
    ]
    places = {"tides": "n0", "winds": "n0", "rain": "n1"}
    subscribers = [
        TrafficSubscriber(f"s-{topic}-{number}", "near", (f"[topic,=,'{topic}']",), 0.5, prefer=places[topic])
        for topic in own_topics for number in range(4)
    ]  # fmt: skip
    subscribers += [
        TrafficSubscriber(f"f-{topic}", "far", (f"[topic,=,'{topic}']",), 0.5, prefer="f1") for topic in far_topics
    ]
    links = LinkDelays(0.02, 0.01, control=0.001)
    return QueueingFleet(made, Traffic(publishers, subscribers), seed=1, links=links, fair_by_topic=True)


def plans(run: QueueingFleet) -> list[Session]:
    """Sessions of the policy, in the order of their requests."""
    found = [one.session for one in run.mediator.objects.values() if one.session is not None]
    return sorted((one for one in found if one.triggered and not one.parent), key=lambda one: one.requested_at)


def places(run: QueueingFleet) -> dict[str, set[str]]:
    """The edges of each topic."""
    names = {topic_hash(topic): topic for topic in TOPICS}
    found: dict[str, set[str]] = {}
    for unit, edge in run.owners().items():
        hashed = hash_of_unit(unit)
        assert hashed is not None
        found.setdefault(names[hashed], set()).add(edge)
    return found


def test_a_topic_goes_to_the_other_cluster_once_no_own_edge_has_taken_it():
    run = fleet(resources())
    run.run(60.0)
    first, second, *_ = plans(run)
    assert (first.plan is not None, first.counts()["moved"]) == (True, 0)
    assert first.plan is not None
    assert first.plan.stop.startswith("NoBetter")
    assert set(first.sources) == {"n0", "n1"}, "the own cluster comes first, and keeps the other out of it"
    assert set(second.sources) == {"n0", "n1", "f0", "f1"}
    assert second.plan is not None
    assert [(pair.source, pair.target, len(pair.members)) for pair in second.plan.pairs] == [("n0", "f0", 4)]
    assert second.plan.pairs[0].is_across
    assert second.counts()["moved"] == 4
    assert second.plan.moves[0].reason.endswith("; no edge of its cluster takes it")
    assert places(run) == {"tides": {"n0"}, "winds": {"f0"}, "rain": {"n1"}}
    forecast = {each.edge: each for each in second.plan.forecasts}["f0"]
    assert forecast.utilization_before == 0.0
    assert 0.3 < forecast.utilization_after < 0.55, "the rate of winds has risen 5 s ago, and is an average yet"
    assert run.counts.late == {}
    assert len(plans(run)) == 2, "the deadlines are kept from then on"


def test_few_messages_are_late_and_none_is_lost_where_another_cluster_helps():
    helped, alone = fleet(resources()), fleet(resources(is_global=False))
    for run in (helped, alone):
        run.run(60.0)
    assert helped.counts.published == alone.counts.published
    assert alone.counts.late["tides"] > 0
    assert helped.counts.late["tides"] < 0.2 * alone.counts.late["tides"]


def test_a_cluster_keeps_its_topics_where_clusters_are_not_balanced_or_have_other_topics():
    for made in (
        resources(is_global=False),
        resources(far={"type": "Padres"}),
        resources(far={"type": "DelaySensitive", "delaySensitive": {"topicAttribute": "subject"}}),
    ):
        run = fleet(made)
        run.run(30.0)
        assert plans(run)
        assert all(set(one.sources) == {"n0", "n1"} for one in plans(run))
        assert places(run)["winds"] == {"n0"}


def test_a_topic_that_the_other_cluster_has_goes_to_its_edge_there_and_to_no_other():
    """f1 has winds already, and f0 is idle: in a cluster a topic has one edge."""
    run = fleet(resources(), far_topics=("winds",))
    run.run(40.0)
    assert places(run)["winds"] == {"f1"}


def test_a_cluster_with_one_edge_asks_its_neighbour_at_once():
    run = fleet(resources(near=("n0",)), own_topics=("tides", "winds"))
    run.run(40.0)
    first, *others = plans(run)
    assert set(first.sources) == {"n0", "f0", "f1"}
    assert (first.counts()["moved"], others) == (4, [])
    assert places(run) == {"tides": {"n0"}, "winds": {"f0"}}
    assert run.counts.late == {}


def test_a_cluster_with_one_edge_and_no_neighbour_has_no_plan():
    run = fleet(resources(near=("n0",), is_global=False), own_topics=("tides", "winds"))
    run.run(30.0)
    assert plans(run) == []
    assert run.mediator.memories["near"]["memory"]["overloads"], "it has looked, all the same"
