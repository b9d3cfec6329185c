"""Rates of the next look."""

from dataclasses import replace

import pytest

from plimsoll.core.policies.delay_sensitive.prediction import (
    TOPICS_REMEMBERED,
    Rates,
    depth_of,
    depth_threshold,
    is_serious,
    next_rates,
    rates_of,
    remembered_rates,
)
from plimsoll.core.policies.model.load import BrokerLoad
from plimsoll.core.policies.model.topic_load import TopicLoad

EIGHT = TopicLoad(8, "8", arrival_rate=200.0, delivery_rate=175.0, required_seconds=1.1, transmission_seconds=0.3)


def test_steady_rates_go_on():
    assert next_rates(EIGHT, Rates(200.0, 175.0)) == next_rates(EIGHT, None) == Rates(200.0, 175.0)
    assert depth_threshold(EIGHT, None, 0.1) == pytest.approx(97.5)


def test_the_queue_grows_until_the_next_look():
    """25 a second: the text's looks are a second apart, and half as far apart they leave room for 12.5 more."""
    assert depth_threshold(EIGHT, None, 0.1, 0.5) == pytest.approx(97.5 + 12.5)
    assert depth_threshold(EIGHT, None, 0.1, 4.0) == pytest.approx(97.5 - 75.0)


def test_rates_go_on_as_between_the_last_two_looks():
    assert next_rates(EIGHT, Rates(180.0, 185.0)) == Rates(220.0, 165.0)
    assert depth_threshold(EIGHT, Rates(180.0, 185.0), 0.1) == pytest.approx(0.7 * 165 - 55)


def test_a_prediction_has_bounds():
    assert next_rates(EIGHT, Rates(1e6, 0.0)) == Rates(100.0, 350.0)


def test_memory_has_the_rates_of_topics_with_a_deadline():
    load = BrokerLoad(name="b", topics=(EIGHT, TopicLoad(9, arrival_rate=5.0)))
    memory = {"rates": {"b": remembered_rates(load)}}
    assert memory == {"rates": {"b": {"00000008": [200.0, 175.0, 0]}}}
    assert rates_of(memory, "b", 8) == Rates(200.0, 175.0)
    assert depth_of(memory, "b", 8) == 0.0
    assert rates_of(memory, "b", 9) is None
    assert depth_of(memory, "b", 9) is None
    assert rates_of(memory, "c", 8) is None


@pytest.mark.parametrize(
    "memory",
    [{}, {"rates": 1}, {"rates": {"b": 2}}, {"rates": {"b": {"00000008": "xy"}}}, {"rates": {"b": {"00000008": [1]}}}],
)
def test_memory_of_another_version_is_none(memory):
    assert rates_of(memory, "b", 8) is None


def test_memory_is_bounded():
    load = BrokerLoad(name="b", topics=tuple(TopicLoad(n, required_seconds=1.0, depth=n) for n in range(200)))
    found = remembered_rates(load)
    assert len(found) == TOPICS_REMEMBERED
    assert f"{199:08x}" in found


@pytest.mark.parametrize(
    ("depth", "before", "delivery", "serious"),
    [
        (0, None, 0.0, False),
        (15, None, 175.0, False),
        (17, None, 175.0, True),
        (100, 75.0, 175.0, True),
        (100, 101.0, 175.0, False),
        (100, 75.0, 200.0, False),
        (161, 162.0, 200.0, True),
    ],
)
def test_a_queue_is_serious_that_grows_or_is_too_late_anyway(depth, before, delivery, serious):
    """0.8 s may be waited: of a queue that gets shorter the last of 160 messages is in time, and the next is not."""
    assert is_serious(replace(EIGHT, depth=depth), Rates(200.0, delivery), before) is serious


def test_a_message_of_a_topic_that_has_just_come_is_no_danger_before_a_rate_is_known():
    """Its threshold is 0 then: in one run of the experiment five topics moved for one message that might wait 100 s."""
    new = TopicLoad(15, "15", depth=1, required_seconds=100.0, transmission_seconds=0.03)
    assert depth_threshold(new, None, 0.1) == 0.0 < new.depth
    assert not is_serious(new, Rates(0.0, 0.0), None)
    assert is_serious(replace(new, depth=150), Rates(10.0, 0.0), None), "what comes and does not go is one"
