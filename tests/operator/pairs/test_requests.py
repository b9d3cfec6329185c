"""When the standby of a head is to lead: its pod is as specified, and that of the head is not, or is to go."""

from __future__ import annotations

import copy

import pytest
from tests.operator.world import FLEET, World

from plimsoll.core.head.standby.leadership import HeadLeadership, leadership_status
from plimsoll.operator import names
from plimsoll.operator.pairs.requests import PairRequest, is_pair_pod, pair_requests

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
    assert not is_pair_pod(plain.objects[HEAD])


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
    assert (asked.wants, asked.hands_over) == (False, "it is to have no standby any more")
    lead(world, HeadLeadership(3, 0, leads=11))
    world.settle()
    assert world.objects["StatefulSet", "east-head"]["spec"]["replicas"] == 1
    assert world.objects["Service", "east-head"]["spec"]["selector"] == {names.BROKER: "east-head"}
    assert not is_pair_pod(world.objects[HEAD])
