"""Subscribers of topics are divided as the product's client library divides them; others stay whole."""

import pytest
from tests.simulator.queueing.conftest import fleet_of

from plimsoll.core.predicates import parse
from plimsoll.core.protocol.topic_units import topic_hash, unit_name
from plimsoll.core.spec.broker_config import policy_of
from plimsoll.simulator.queueing.subscriber_units import divided, topic_attributes
from plimsoll.simulator.queueing.traffic import Traffic, TrafficSubscriber


def texts_of(*subscriptions: str, attribute: str = "topic") -> dict[str, tuple[str, ...]]:
    one = TrafficSubscriber("app", "c1", subscriptions, 3.0, 9.0, prefer="e11")
    units = divided(Traffic([], [one]), {"c1": attribute}).subscribers
    assert all((each.joins_at, each.leaves_at, each.cluster) == (3.0, 9.0, "c1") for each in units)
    return {each.name: each.subscriptions for each in units}


def test_a_unit_asks_for_the_topics_of_one_hash():
    a, b = (unit_name("app", topic_hash(each)) for each in "ab")
    found = texts_of("[topic,in,('a','b')],[high,>,20]", "[topic,=,'a'],[low,<,3]")
    assert found.keys() == {a, b}
    assert found[b] == (str(parse("[topic,=,'b'],[high,>,20]")),)
    assert len(found[a]) == 2


def test_what_asks_for_no_topic_stays_whole():
    found = texts_of("[high,>,20]", "[topic,=,'a']")
    assert found["app"] == ("[high,>,20]",)
    assert len(found) == 2
    assert texts_of("[high,>,20]") == {"app": ("[high,>,20]",)}
    assert texts_of("[topic,=,'a']", attribute="") == {"app": ("[topic,=,'a']",)}


def test_two_units_of_one_name_are_refused():
    twice = [
        TrafficSubscriber("app", "c1", ("[topic,=,'a']",)),
        TrafficSubscriber(unit_name("app", topic_hash("a")), "c1", ("[n,=,1]",)),
    ]
    with pytest.raises(ValueError, match="give the subscriber another name"):
        divided(Traffic([], twice), {"c1": "topic"})


def test_only_clusters_of_pulsar_have_topics():
    policies = {
        name: policy_of(fleet_of(policy), "c1")
        for name, policy in (
            ("c1", {"type": "Pulsar", "pulsar": {"topicAttribute": "symbol"}}), ("c2", {"type": "Padres"})
        )
    }  # fmt: skip
    assert topic_attributes({name: policy for name, policy in policies.items() if policy is not None}) == {
        "c1": "symbol"
    }
