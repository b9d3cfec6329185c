"""What status says of specifications that are accepted, that are served as they were, and that are not served."""

from typing import Any

from tests.operator.world import World

from plimsoll.core.spec.usable import usable_fleet
from plimsoll.operator import spec_faults
from plimsoll.operator.names import Object
from plimsoll.operator.objects.manifest import Ref, ref
from plimsoll.operator.spec_faults import SpecFaults


def settled() -> World:
    world = World()
    world.settle()
    return world


def looked(world: World) -> SpecFaults:
    custom = [item for item in world.objects.values() if item["apiVersion"].startswith("plimsoll.dev")]
    found = usable_fleet(custom, world.before)
    judged = {ref(item): int(item["metadata"]["generation"]) for item in custom}
    used = {key: int(item["metadata"]["generation"]) for key, item in found.used.items()}
    return SpecFaults(found=found, judged=judged, acted=used)


def condition(told: dict[str, Any], type_: str) -> tuple[str, str, int]:
    (one,) = [each for each in told["conditions"] if each["type"] == type_]
    return one["status"], one["reason"], one["observedGeneration"]


def by_ref(found: Any) -> dict[Ref, Object]:
    return {ref(item): told for item, told in found}


def test_the_generation_of_a_status_is_the_one_that_is_served():
    world = settled()
    world.before = [*looked(world).found.used.values()]
    world.spec("BrokerCluster", "east", head={"profile": "absent"})
    specs = looked(world)
    item = world.objects["BrokerCluster", "east"]
    served = specs.served(item)
    assert served is not None
    assert (item["metadata"]["generation"], served["metadata"]["generation"]) == (2, 1)
    told = spec_faults.with_accepted(item, {"observedGeneration": 1, "conditions": []}, specs, world.time)
    assert told["observedGeneration"] == 1
    assert condition(told, "Accepted") == ("False", "InvalidSpec", 2)
    assert "The last accepted version stays in force." in told["conditions"][0]["message"]


def test_an_object_that_was_never_accepted_has_no_observed_generation():
    world = World()
    world.spec("BrokerCluster", "east", head={"profile": "absent"})
    specs = looked(world)
    assert specs.served(world.objects["BrokerCluster", "east"]) is None
    told = by_ref(spec_faults.dropped_statuses(world.observed(), specs, world.time))
    assert told.keys() == {("BrokerCluster", "east")}
    east = told["BrokerCluster", "east"]
    assert "observedGeneration" not in east
    assert condition(east, "Ready") == condition(east, "Accepted") == ("False", "InvalidSpec", 2)
    assert condition(east, "Degraded") == ("True", "InvalidSpec", 2)


def test_an_object_that_was_not_looked_at_yet_is_not_spoken_of():
    world = settled()
    specs = looked(world)
    new = {**world.objects["BrokerCluster", "east"], "metadata": {"name": "west", "generation": 1}}
    assert specs.served(new) is None


def test_edges_of_a_cluster_that_is_not_served_say_so_by_its_name():
    world = settled()
    world.spec("BrokerCluster", "east", head={"profile": "absent"})
    found = looked(world).condition(world.objects["EdgeBroker", "edge-0"])
    assert (found.status, found.reason) == ("False", "DependsOnFault")
    assert found.message.startswith("BrokerCluster/east has a fault")


def test_a_profile_that_is_mended_is_no_longer_degraded():
    world = settled()
    degraded = {"type": "Degraded", "status": "True", "reason": "InvalidSpec", "lastTransitionTime": world.time}
    told = spec_faults.with_accepted(
        world.objects["HardwareProfile", "small"], {"conditions": [degraded]}, looked(world), world.time
    )
    assert condition(told, "Degraded")[:2] == ("False", "AsExpected")


def test_without_a_fleet_clusters_and_edges_say_so():
    world = settled()
    del world.objects["BrokerFleet", "stocks"]
    told = by_ref(spec_faults.fleetless_statuses(world.observed(), looked(world), "create one", world.time))
    assert {kind for kind, _ in told} == {"BrokerCluster", "EdgeBroker"}
    assert {condition(each, "Ready")[:2] for each in told.values()} == {("False", "NoFleet")}
