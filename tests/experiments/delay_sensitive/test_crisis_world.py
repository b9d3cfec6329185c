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
    assert world.REQUIRED.by_topic[topic_hash("t8")] == 1.1
    assert len(world.REQUIRED.by_topic) == len(tables.TOPICS) == 15
    assert sum(topic.subscribers for topic in tables.TOPICS.values()) == len(
        world.traffic(1, {}, world.CrisisTimes()).subscribers
    )


def test_the_policy_has_the_times_of_the_text():
    """t_LB is the way of the notification from the head to a subscriber: 0.1 s and 0.1 s."""
    policy = world.resources(world.delay_sensitive()).fleet.spec.defaults.policy
    assert policy is not None
    assert policy.delay_sensitive is not None
    assert policy.delay_sensitive.interval.seconds == 1.0
    assert policy.delay_sensitive.balancing_time.seconds == pytest.approx(0.2)


@pytest.mark.parametrize("link", [0.01, world.CrisisTimes().link_seconds, world.TEXT_LINK_SECONDS])
def test_messages_take_what_they_take_in_the_text_whatever_links_take(link):
    links = world.CrisisTimes(link_seconds=link).links
    assert links.between_brokers == links.to_clients == link
    assert links.from_publishers is not None
    assert links.from_publishers + 2 * link == pytest.approx(0.3)


def test_the_first_run_gives_a_hand_over_what_the_text_gives_a_balancing():
    assert world.MESSAGES_OF_A_HANDOVER * world.CrisisTimes().link_seconds == pytest.approx(world.BALANCING_SECONDS)
