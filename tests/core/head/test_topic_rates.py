"""Rates of topics at a head, summed up over their publishers."""

from plimsoll.core.head.topic_rates import TopicRates
from plimsoll.core.policies.model.publisher_load import PublisherTopicLoad


def test_publishers_of_one_topic_are_summed_up_and_others_left_out():
    found = TopicRates()
    found.look([PublisherTopicLoad("p", 1, 10.0), PublisherTopicLoad("q", 1, 5.0), PublisherTopicLoad("p", None, 9.0)])
    found.look([PublisherTopicLoad("p", 1, 20.0)])
    assert found.history == {1: (15.0, 20.0)}
    found.clear()
    assert found.history == {}
