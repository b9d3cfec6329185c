"""Bundles that come while applications run: those that ask for topics are divided, a few at a time, each asked once."""

from __future__ import annotations

import json
from typing import Any

from tests.core.client.bundled import EDGES, POLICY, Bundled

from plimsoll.core.edge.undivided import AT_ONCE
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.topic_units import hash_of_unit, topic_hash

NONE: dict[str, Any] = {"type": "Padres"}


def world_of(count: int) -> Bundled:
    """A cluster without bundles, and subscribers of one topic and a price each."""
    world = Bundled(policy=NONE)
    for number in range(count):
        world.subscribe(f"s{number:03}", "t0", "t1")
    return world


def set_policy(world: Bundled, policy: dict[str, Any]) -> None:
    world.mediator.say_control("h", msg.ClusterPolicy(json.dumps(policy)))
    world.run(0.2)


def served(world: Bundled) -> list[str]:
    return sorted(name for edge in EDGES for name in world.fleet.edge(edge).attachments.by_subscriber)


def test_subscribers_of_topics_are_divided_when_bundles_come_and_lose_nothing():
    world = world_of(12)
    assert served(world) == [f"s{number:03}" for number in range(12)]
    for _ in range(5):
        world.publish("t0", "t1")
        world.run(0.02)
    set_policy(world, POLICY)
    for _ in range(40):
        world.publish("t0", "t1")
        world.run(0.1)
    world.check()
    assert all(hash_of_unit(name) is not None for name in served(world))
    assert len(served(world)) == 24
    assert all(not world.gaps(name) for name in world.since)
    bundles = {world.partition.range_of(topic_hash(topic)) for topic in ("t0", "t1")}
    assert all(len(world.places(bundle)) == 1 for bundle in bundles), "one edge serves a topic"


def test_a_few_at_a_time():
    world = world_of(3 * AT_ONCE)
    edge = world.fleet.edge(max(EDGES, key=lambda name: len(world.fleet.edge(name).attachments.by_subscriber)))
    edge.undivided.begin("topic", [f"s{number:03}" for number in range(3 * AT_ONCE)])
    some = [len(list(edge.undivided.some(edge.attachments.by_subscriber))) for _ in range(4)]
    assert max(some) <= AT_ONCE
    assert sum(some) == len(edge.attachments.by_subscriber)
    assert some[-1] == 0, "each is asked once"


def test_who_asks_for_no_topic_stays():
    world = Bundled(policy=NONE)
    world.client.subscriber("whole").subscribe("[price,>,0]")
    world.run(until=lambda: world.client.subscribers["whole"].is_acknowledged)
    set_policy(world, POLICY)
    world.run(3.0)
    assert served(world) == ["whole"]
    assert world.client.subscribers["whole"].statistics()["redirects"] == 0


def test_units_stay_units_when_bundles_go():
    world = Bundled()
    world.subscribe("s", "t0", "t1")
    set_policy(world, NONE)
    world.publish("t0", "t1")
    world.check()
    assert len(served(world)) == 2
    assert world.fleet.head().bundles.owners == {}
    assert not world.gaps("s")
