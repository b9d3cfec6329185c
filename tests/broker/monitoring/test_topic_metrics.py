"""Metrics of topics: as many series as the policy names topics, and one for all others."""

from __future__ import annotations

from plimsoll.broker.monitoring.topic_metrics import OTHERS, topic_metrics
from plimsoll.core.policies.model.topic_load import TopicLoad, topic_report

NAMED = {7: "fast"}


def series(loads: list[TopicLoad], late: dict[int, int] | None = None) -> dict[tuple[str, str], float]:
    return {
        (sample.name, sample.labels["topic"]): sample.value
        for family in topic_metrics(topic_report(loads), NAMED, late or {})
        for sample in family.samples
    }


def test_topics_that_the_policy_does_not_name_share_one_series():
    many = [TopicLoad(100 + n, f"t{n}", depth=n, delivery_rate=10.0, required_seconds=60.0) for n in range(100)]
    found = series([*many, TopicLoad(7, "fast", required_seconds=1.0)])
    assert {topic for _, topic in found} == {"fast", OTHERS}
    assert found["plimsoll_broker_topic_depth", OTHERS] == 99, "the one with the least time left stands for all"
    assert found["plimsoll_broker_topic_time_left_seconds", OTHERS] == 60.0 - 9.9


def test_a_topic_without_a_deadline_has_a_depth_and_no_time():
    assert series([TopicLoad(7, "fast", depth=3)]) == {("plimsoll_broker_topic_depth", "fast"): 3}


def test_a_queue_that_does_not_move_is_late_by_any_measure():
    found = series([TopicLoad(7, "fast", depth=3, required_seconds=1.0)])
    assert found["plimsoll_broker_topic_time_left_seconds", "fast"] < -1000


def test_without_topics_there_are_no_series():
    assert series([]) == {}
    assert series([], {0: 2, 7: 1}) == {
        ("plimsoll_broker_topic_late_deliveries_total", OTHERS): 2,
        ("plimsoll_broker_topic_late_deliveries_total", "fast"): 1,
    }
