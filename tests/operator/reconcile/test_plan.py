"""From nothing to a fleet, and from one fleet to another: which steps, in which order, and that they come to an end."""

import copy

import pytest
from tests.operator.world import FLEET, World

from plimsoll.operator import names
from plimsoll.operator.objects.manifest import needs_write, owner, ref
from plimsoll.operator.reconcile.drain import ReportedSubscribers
from plimsoll.operator.reconcile.steps import (
    Apply,
    Delete,
    Evacuate,
    NameTaken,
    Patch,
    Restart,
    StepBlocked,
    subject_of,
)

EDGES = ["edge-0", "edge-1", "edge-2"]


@pytest.fixture
def world() -> World:
    made = World()
    made.settle()
    return made


def scale(world: World, replicas: int) -> None:
    world.spec("BrokerCluster", "east", edges=[{"name": "edge", "profile": "small", "replicas": replicas}])


def test_a_fleet_comes_up_and_then_nothing_is_written(world: World):
    assert world.of("EdgeBroker") == EDGES
    assert world.of("StatefulSet") == ["east-head", *EDGES]
    assert world.of("Service") == ["east-head", *EDGES]
    assert world.of("ConfigMap") == [
        "east-head-config", *(f"{name}-config" for name in EDGES), names.ACCEPTED, names.AUTHORIZED_KEYS,
    ]  # fmt: skip
    assert world.of("Secret") == [
        "east-head-keys", *(f"{name}-keys" for name in EDGES), "plimsoll-client-app", names.MEDIATOR_KEYS,
    ]  # fmt: skip
    assert world.of("PodDisruptionBudget") == ["east-edges"]
    assert world.of("NetworkPolicy") == [names.NETWORK_POLICY]
    assert world.look() == []


def test_everything_goes_with_its_owner(world: World):
    owners = {ref(item): [each["kind"] for each in item["metadata"].get("ownerReferences", [])]
              for item in world.objects.values()}  # fmt: skip
    assert owners["StatefulSet", "edge-0"] == owners["Secret", "edge-0-keys"] == ["BrokerCluster"]
    assert owners["StatefulSet", "east-head"] == owners["EdgeBroker", "edge-0"] == ["BrokerCluster"]
    assert owners["Secret", "plimsoll-client-app"] == ["BrokerFleet"]
    own = ("BrokerFleet", "BrokerCluster", "HardwareProfile")
    assert [key for key, found in owners.items() if not found and key[0] not in own] == []


def test_scaling_up_creates_edges_and_touches_no_other(world: World):
    scale(world, 5)
    touched = set()
    for _ in range(10):
        touched |= {subject_of(step) for step in world.round() if not isinstance(step, Patch)}
    assert world.of("EdgeBroker") == [*EDGES, "edge-3", "edge-4"]
    assert world.look() == []
    assert {name for kind, name in touched if kind == "StatefulSet"} == {"edge-3", "edge-4"}
    assert ("ConfigMap", "east-head-config") in touched  # read at its next start; CLUSTER_MEMBERS announces it now
    assert not any(kind == "Pod" for kind, _ in touched)


def test_scaling_down_evacuates_first(world: World):
    scale(world, 2)
    deleted = [subject_of(step) for step in world.round() if isinstance(step, Delete)]
    assert deleted == [("EdgeBroker", "edge-2")]
    evacuated = [step for step in world.round() if isinstance(step, Evacuate)]
    assert [step.session["spec"]["source"]["name"] for step in evacuated] == ["edge-2"]
    for _ in range(5):
        assert all(isinstance(step, StepBlocked) for step in world.round())  # as long as its session goes on
    assert "edge-2" in world.of("StatefulSet")
    world.settle()
    assert world.of("EdgeBroker") == ["edge-0", "edge-1"]
    assert [name for kind, name in world.objects if "edge-2" in name and kind != "LoadBalancingSession"] == []
    lines = world.objects["ConfigMap", names.AUTHORIZED_KEYS]["data"][names.AUTHORIZED_FILE]
    assert "edge-2" not in lines


def test_a_leaving_edge_may_speak_until_it_has_gone(world: World):
    scale(world, 2)
    for _ in range(4):
        world.round()
    assert "edge edge-2" in world.objects["ConfigMap", names.AUTHORIZED_KEYS]["data"][names.AUTHORIZED_FILE]


@pytest.mark.parametrize("phase", ["Failed", "Rejected", "RolledBack"])
def test_an_evacuation_that_fails_holds_no_edge_forever(world: World, phase: str):
    scale(world, 2)
    world.round()
    world.round()
    world.end_session(world.sessions()[0], phase)
    world.settle()
    assert world.of("EdgeBroker") == ["edge-0", "edge-1"]


def test_an_evacuation_that_no_mediator_ends_ends_by_its_deadline(world: World):
    scale(world, 2)
    world.round()
    world.round()
    world.now += 400
    assert [type(step) for step in world.round()] == [Delete]


def test_the_time_without_an_operator_ends_no_evacuation(world: World):
    """An hour later its subscribers are still there; the session goes on, and the next one moves who is left."""
    scale(world, 2)
    world.round()
    world.round()
    world.now += 3600
    world.mediating_seconds, world.serves = 1.0, {"edge-2": ReportedSubscribers(7, world.now)}
    assert [type(step) for step in world.round()] == [StepBlocked]
    (first,) = world.sessions()
    world.end_session(first, "Failed")  # its deadline had passed when a mediator saw it
    world.now += 5
    world.serves = {"edge-2": ReportedSubscribers(7, world.now)}
    (again,) = world.round()
    assert isinstance(again, Evacuate)
    assert again.session["metadata"]["name"] == f"{first}-2"
    assert [type(step) for step in world.round()] == [StepBlocked]
    world.end_session(f"{first}-2")
    world.now += 5
    world.serves = {"edge-2": ReportedSubscribers(0, world.now)}
    assert [type(step) for step in world.round()] == [Delete]


def test_an_edge_with_nowhere_to_go_leaves_at_once(world: World):
    world.delete(("BrokerCluster", "east"))
    world.settle()
    assert world.sessions() == []
    assert [key for key in world.objects if key[0] in ("EdgeBroker", "StatefulSet", "Pod")] == []


def test_an_edge_made_by_hand_is_evacuated_too(world: World):
    world.put({
        "apiVersion": "plimsoll.dev/v1alpha1", "kind": "EdgeBroker", "metadata": {"name": "big"},
        "spec": {"clusterRef": {"name": "east"}, "profile": "large"},
    })  # fmt: skip
    world.settle()
    assert not world.objects["EdgeBroker", "big"]["metadata"].get("finalizers")
    assert "big" in world.of("StatefulSet")
    world.delete(("EdgeBroker", "big"))
    assert any(isinstance(step, Evacuate) for step in world.round())
    assert "big" in world.of("StatefulSet")
    world.settle()
    assert "big" not in [*world.of("StatefulSet"), *world.of("EdgeBroker")]
    assert "big-keys" not in world.of("Secret")


def test_objects_that_an_edge_owned_by_an_earlier_version_are_taken_over(world: World):
    edge = world.objects["EdgeBroker", "edge-0"]
    owned = (("StatefulSet", "edge-0"), ("Service", "edge-0"), ("Secret", "edge-0-keys"))
    for key in owned:
        world.objects[key]["metadata"]["ownerReferences"] = [owner(edge)]
        world.objects[key]["metadata"].get("annotations", {}).pop(names.DESIRED_HASH, None)
    steps = world.look()
    assert {subject_of(step) for step in steps} == set(owned)
    assert {type(step) for step in steps} == {Patch}, "an API server refuses a second controller beside the first"
    world.settle()
    for key in owned:
        assert [each["kind"] for each in world.objects[key]["metadata"]["ownerReferences"]] == ["BrokerCluster"]


def test_objects_of_other_owners_are_left_alone(world: World):
    world.put({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "edge-3"}, "spec": {"mine": True}})
    scale(world, 4)
    for _ in range(8):
        steps = world.round()
    assert [subject_of(step) for step in steps if isinstance(step, NameTaken)] == [("Service", "edge-3")]
    assert world.objects["Service", "edge-3"]["spec"] == {"mine": True}


def test_an_object_changed_by_another_client_is_written_again(world: World):
    world.objects["Service", "edge-0"]["spec"]["selector"] = {}
    assert [(subject_of(step), type(step)) for step in world.look()] == [(("Service", "edge-0"), Apply)]


def test_what_others_add_is_left_alone(world: World):
    world.objects["Service", "edge-0"]["spec"]["clusterIP"] = "10.0.0.1"
    world.objects["StatefulSet", "edge-0"]["metadata"]["labels"]["team"] = "blue"
    assert world.look() == []


def test_a_client_that_is_named_no_more_loses_its_secret(world: World):
    world.spec("BrokerFleet", "stocks", security={"clients": []})
    world.settle()
    assert "plimsoll-client-app" not in world.of("Secret")


def test_pods_are_told_when_the_authorized_keys_have_changed(world: World):
    before = world.objects["Pod", "edge-0-0"]["metadata"]["annotations"][names.KEYS_HASH]
    world.spec("BrokerFleet", "stocks", security={"clients": [{"name": "app"}, {"name": "other"}]})
    world.settle()
    after = {item["metadata"]["annotations"][names.KEYS_HASH] for key, item in world.objects.items() if key[0] == "Pod"}
    assert len(after) == 1
    assert before not in after


def test_the_pod_of_a_lost_node_is_given_up(world: World):
    pod = world.objects["Pod", "edge-1-0"]
    pod["metadata"]["deletionTimestamp"] = world.time
    assert world.look() == []  # it may still be ending by itself
    tainted = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}
    pod["status"]["conditions"].append(tainted)
    assert [(step.grace_seconds, subject_of(step)) for step in world.look() if isinstance(step, Delete)] == [
        (0, ("Pod", "edge-1-0"))
    ]
    pod["metadata"] |= {"deletionGracePeriodSeconds": 0, "finalizers": ["example.com/keeps"]}
    assert world.look() == [], "it has been asked for, and a finalizer keeps it"


def test_a_plain_fleet_has_no_keys():
    world = World(FLEET.replace("    clients:\n    - {name: app}", "    plain: true"))
    world.settle()
    assert world.of("Secret") == []
    assert names.AUTHORIZED_KEYS not in world.of("ConfigMap")


def test_restarts_are_told_from_what_is_written_live(world: World):
    pods = copy.deepcopy({key: item for key, item in world.objects.items() if key[0] == "Pod"})
    scale(world, 4)
    world.settle()
    assert all(world.objects[key]["metadata"]["uid"] == item["metadata"]["uid"] for key, item in pods.items())
    world.spec("BrokerFleet", "stocks", defaults={"timing": {"deadAfter": "20s"}})
    assert any(isinstance(step, Restart | Evacuate) for _ in range(3) for step in world.round())


def test_differs_sees_what_is_missing():
    wanted = {"kind": "X", "metadata": {"annotations": {names.DESIRED_HASH: "a"}}, "spec": {"cpu": "1000m"}}
    assert not needs_write({**wanted, "spec": {"cpu": "1", "more": 1}}, wanted)
    assert needs_write({**wanted, "spec": {"cpu": "2"}}, wanted)
    assert needs_write({**wanted, "metadata": {}}, wanted)


def test_a_newcomer_starts_when_its_head_has_read_its_key(world: World):
    """A peer that connects before is refused, and ZeroMQ does not try again."""
    scale(world, 4)
    world.round()  # its object
    told = world.round()
    assert ("EdgeBroker", "edge-3") in [subject_of(step) for step in told if isinstance(step, StepBlocked)]
    assert names.AUTHORIZED_KEYS in [subject_of(step)[1] for step in told if isinstance(step, Apply)]
    begun = world.now
    while "edge-3" not in world.of("StatefulSet"):
        world.round()
    assert 4 <= world.now - begun <= 8


def test_at_first_all_brokers_start_at_once():
    world = World()
    rounds = 0
    while len(world.of("StatefulSet")) < 4:
        world.round()
        rounds += 1
    assert rounds == 2  # objects of edges, then everything else
    lines = world.objects["ConfigMap", names.AUTHORIZED_KEYS]["data"][names.AUTHORIZED_FILE]
    assert all(name in lines for name in ["east-head", *EDGES])


def test_what_is_left_of_an_earlier_life_is_waited_for(world: World):
    world.objects["Service", "edge-0"]["metadata"]["ownerReferences"][0]["uid"] = "of-an-earlier-life"
    assert [(subject_of(step), type(step)) for step in world.look()] == [(("Service", "edge-0"), StepBlocked)]


def test_an_edge_that_is_refused_holds_up_no_other(world: World):
    scale(world, 5)
    steps = world.look()
    world.carry_out(step for step in steps if subject_of(step) != ("EdgeBroker", "edge-4"))
    for _ in range(10):
        world.carry_out(step for step in world.look() if subject_of(step) != ("EdgeBroker", "edge-4"))
        world.controllers()
        world.now += 1
    assert "edge-3" in world.of("StatefulSet")
