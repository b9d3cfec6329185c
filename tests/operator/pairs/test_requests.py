"""When the standby of a head is to lead: its pod is as specified, and that of the head is not, or is to go."""

from __future__ import annotations

import copy

import pytest
from tests.operator.world import FLEET, World

from plimsoll.core.head.standby.leadership import HeadLeadership, leadership_status
from plimsoll.operator import names
from plimsoll.operator.pairs.requests import PairRequest, is_pair_pod, pair_requests
from plimsoll.operator.security import keys

HEAD, OTHER = ("Pod", "east-head-0"), ("Pod", "east-head-1")
IN_SYNC = HeadLeadership(1, 0, standby=22, sync=1, leads=11)


@pytest.fixture
def world() -> World:
    found = World(FLEET.replace("head: {profile: small}", "head: {profile: small, standby: 1}"))
    found.settle()
    lead(found, IN_SYNC)
    return found


def lead(world: World, stored: HeadLeadership) -> None:
    item = copy.deepcopy(world.objects["BrokerCluster", "east"])
    world.put({**item, "status": {**item.get("status", {}), "leadership": leadership_status(stored)}})


def request(world: World) -> PairRequest:
    found = found_request(world)
    assert found is not None
    return found


def found_request(world: World) -> PairRequest | None:
    desired = world.desired()
    heads = {one.name: (one.config, one.restart_hash) for one in desired.brokers.values() if one.role == "head"}
    clusters = world.objects["BrokerCluster", "east"]["spec"]["head"].get("standby", 0)
    wanted = frozenset({"east"} if clusters else ())
    return next(pair_requests(heads, wanted, world.observed()), None)


def test_nothing_is_asked_of_a_head_without_a_standby():
    plain = World()
    plain.settle()
    assert found_request(plain) is None
    assert is_pair_pod(plain.objects[HEAD]), "it may have one later"
    del plain.objects[HEAD]["spec"]["containers"][0]["ports"][-1]
    assert not is_pair_pod(plain.objects[HEAD]), "one of an earlier version has to be replaced first"


def test_a_settled_pair_stays_as_it_is(world: World):
    assert request(world) == PairRequest("east", "east-head")
    assert is_pair_pod(world.objects[HEAD])


def test_a_changed_head_hands_over_once_its_standby_has_the_change(world: World):
    world.spec("BrokerCluster", "east", head={"profile": "large", "standby": 1})
    assert request(world).hands_over == ""
    for _ in range(20):
        world.round()
    assert request(world).hands_over == "pod east-head-0 has earlier settings"
    lead(world, IN_SYNC.promoted())
    world.settle()
    assert request(world).hands_over == ""


def test_a_head_whose_node_is_drained_hands_over_to_one_elsewhere(world: World):
    world.nodes = {name: {"metadata": {"name": name}, "spec": {}} for name in ("n1", "n2")}
    world.nodes["n1"]["spec"]["unschedulable"] = True
    assert request(world).hands_over == ""
    world.objects[OTHER]["spec"]["nodeName"] = "n2"
    assert request(world).hands_over == "its node is drained"


def test_a_head_without_a_standby_any_more_ends_with_the_first_pod_alone(world: World):
    lead(world, HeadLeadership(2, 1, standby=11, sync=1, leads=22))
    world.spec("BrokerCluster", "east", head={"profile": "small"})
    world.round()
    assert world.objects["StatefulSet", "east-head"]["spec"]["replicas"] == 2
    asked = request(world)
    assert (asked.wants, asked.hands_over) == (False, "its standby is removed")
    first = world.objects[HEAD]["metadata"]["uid"]
    lead(world, HeadLeadership(3, 0, leads=11))
    world.carry_out(world.look())
    assert world.objects["StatefulSet", "east-head"]["spec"]["replicas"] == 1
    assert '"waits": true' in config(world), "the second pod is still there: if it starts again it must not lead"
    assert request(world).wants is False
    end_second(world)
    assert (OTHER in world.objects, world.objects[HEAD]["metadata"]["uid"]) == (False, first)
    assert '"standby": null' in config(world)
    assert found_request(world) is None
    selector = {names.BROKER: "east-head", names.POD_NAME: "east-head-0"}
    assert world.objects["Service", "east-head"]["spec"]["selector"] == selector


def end_second(world: World) -> None:
    """The StatefulSet's controller ends the second pod, which takes a moment."""
    world.controllers()
    world.controllers()
    world.settle()


def config(world: World) -> str:
    found: str = world.objects["ConfigMap", "east-head-config"]["data"][names.CONFIG_FILE]
    return found


def test_a_head_that_runs_takes_on_a_standby_and_lets_it_go_in_the_same_pod():
    world = World()
    world.settle()
    first = world.objects[HEAD]["metadata"]["uid"]
    world.spec("BrokerCluster", "east", head={"profile": "small", "standby": 1})
    world.settle()
    assert OTHER in world.objects
    assert request(world) == PairRequest("east", "east-head")
    assert '"waits": true' in config(world)
    told = [world.objects[pod]["metadata"]["annotations"][names.STANDBY_KEY] for pod in (HEAD, OTHER)]
    assert told[0] == told[1] == world.objects[HEAD]["metadata"]["annotations"][names.KEY]
    lead(world, IN_SYNC)
    world.settle()
    world.spec("BrokerCluster", "east", head={"profile": "small"})
    world.round()
    assert OTHER in world.objects, "the store counts on it"
    lead(world, HeadLeadership(1, 0, ended=1, leads=11))
    world.round()
    end_second(world)
    assert OTHER not in world.objects
    assert names.STANDBY_KEY not in world.objects[HEAD]["metadata"]["annotations"]
    assert world.objects[HEAD]["metadata"]["uid"] == first


def test_an_image_and_a_standby_at_once_replace_the_head_by_promotion():
    world = World()
    world.settle()
    first = world.objects[HEAD]["metadata"]["uid"]
    world.spec("BrokerCluster", "east", head={"profile": "small", "standby": 1})
    world.spec("BrokerFleet", "stocks", pods={"image": "new:1"})
    for _ in range(30):
        for name in world.sessions():
            world.end_session(name)
        world.round()
    assert world.objects[HEAD]["metadata"]["uid"] == first
    assert image(world, OTHER) == "new:1"
    lead(world, IN_SYNC)
    assert request(world).hands_over == "pod east-head-0 has earlier settings"


def image(world: World, pod: tuple[str, str]) -> str:
    found: str = world.objects[pod]["spec"]["containers"][0]["image"]
    return found


def test_a_new_image_reaches_both_pods_by_promotion_and_the_head_goes_on(world: World):
    before = {pod: world.objects[pod]["metadata"]["uid"] for pod in (HEAD, OTHER)}
    world.spec("BrokerFleet", "stocks", pods={"image": "new:1"})
    for _ in range(30):
        for name in world.sessions():
            world.end_session(name)
        world.round()
    assert (image(world, HEAD) == "new:1", image(world, OTHER)) == (False, "new:1")
    assert world.objects[HEAD]["metadata"]["uid"] == before[HEAD], "it leads until its standby does"
    assert request(world).hands_over == "pod east-head-0 has earlier settings"
    lead(world, IN_SYNC.promoted())
    assert world.desired().brokers["east-head"].objects[1]["spec"]["selector"][names.POD_NAME] == "east-head-1"
    world.settle()
    assert (image(world, HEAD), image(world, OTHER)) == ("new:1", "new:1")
    assert world.objects[HEAD]["metadata"]["uid"] != before[HEAD]
    assert request(world).hands_over == ""


def test_a_drained_node_with_both_pods_is_left_one_after_the_other(world: World):
    """The standby may be evicted while the head is ready; back on another node and in sync it is handed over to."""
    world.nodes = {name: {"metadata": {"name": name}, "spec": {}} for name in ("n1", "n2")}
    world.nodes["n1"]["spec"]["unschedulable"] = True
    budget = world.objects["PodDisruptionBudget", "east-head"]["spec"]
    assert (budget["minAvailable"], budget["selector"]["matchLabels"]) == (1, {names.BROKER: "east-head"})
    world.delete(OTHER)
    world.controllers()
    lead(world, HeadLeadership(1, 0, ended=1, leads=11))
    world.objects[OTHER]["spec"]["nodeName"] = "n2"
    asked = request(world)
    assert asked.hands_over == "its node is drained", "it leads as soon as it is in sync"
    lead(world, HeadLeadership(2, 1, leads=23))
    assert request(world).hands_over == "", "the one that leads is elsewhere"


def test_a_rotated_key_of_a_pair_replaces_its_pods_by_promotion(world: World):
    secret = world.objects["Secret", "east-head-keys"]
    secret["data"] = keys.new_secret("x", {}, {}, "ns")["data"]
    second = world.objects[OTHER]["metadata"]["uid"]
    world.round()
    for _ in range(5):
        world.round()
    assert world.objects[OTHER]["metadata"]["uid"] != second, "it would follow by the key that it was started with"
    assert request(world).hands_over == "pod east-head-0 has earlier settings"
