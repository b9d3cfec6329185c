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
