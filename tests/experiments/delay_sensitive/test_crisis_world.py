"""Tables V and VI: what the edges are to send before and after the burst."""

from __future__ import annotations

import pytest

from plimsoll.core.protocol.messages.delivery_prefix import PREFIX_BYTES
from plimsoll.core.protocol.topic_units import topic_hash
from plimsoll.demo import crisis_tables as tables
from plimsoll.experiments.delay_sensitive import crisis_world as world
from plimsoll.simulator.queueing.publications import publication_bytes


def megabits(edge: str, at: float) -> float:
    """What the topics of an edge are to bring it."""
    traffic = world.traffic(1, tables.GIVEN, world.CrisisTimes())
    found = 0.0
    for publisher in traffic.publishers:
        attributes = publisher.contents[0]
        number = tables.number_of(str(attributes["topic"]))
        if tables.GIVEN[number] == edge:
            size = publication_bytes(publisher, attributes, publisher.payload_bytes) + PREFIX_BYTES
            found += 8 * size * publisher.rate(at) * tables.TOPICS[number].subscribers / 1e6
    return found


@pytest.mark.parametrize(("edge", "before", "after"), [("b1", 5.6, 8.56), ("b0", 3.52, 4.96), ("b2", 3.28, 4.56)])
def test_edges_are_to_send_what_the_tables_say(edge, before, after):
    assert megabits(edge, 29.0) == pytest.approx(before, rel=0.01)
    assert megabits(edge, 31.0) == pytest.approx(after, rel=0.01)


def test_deadlines_are_those_of_the_topics():
    required = world.required(world.CrisisTimes())
    assert required.by_topic[topic_hash("t8")] == 1.1
    assert len(required.by_topic) == len(tables.TOPICS) == 15
    assert sum(topic.subscribers for topic in tables.TOPICS.values()) == len(
        world.traffic(1, {}, world.CrisisTimes()).subscribers
    )


def test_a_policy_in_a_fleet_with_a_faster_clock_has_its_times():
    made = world.resources(world.delay_sensitive(world.CrisisTimes(look_seconds=0.25), 0.25), 0.25)
    policy = made.fleet.spec.defaults.policy
    assert made.fleet.spec.time_scale_percent == 25
    assert policy is not None
    assert policy.delay_sensitive is not None
    assert policy.delay_sensitive.balancing_time.seconds == 1.0


def test_shorter_links_leave_a_message_as_long_in_brokers():
    short = world.CrisisTimes(link_seconds=0.01)
    assert short.links.between_brokers == short.links.to_clients == 0.01
    assert short.latencies[8] - 3 * 0.01 == pytest.approx(1.1 - 0.3)
    assert world.CrisisTimes().latencies == tables.latencies()
