"""A World is read like a custom resource: every fault is located and says what to do."""

import pytest

from plimsoll.core.spec import InvalidResourcesError
from plimsoll.simulator.worlds.world_spec import parse_world


def test_a_world_is_read_with_its_defaults(world):
    spec = parse_world(world)
    assert spec.duration.seconds == 60
    assert spec.links.to_clients.seconds == pytest.approx(0.001)
    assert spec.subscribers[0].count == 10


@pytest.mark.parametrize(
    ("where", "value", "said"),
    [
        ("publications", ["{x: 1}"], "JSON"),
        ("publications", ["[1]"], "map"),
        ("rates", [{"perSecond": -1}], "perSecond"),
        ("count", 0, "count"),
        ("colour", "red", "colour"),
    ],
)
def test_a_fault_is_named(world, where, value, said):
    world["publishers"][0][where] = value
    with pytest.raises(InvalidResourcesError, match=said):
        parse_world(world)


def test_a_subscription_is_checked(world):
    world["subscribers"][0]["subscriptions"] = ["[x,=,"]
    with pytest.raises(InvalidResourcesError, match="subscriptions"):
        parse_world(world)


def test_names_are_any_text(world):
    world["publishers"][0]["name"] = "x\n- \x1b[31m"
    assert parse_world(world).publishers[0].name == "x\n- \x1b[31m"
    world["publishers"][0]["name"] = ""
    with pytest.raises(InvalidResourcesError, match="name"):
        parse_world(world)


def test_what_was_measured_may_stand_beside_it(world):
    broker = {"name": "small", "inputUtilizationPercent": 67, "subscribers": 60}
    world["measured"] = {"at": "2026-11-23T22:47:13Z", "brokers": [broker]}
    measured = parse_world(world).measured
    assert measured is not None
    assert (measured.brokers[0].input_utilization_percent, measured.brokers[0].deliveries_per_second) == (67, 0)
    world["measured"]["brokers"][0]["colour"] = "red"
    with pytest.raises(InvalidResourcesError, match="colour"):
        parse_world(world)
