"""The objects of a fleet, and their contents."""

import base64
import json

from tests.operator.world import FLEET, World

from plimsoll.operator import names


def test_what_has_no_owner_yet_is_not_made():
    world = World()
    desired = world.desired()
    assert set(desired.brokers) == {"east-head"}  # edges have no objects yet
    assert desired.names == {"east-head", "edge-0", "edge-1", "edge-2"}
    assert [item["metadata"]["name"] for item in desired.edges] == ["edge-0", "edge-1", "edge-2"]


def test_the_same_is_desired_whenever_it_is_asked():
    world = World()
    world.settle()
    assert world.desired() == world.desired()


NEXT = "z" * 40


def test_a_client_finds_its_heads_beside_its_keys():
    world = World()
    world.settle()
    data = world.objects["Secret", "plimsoll-client-app"]["data"]
    assert set(data) == {names.SECRET_FILE, names.PUBLIC_FILE, "heads.json", "east-head.key"}
    heads = json.loads(base64.b64decode(data["heads.json"]))
    key = world.objects["Pod", "east-head-0"]["metadata"]["annotations"][names.KEY]
    assert heads == {"east": {"endpoint": "tcp://east-head.ns.svc:7400", "publicKey": key}}
    assert base64.b64decode(data["east-head.key"]).decode() == f"{key}\n"
    world.objects["Secret", "east-head-keys"]["data"]["next.public.key"] = base64.b64encode(
        f"{NEXT}\n".encode()
    ).decode()
    world.settle()
    data = world.objects["Secret", "plimsoll-client-app"]["data"]
    assert base64.b64decode(data["east-head.key"]).decode() == f"{key}\n{NEXT}\n", "the key that follows"


def test_an_edge_leaves_cordoning_to_its_users():
    world = World()
    world.settle()
    assert all("cordoned" not in edge["spec"] for edge in world.desired().edges)


def test_pods_say_which_group_they_are_of():
    text = FLEET.replace("replicas: 3}", "replicas: 1}\n  - {name: big, profile: large}")
    world = World(text)
    world.spec("BrokerCluster", "east", scale={"replicas": 2})
    world.settle()
    groups = {
        key[1]: item["metadata"]["labels"].get("plimsoll.dev/edge-group")
        for key, item in world.objects.items() if key[0] == "Pod"
    }  # fmt: skip
    assert groups == {"east-head-0": None, "edge-0-0": "edge", "edge-1-0": "edge", "big-0": "big"}


def test_an_edge_that_is_being_deleted_is_not_created_again_before_it_is_gone():
    world = World()
    world.settle()
    world.delete(("EdgeBroker", "edge-1"))
    assert "edge-1" not in [item["metadata"]["name"] for item in world.desired().edges]
    assert "edge-1" not in world.desired().brokers
    world.settle()
    assert "edge-1" in world.of("StatefulSet")  # its cluster still asks for it
