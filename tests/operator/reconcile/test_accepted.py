"""What is stored for the next operator, and what the mediator is shown."""

from tests.operator.world import World

from plimsoll.core.spec.usable import usable_fleet
from plimsoll.operator import names
from plimsoll.operator.objects.manifest import is_leaving, ref
from plimsoll.operator.reconcile import accepted


def settled() -> World:
    world = World()
    world.settle()
    return world


def test_what_is_stored_is_what_was_accepted():
    world = settled()
    found = world.desired().usable
    stored = {accepted_key["kind"]: accepted_key for accepted_key in accepted.stored_accepted(world.observed())}
    assert stored.keys() == {"BrokerFleet", "HardwareProfile", "BrokerCluster"}
    again = usable_fleet([item for item in world.objects.values() if item["kind"] in stored], stored.values())
    assert again.used == found.used


def test_an_entry_that_another_client_has_spoiled_counts_as_none():
    world = settled()
    data = world.objects["ConfigMap", names.ACCEPTED]["data"]
    data |= {"BrokerCluster.east": "{", "BrokerFleet.stocks": '{"uid": 1}', "HardwareProfile.small": "[]"}
    for number, text in enumerate(("1e400", "Infinity", "NaN", "1" * 5000)):
        data[f"EdgeBroker.e{number}"] = f'{{"uid": "u", "generation": {text}, "spec": {{}}}}'
    data["EdgeBroker.deep"] = "[" * 100_000
    left = [item["metadata"]["name"] for item in accepted.stored_accepted(world.observed())]
    assert left == ["large"]
    assert list(accepted.stored_accepted(World().observed())) == []


def test_the_mediator_is_shown_what_is_accepted():
    world = settled()
    world.before = [*world.desired().usable.used.values()]
    edges = world.of("EdgeBroker")
    world.spec("BrokerCluster", "east", policy={"type": "Best"})
    world.put({**world.objects["BrokerCluster", "east"], "metadata": {"name": "west"}})
    shown = {ref(item): item for item in accepted.mediated_objects(world.observed(), world.desired().usable)}
    assert "policy" not in shown["BrokerCluster", "east"]["spec"]
    assert ("BrokerCluster", "west") not in shown
    assert [name for kind, name in shown if kind == "EdgeBroker"] == edges
    del world.objects["HardwareProfile", "small"]
    shown = {ref(item): item for item in accepted.mediated_objects(world.observed(), world.desired().usable)}
    assert shown["HardwareProfile", "small"]["spec"] == {"cpu": "250m", "memory": "64Mi"}


def test_a_cluster_that_leaves_is_shown_with_its_edges():
    world = settled()
    cluster = world.objects["BrokerCluster", "east"]
    cluster["metadata"]["deletionTimestamp"] = world.time
    assert is_leaving(cluster)
    shown = [ref(item) for item in accepted.mediated_objects(world.observed(), world.desired().usable)]
    assert ("BrokerCluster", "east") in shown
    assert ("EdgeBroker", "edge-0") in shown
    cluster["spec"]["policy"] = {"type": "Best"}
    shown = [ref(item) for item in accepted.mediated_objects(world.observed(), world.desired().usable)]
    assert ("BrokerCluster", "east") not in shown
