"""Names, times and faults of the traffic that a World describes."""

import pytest

from plimsoll.core.spec import SourceDocument, parse
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
