"""Since when the container of a broker is another one."""

import pytest
from tests.operator.world import World

from plimsoll.operator.names import Object
from plimsoll.operator.reconcile.container_ages import ContainerAges


@pytest.fixture
def world() -> World:
    found = World()
    found.settle()
    return found


def container(world: World, broker: str) -> Object:
    (found,) = world.objects["Pod", f"{broker}-0"]["status"]["containerStatuses"]
    return found


def test_the_first_container_of_a_broker_has_none_before_it(world: World):
    ages = ContainerAges()
    assert set(ages.look(world.observed(), 100.0).values()) == {float("inf")}
    assert ages.look(world.observed(), 101.0)["edge-0"] == float("inf")


def test_another_container_counts_from_when_it_was_seen(world: World):
    ages = ContainerAges()
    ages.look(world.observed(), 100.0)
    container(world, "edge-0")["restartCount"] = 1
    found = ages.look(world.observed(), 101.0)
    assert (found["edge-0"], found["edge-1"]) == (0.0, float("inf"))
    assert ages.look(world.observed(), 104.5)["edge-0"] == 3.5


def test_another_pod_counts_too_and_its_start_is_not_that_of_the_one_before(world: World):
    ages = ContainerAges()
    ages.look(world.observed(), 100.0)
    pod = world.objects.pop(("Pod", "edge-0-0"))
    ages.look(world.observed(), 101.0)
    world.objects["Pod", "edge-0-0"] = {**pod, "metadata": {**pod["metadata"], "uid": "another"}}
    running = container(world, "edge-0").pop("state")
    ages.look(world.observed(), 102.0)
    container(world, "edge-0")["state"] = running
    assert ages.look(world.observed(), 103.0)["edge-0"] == 0.0
