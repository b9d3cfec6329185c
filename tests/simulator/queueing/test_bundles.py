"""The product's Pulsar policy on the model: lookups, splits, shedding and both ways to unload, with nothing lost."""

from dataclasses import replace
from typing import Any

import pytest
from tests.simulator.queueing.conftest import fleet_of

from plimsoll.core.policies.model.bundle_load import reported_bundles
from plimsoll.core.policies.model.hash_ranges import Partition
from plimsoll.core.protocol.topic_units import hash_of_unit
from plimsoll.simulator.queueing.fleet import LinkDelays, QueueingFleet
from plimsoll.simulator.queueing.subscriber_units import divided
from plimsoll.simulator.queueing.traffic import RateStep, Traffic, TrafficPublisher, TrafficSubscriber

CLIENT_SECONDS = 0.01
TOPICS = [f"t{number}" for number in range(40)]
ENDS_AT = 120.0


def fleet(*, subscribers: int = 40, seed: int = 0, **own: Any) -> QueueingFleet:
    """Two edges; each tenth topic has five times the rate of the others; each subscriber asks for two topics."""
    pulsar = {
        "topicAttribute": "topic", "interval": "2s", "bundles": {"initial": 4, "maximum": 16},
        "shedding": {"history": "0"}, "split": {"auto": False}, **own,
    }  # fmt: skip
    policy = {"type": "Pulsar", "detection": {"interval": "2s", "stabilizeFor": "5s"}, "pulsar": pulsar}
    publishers = [
        TrafficPublisher(
            f"p-{topic}", "c1-head", ({"topic": topic, "n": 1},),
            (RateStep(0.0, 25.0 if number % 10 == 0 else 5.0), RateStep(ENDS_AT, 0.0)), 5.0 + number / 40,
        )
        for number, topic in enumerate(TOPICS)
    ]  # fmt: skip
    joined = [
        TrafficSubscriber(f"s{n:02}", "c1", (f"[topic,in,('t{n % 40}','t{(n + 7) % 40}')]",), 0.1 * n)
        for n in range(subscribers)
    ]
    resources = fleet_of(policy, base="100us", each="10us", bandwidth="200k")
    return QueueingFleet(resources, Traffic(publishers, joined), seed=seed, links=LinkDelays(0.001, CLIENT_SECONDS))


def sessions(one: QueueingFleet) -> list[Any]:
    return [each.session for each in one.mediator.objects.values() if each.session is not None]


def by_bundle(one: QueueingFleet) -> dict[str, set[str]]:
    """The edges that serve units of each bundle."""
    found: dict[str, set[str]] = {}
    for name, edge in one.owners().items():
        topic = hash_of_unit(name)
        assert topic is not None
        found.setdefault(one.heads["c1-head"].bundles.partition.range_of(topic).name, set()).add(edge)
    return found


def unload(one: QueueingFleet, at: float, **fields: Any) -> None:
    bundle = Partition.of_count(4).ranges[0].name
    spec = {
        "scope": "Local", "source": {"name": "c1"}, "action": "Unload", "mode": "Execute",
        "select": {"bundles": [bundle]}, "deadline": "60s", **fields,
    }  # fmt: skip
    one.at(at, one.mediator.create, "unload", spec)


def test_all_units_of_a_bundle_are_at_the_edge_that_owns_it():
    one = fleet(shedding={"strategy": "None"})
    one.run(30.0)
    owners = one.heads["c1-head"].bundles.report()["bundle_owners"]
    assert len(one.owners()) == 80
    assert len(owners) == 4
    assert by_bundle(one) == {bundle: {edge} for bundle, edge in owners.items()}


def test_edges_report_the_loads_of_their_bundles():
    one = fleet(shedding={"strategy": "None"})
    one.run(30.0)
    loads = [each for edge in one.edges.values() for each in reported_bundles(edge.reporter.last)]
    assert sum(each.sessions for each in loads) == 80
    counted = sum(edge.reporter.last["output_rate"] for edge in one.edges.values())
    assert sum(each.output_rate for each in loads) == pytest.approx(counted, rel=0.05)


@pytest.mark.parametrize("way", ["Transfer", "Lookup"])
def test_splits_and_unloads_deliver_all_once(way):
    one = fleet(unload=way, split={"maxTopics": 3})
    one.run(ENDS_AT + 60.0)
    assert len(one.heads["c1-head"].bundles.partition) > 4, "bundles were split"
    assert one.mediator.moved() > 10
    assert one.counts.delivered == 2 * one.counts.published
    assert not one.handovers.moving
    assert not one.handovers.replays.missing
    assert not [each.reason for each in sessions(one) if each.reason == "FaultyPlan"]
    assert one.heads["c1-head"].bundles.report()["bundle_owners"] == {
        bundle: min(edges) for bundle, edges in by_bundle(one).items() if len(edges) == 1
    }


@pytest.mark.parametrize(("way", "trips"), [("Transfer", 2), ("Lookup", 4)])
def test_the_pause_of_an_unload_is_the_time_of_its_messages(way, trips):
    """By hand-over END and GO lie in it; by lookup MOVED, two trips to the head, the resume and the head's link."""
    one = fleet(unload=way, shedding={"strategy": "None"})
    target = {"target": {"name": "e12"}} if way == "Transfer" else {}
    one.run(20.0)
    owner = one.heads["c1-head"].bundles.owners[Partition.of_count(4).ranges[0]]
    if way == "Transfer":
        target = {"target": {"name": "e11" if owner == "e12" else "e12"}}
    unload(one, 20.0, **target)
    one.run(70.0)
    (row,) = one.pauses.rows().values()
    assert row["count"] > 10
    assert row["longest_seconds"] == pytest.approx(trips * CLIENT_SECONDS, abs=0.004)


def test_the_same_seed_gives_the_same_run():
    def moved(seed: int) -> list[tuple[str, str, int]]:
        one = fleet(seed=seed, split={"maxTopics": 3})
        one.run(60.0)
        return [(each.name, each.reason, each.counts()["moved"]) for each in sessions(one)]

    assert moved(1) == moved(1)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("way", ["Transfer", "Lookup"])
@pytest.mark.parametrize("leaves_at", [19.53 + 0.004 * step for step in range(16)])
def test_units_that_leave_in_the_middle_of_an_unload_are_gone(way, leaves_at):
    one = fleet(unload=way, shedding={"strategy": "None"})
    one.run(19.0)
    owner = one.heads["c1-head"].bundles.owners[Partition.of_count(4).ranges[0]]
    target = {"target": {"name": "e11" if owner == "e12" else "e12"}} if way == "Transfer" else {}
    unload(one, 19.5, **target)
    for unit in one.traffic.subscribers:
        one.at(leaves_at, one.applications.leave, unit)
    one.run(60.0)
    assert one.owners() == {}
    assert not one.handovers.moving
    assert not one.handovers.replays.missing
    for edge in one.edges.values():
        assert edge.members == edge.held == 0
        assert not edge.attachments.by_subscriber
        assert one.heads["c1-head"].routed[edge.name] == 0
    assert all(not head.coordinator.sessions for head in one.heads.values())


def test_bundles_begin_at_the_edges_that_units_name():
    """As in a World of a running fleet: each bundle is owned by the edge that serves most of its units."""
    one = fleet(shedding={"strategy": "None"})
    edges = sorted(one.edges)
    homes = {bundle.name: edges[number % 2] for number, bundle in enumerate(Partition.of_count(4).ranges)}
    parted = Partition.of_count(4)
    units = divided(one.traffic, {"c1": "topic"}).subscribers
    placed = [replace(each, prefer=homes[parted.range_of(hash_of_unit(each.name) or 0).name]) for each in units]
    again = QueueingFleet(
        one.resources, Traffic(one.traffic.publishers, placed), links=LinkDelays(0.001, CLIENT_SECONDS)
    )
    again.run(10.0)
    assert {bundle: sorted(some) for bundle, some in by_bundle(again).items()} == {b: [homes[b]] for b in homes}
