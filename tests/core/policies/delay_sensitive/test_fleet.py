"""The fleet of a plan: topics whole and in parts, and the loads that moves lead to."""

import pytest
from tests.core.policies.delay_sensitive.small import Topic, sample, unit

from plimsoll.core.policies.delay_sensitive.fleet import deadline_fleet
from plimsoll.core.policies.model.plan import PlanMove
from plimsoll.core.policies.rebalancer import Step

ONE, TWO = Topic(1, 4, rate=10.0, size=100.0), Topic(2, 2, rate=5.0, size=200.0)


def step(topic: Topic, *units: str, source: str = "a", target: str = "b") -> Step:
    return Step((PlanMove(f"{topic.number}#{topic.number:08x}", units, source, target, "why"),))


def units_of(topic: Topic, edge: str = "a") -> list[str]:
    return [unit(edge, topic, number) for number in range(topic.subscribers)]


def test_a_fleet_has_the_units_of_each_topic():
    fleet = deadline_fleet(sample({"a": [ONE, TWO], "b": []}, staying={unit("a", ONE): "moved just now"}))
    served = fleet.served["a"]
    assert sorted(served) == [1, 2]
    assert list(served[1].units) == units_of(ONE)
    assert served[1].key == "1#00000001"
    assert served[1].output_bytes == pytest.approx(4000.0)
    assert served[1].fixed == {unit("a", ONE): "moved just now"}
    assert fleet.served["b"] == {}


def test_a_whole_topic_takes_its_input_along():
    fleet = deadline_fleet(sample({"a": [ONE, TWO], "b": []}, a={"downlink_utilization": 0.5}))
    after = fleet.after(step(ONE, *units_of(ONE)))
    left, taken = after.load("a"), after.load("b")
    assert (left.input_rate, left.output_bytes_per_second) == (pytest.approx(5.0), pytest.approx(2000.0))
    assert left.downlink_utilization == pytest.approx(0.25)
    assert (taken.input_rate, taken.output_bytes_per_second) == (pytest.approx(10.0), pytest.approx(4000.0))
    assert [topic.topic for topic in taken.topics] == [1]
    assert fleet.load("a").output_bytes_per_second == pytest.approx(6000.0)


def test_a_part_of_a_topic_leaves_the_input_where_it_was():
    fleet = deadline_fleet(sample({"a": [ONE], "b": []}))
    after = fleet.after(step(ONE, unit("a", ONE)))
    assert after.load("a").input_rate == pytest.approx(10.0)
    assert after.load("b").input_rate == pytest.approx(10.0)
    assert after.load("a").output_bytes_per_second == pytest.approx(3000.0)
    assert len(after.served["a"][1].units) == 3


def test_units_join_their_topic_at_the_target():
    fleet = deadline_fleet(sample({"a": [ONE], "b": [ONE]}))
    after = fleet.after(step(ONE, *units_of(ONE)))
    assert after.load("b").input_rate == pytest.approx(10.0)
    assert after.load("b").output_bytes_per_second == pytest.approx(8000.0)
    assert len(after.served["b"][1].units) == 8


def test_what_moves_back_changes_nothing():
    fleet = deadline_fleet(sample({"a": [ONE, TWO], "b": []}))
    there = fleet.after(step(ONE, *units_of(ONE)))
    back = there.after(step(ONE, *units_of(ONE), source="b", target="a"))
    assert back.load("a").output_bytes_per_second == pytest.approx(fleet.load("a").output_bytes_per_second)
    assert back.load("b").input_rate == pytest.approx(0.0)


def test_a_topic_that_waits_is_served_faster_once_another_has_left():
    """b1 of the paper: topic 1 leaves 80,000 bytes/s to topic 8, which had 490,000."""
    eight = Topic(8, 7, rate=200.0, size=400.0, required=1.1, depth=100, delivery=175.0)
    one = Topic(1, 8, rate=50.0, size=200.0, required=1.8)
    given = sample({"b1": [one, eight], "b0": []}, 1e6)
    fleet = deadline_fleet(given)
    left = fleet.after(step(one, *units_of(one, "b1"), source="b1", target="b0")).load("b1")
    (topic,) = left.topics
    assert topic.delivery_rate == pytest.approx(175.0 * (1 + 80_000 / 490_000))
