"""Rates of topics at a head, summed up over their publishers."""

import math

from plimsoll.core.head.topic_rates import TOLD_AT_MOST, TopicRates, heard_rates, told_rates
from plimsoll.core.policies.model.publisher_load import PublisherTopicLoad


def test_publishers_of_one_topic_are_summed_up_and_others_left_out():
    found = TopicRates()
    found.look([PublisherTopicLoad("p", 1, 10.0), PublisherTopicLoad("q", 1, 5.0), PublisherTopicLoad("p", None, 9.0)])
    found.look([PublisherTopicLoad("p", 1, 20.0)])
    assert found.history == {1: (15.0, 20.0)}
    found.clear()
    assert found.history == {}


def test_what_is_published_elsewhere_counts_as_well():
    found = TopicRates()
    found.elsewhere = {1: 2.0, 2: 3.0}
    found.look([PublisherTopicLoad("p", 1, 10.0)])
    assert (found.history, found.own) == ({1: (12.0,), 2: (3.0,)}, {1: 10.0})


def test_a_message_has_the_busiest_topics_and_rates_that_cannot_be_are_left_out():
    told = told_rates({topic: float(topic) for topic in range(1000)})
    assert (len(told), told[0]) == (TOLD_AT_MOST, (999, 999.0))
    assert told_rates({1: 0.0}) == []
    assert heard_rates([(1, math.nan), (2, -1.0), (3, math.inf), (4, 5.0)]) == {4: 5.0}
    assert len(heard_rates((topic, 1.0) for topic in range(1000))) == TOLD_AT_MOST
