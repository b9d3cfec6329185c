"""What an edge counts of topics, and which of their subscribers is the first to miss its deadline."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.core.edge import remembered_topics
from plimsoll.core.edge import topic_meter as module
from plimsoll.core.edge.attachment import AttachmentState, EdgeAttachment
from plimsoll.core.edge.topic_meter import EdgeTimes, TopicMeter
from plimsoll.core.policies.model.topic_load import TopicLoad, reported_topics
from plimsoll.core.policies.model.topic_requirements import TopicRequirements
from plimsoll.core.predicates import parse
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.topic_units import topic_hash, unit_name
from plimsoll.core.protocol.wire import Info
from plimsoll.core.transport.link import Link, LinkLimits

REQUIRED = TopicRequirements("topic", {topic_hash("a"): 1.1}, 5.0)
TIMES = EdgeTimes(head_seconds=0.1)


def link(round_trip_seconds: float = 0.4) -> Link:
    made = Link(b"c", local=Info("e", "edge", 1), limits=LinkLimits(), initiator=False, new_id=lambda: 1, now=0.0)
    made.round_trip.seconds = round_trip_seconds
    return made


def unit(name: str = "s", topic: str = "a", *, seconds: float = 0.4, required: float = 0.0) -> EdgeAttachment:
    made = EdgeAttachment(unit_name(name, topic_hash(topic)), 1, link(seconds), (1, 2), 1, [])
    made.state = AttachmentState.LIVE
    made.subscriptions = {1: (parse(f"[topic,=,'{topic}']"), 1)}
    if required:
        made.require(1, required)
    return made


def pub(topic: Any, head: str = "h") -> msg.PubOpen:
    return msg.PubOpen(1, head, 1, 1, "p", 1, 1, 0, 0, msg.Body({"topic": topic} if topic is not None else {}))


class Played:
    """An edge with some units, looked at each second; all of `comes` match, all but `waits` have left."""

    def __init__(self, *units: EdgeAttachment, required: TopicRequirements = REQUIRED) -> None:
        self.meter, self.units, self.now = TopicMeter(required, "h", 0.0), units, 0.0
        self.look()

    def look(self, times: EdgeTimes = TIMES, **waits: int) -> dict[str, TopicLoad]:
        self.now += 1.0
        buffered = {one: waits.get(one.subscriber.partition("#")[0], 0) for one in self.units}
        report = self.meter.report(self.units, buffered, times, self.now)
        return {load.text: load for load in reported_topics(report)}

    def publish(self, topic: str, count: int, head: str = "h", size: int = 100) -> None:
        mine = [one for one in self.units if one.subscriber.endswith(unit_name("", topic_hash(topic)))]
        for _ in range(count):
            for one in mine:
                one.matched += 1
            self.meter.note(pub(topic, head), size, len(mine))


def test_a_topic_is_counted_by_second():
    played = Played(unit("s"), unit("t"), unit("u", "b"))
    played.publish("a", 6)
    played.publish("a", 4, head="elsewhere")
    found = played.look()
    a, b = found["a"], found["b"]
    assert (a.subscribers, a.waiting, a.input_rate, a.remote_rate) == (2, 0, 10.0, 4.0)
    assert (a.input_bytes, a.output_rate, a.output_bytes) == (1000.0, 20.0, 2000.0)
    assert (b.subscribers, b.input_rate, b.required_seconds) == (1, 0.0, 5.0)
    assert played.look()["a"].input_rate == 0.0, "each report is of its own interval"


def test_the_paths_of_a_message_are_added_up():
    played = Played(unit("near", seconds=0.1), unit("far", seconds=0.4))
    played.meter.paths.take(
        msg.PublisherPaths("topic", [msg.OriginPath("h", 0.2, 0.0, 0.01, [(topic_hash("a"), 0.15)])]), "topic"
    )
    played.publish("a", 10, size=200)
    found = played.look(EdgeTimes(0.1, 0.003, 100_000.0))["a"]
    assert found.transmission_seconds == pytest.approx(0.15 + 0.1 + 0.2), "publisher, head to edge, and the far one"
    assert found.broker_seconds == pytest.approx(0.01 + 0.003 + 200 / 100_000)
    assert found.allowed_seconds == pytest.approx(1.1 - 0.45 - 0.015)


def test_the_unit_with_the_least_time_left_stands_for_the_topic():
    patient, hasty, full = unit("patient"), unit("hasty", required=0.9), unit("full")
    played = Played(patient, hasty, full)
    played.publish("a", 100)
    assert played.look()["a"].required_seconds == 0.9, "nothing waits: the one that wants it first"
    played.publish("a", 100)
    found = played.look(full=60)["a"]
    assert (found.required_seconds, found.depth, found.waiting) == (1.1, 60, 1), "0.6 s of waiting are more than 0.2"
    assert (found.arrival_rate, found.delivery_rate) == (100.0, 40.0)


def test_a_queue_grows_by_25_a_second_and_crosses_the_papers_threshold_after_four():
    # Tao, Poslad, Bigham 2013, V: topic 8 of b1 after the burst; t_e is 0.8 s, t_LB 0.1 s.
    played = Played(unit(), required=TopicRequirements("topic", {topic_hash("a"): 1.1}))
    crossed = []
    for second in range(1, 6):
        played.publish("a", 200)
        found = played.look(s=25 * second)["a"]
        assert found.allowed_seconds == pytest.approx(0.8)
        assert (found.arrival_rate, found.delivery_rate) == (200.0, 175.0)
        assert found.depth_threshold(0.1) == pytest.approx(97.5)
        crossed.append(found.depth > found.depth_threshold(0.1))
    assert crossed == [False, False, False, True, True]


def test_an_empty_queue_delivers_what_comes():
    played = Played(unit())
    for count in (100, 300, 0):
        played.publish("a", count)
        found = played.look()["a"]
        assert (found.arrival_rate, found.delivery_rate) == (count, count)


def test_deliveries_that_waited_longer_than_they_may_are_late():
    played = Played(unit(), unit("t"), required=TopicRequirements("topic", {}, 0.8))
    played.publish("a", 200)
    assert played.look()["a"].late == 0
    played.publish("a", 200)
    assert played.look(s=100)["a"].late == 0, "waits of 0.5 s where 0.5 are allowed"
    played.publish("a", 200)
    late = played.look(s=200)["a"].late
    assert 50 < late <= 100, "waits rise from 0.5 to 1 s: they are late nearly all of the interval, for one unit"


def test_a_topic_that_no_path_can_keep_is_late_though_nothing_waits():
    played = Played(unit(), required=TopicRequirements("topic", {}, 0.2))
    played.publish("a", 7)
    found = played.look()["a"]
    assert found.depth_threshold(0.1) < 0
    assert found.late == 7


def test_one_and_true_are_two_topics():
    played = Played(unit("s", "1"), unit("t", "true"))
    for topic in (1, True, 1.0, True, 1):
        played.meter.note(pub(topic), 1, 0)
    assert {text: load.input_rate for text, load in played.look().items()} == {"1": 3.0, "true": 2.0}


def test_memory_is_bounded_whatever_is_published(monkeypatch: Any):
    monkeypatch.setattr(remembered_topics, "REMEMBERED_TOPICS", 10)
    monkeypatch.setattr(module, "ORIGINS_OF_A_TOPIC", 10)
    played = Played(unit())
    for number in range(1000):
        played.meter.note(pub(f"t{number}", f"h{number}"), 1, 0)
        played.meter.note(pub("x" * 1000 + str(number)), 1, 0)
        played.meter.note(pub("a", f"h{number}"), 1, 0)
    assert len(played.meter._of_topic) <= 10
    assert set(played.meter.topics) == {topic_hash("a")}
    assert all(len(counts.origins) <= 11 for counts in (*played.meter.topics.values(), played.meter._none))


def test_with_more_origins_than_are_remembered_all_heads_count(monkeypatch: Any):
    monkeypatch.setattr(module, "ORIGINS_OF_A_TOPIC", 2)
    played = Played(unit())
    paths = [msg.OriginPath(f"h{number}", 0.0, float(number), 0.0) for number in range(6)]
    played.meter.paths.take(msg.PublisherPaths("topic", paths), "topic")
    for number in range(4):
        played.publish("a", 1, head=f"h{number}")
    assert played.look()["a"].transmission_seconds == pytest.approx(5.0 + 0.1 + 0.2)


def test_topics_end_with_their_last_unit():
    played = Played(unit(), unit("t", "b"))
    played.units = played.units[:1]
    assert set(played.look()) == {"a"}
    assert set(played.meter.topics) == {topic_hash("a")}
    assert set(played.meter._texts) == {topic_hash("a")}


def test_a_subscriber_without_topics_and_publications_without_one_count_nothing():
    whole = EdgeAttachment("whole", 1, link(), (1, 2), 1, [])
    played = Played(whole)
    played.meter.note(pub(None), 100, 1)
    assert played.look() == {}
