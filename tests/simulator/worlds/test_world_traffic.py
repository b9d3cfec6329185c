"""Names, times and faults of the traffic that a World describes."""

import pytest

from plimsoll.core.protocol.topic_units import topic_hash
from plimsoll.core.spec import SourceDocument, parse
from plimsoll.simulator.queueing.subscriber_units import divided
from plimsoll.simulator.worlds.world_spec import parse_world
from plimsoll.simulator.worlds.world_traffic import faults, traffic_of


def test_several_have_numbers_and_join_evenly(world):
    traffic = traffic_of(parse_world(world), 1)
    assert [each.name for each in traffic.publishers] == ["p-1", "p-2"]
    assert traffic.subscribers[0].name == "s-01"
    assert [each.joins_at for each in traffic.subscribers] == [0.5 * n for n in range(10)]
    assert all(0.0 <= each.first_seconds < 0.05 for each in traffic.publishers)


def test_one_keeps_its_name(world):
    world["subscribers"][0]["count"] = 1
    assert [each.name for each in traffic_of(parse_world(world), 1).subscribers] == ["s"]


def test_the_same_seed_gives_the_same_traffic(world):
    spec = parse_world(world)
    assert traffic_of(spec, 1) == traffic_of(spec, 1)
    assert traffic_of(spec, 1) != traffic_of(spec, 2)


@pytest.mark.parametrize(
    ("group", "field", "value", "said"),
    [
        ("subscribers", "edge", "e9", "e9 is no edge of cluster c1"),
        ("subscribers", "cluster", "c9", "there is no BrokerCluster c9"),
        ("publishers", "cluster", "c9", "there is no BrokerCluster c9"),
        ("publishers", "rates", [{"at": "5s", "perSecond": 1}, {"perSecond": 2}], "ascending order"),
        ("publishers", "publications", [], "the list is empty"),
    ],
)
def test_what_does_not_fit_the_fleet_is_said(world, documents, group, field, value, said):
    world[group][0][field] = value
    resources = parse([SourceDocument(each, "<test>") for each in documents])
    assert any(said in each for each in faults(parse_world(world), resources))


def test_a_name_is_used_once(world, documents):
    world["subscribers"].append({**world["subscribers"][0], "name": "s-01", "count": 1})
    resources = parse([SourceDocument(each, "<test>") for each in documents])
    assert faults(parse_world(world), resources) == ["two subscribers are named s-01; give one of them another name"]


def with_topics(world):
    """Two hot topics and eight others; ten subscribers that take three each, in turn."""
    world["topicAttribute"] = "symbol"
    world["publishers"][0] = {
        "name": "p", "cluster": "c1", "publications": ['{"class": "STOCK"}'],
        "topics": [
            {"name": "hot", "count": 2, "rates": [{"perSecond": 8}, {"at": "30s", "perSecond": 16}]},
            {"name": "cold", "count": 8, "rates": [{"perSecond": 1}]},
        ],
    }  # fmt: skip
    own = {"topics": [{"name": "hot", "count": 2}, {"name": "cold", "count": 8}], "topicsEach": 3}
    del world["subscribers"][0]["subscriptions"]
    world["subscribers"][0] |= own
    return world


def test_each_topic_is_published_at_its_own_rates(world):
    traffic = traffic_of(parse_world(with_topics(world)), 1)
    assert [each.name for each in traffic.publishers[:3]] == ["p/hot-1", "p/hot-2", "p/cold-1"]
    assert traffic.publishers[0].contents == ({"class": "STOCK", "symbol": "hot-1"},)
    assert [step.per_second for step in traffic.publishers[1].rates] == [8.0, 16.0]
    assert len(traffic.publishers) == 10


def test_subscribers_take_topics_in_turn(world):
    subscribers = traffic_of(parse_world(with_topics(world)), 1).subscribers
    assert subscribers[0].subscriptions == ("[symbol,=,'hot-1']", "[symbol,=,'hot-2']", "[symbol,=,'cold-1']")
    assert subscribers[3].subscriptions == ("[symbol,=,'cold-8']", "[symbol,=,'hot-1']", "[symbol,=,'hot-2']")
    del world["subscribers"][0]["topicsEach"]
    assert len(traffic_of(parse_world(world), 1).subscribers[0].subscriptions) == 10


def without_attribute(world):
    del world["topicAttribute"]


def with_rates(world):
    world["publishers"][0]["rates"] = [{"perSecond": 1}]


def with_too_many(world):
    world["publishers"][0]["count"] = 2000


def with_unknown_topic(world):
    world["subscribers"][0]["topics"][1]["count"] = 9


def with_too_many_each(world):
    world["subscribers"][0]["topicsEach"] = 11


def with_times_out_of_order(world):
    world["publishers"][0]["topics"][0]["rates"].reverse()


def with_the_name_of_a_unit(world):
    name = f"s-01#{topic_hash('hot-1'):08x}"
    world["subscribers"].append({"name": name, "cluster": "c1", "subscriptions": ["[n,=,1]"]})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (without_attribute, "publishers p: topics need an attribute; give the World its topicAttribute"),
        (with_rates, "publishers p: rates and topics are both given; a topic has rates of its own"),
        (with_too_many, "they have 20,000 topics together"),
        (with_unknown_topic, "subscribers s: no publisher has the topic cold-9; it is one of 1"),
        (with_too_many_each, "subscribers s: topicsEach is 11, and topics are 10"),
        (with_times_out_of_order, "publishers p: rates of topic hot need times in ascending order, at least one"),
        (with_the_name_of_a_unit, "give the subscriber another name"),
    ],
)
def test_topics_that_do_not_fit_are_said(world, documents, change, said):
    resources = parse([SourceDocument(each, "<test>") for each in documents])
    assert faults(parse_world(with_topics(world)), resources) == []
    change(world)
    assert any(said in each for each in faults(parse_world(world), resources))


def test_a_unit_of_a_running_fleet_stays_what_it_is(world, documents):
    name = f"app#{topic_hash('hot-1'):08x}"
    spec = {"name": name, "cluster": "c1", "topics": [{"name": "hot-1"}]}
    with_topics(world)["subscribers"].append(spec)
    resources = parse([SourceDocument(each, "<test>") for each in documents])
    assert faults(parse_world(world), resources) == []
    units = divided(traffic_of(parse_world(world), 1), {"c1": "symbol"}).subscribers
    assert units[-1].name == name
