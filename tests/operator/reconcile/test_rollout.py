"""Which broker is replaced when: one edge at a time, emptied first; a head when no edge is being replaced."""

from typing import Any

import pytest
from tests.operator.world import FLEET, World

from plimsoll.operator import names
from plimsoll.operator.reconcile.drain import ReportedSubscribers
from plimsoll.operator.reconcile.rollout import EVICTION_SECONDS, cordoned_for_rollout
from plimsoll.operator.reconcile.steps import Delete, Evacuate, Patch, Restart, StepBlocked
from plimsoll.operator.security import keys
from plimsoll.operator.settings import OperatorSettings

TWO = (
    FLEET
    + """---
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerCluster
metadata: {name: west}
spec:
  head: {profile: small}
  neighbors: [{name: east}]
  edges:
  - {name: west, profile: small, replicas: 1}
"""
)


def settled(text: str = FLEET, settings: OperatorSettings | None = None) -> World:
    world = World(text, settings or OperatorSettings())
    world.settle()
    return world


def image(world: World, name: str = "new:1") -> None:
    world.spec("BrokerFleet", "stocks", pods={"image": name})


def story(world: World, rounds: int = 80) -> list[str]:
    """All steps until there are none: evacuations and restarts in their order, each pod ready a round later."""
    told: list[str] = []
    for _ in range(rounds):
        steps = world.round()
        told += [f"empty {step.owner['metadata']['name']}" for step in steps if isinstance(step, Evacuate)]
        told += [f"restart {step.broker}" for step in steps if isinstance(step, Restart)]
        for name in world.sessions():
            world.end_session(name)
        if not steps:
            return told
    raise AssertionError(f"no end: {told}")


def test_a_new_image_rolls_through_edges_then_the_head():
    world = settled()
    image(world)
    assert story(world) == [
        "empty edge-0", "restart edge-0", "empty edge-1", "restart edge-1", "empty edge-2", "restart edge-2",
        "restart east-head",
    ]  # fmt: skip
    images = {item["spec"]["containers"][0]["image"] for key, item in world.objects.items() if key[0] == "Pod"}
    assert images == {"new:1"}


def test_another_profile_of_the_edges_leaves_the_head_alone():
    world = settled()
    world.spec("BrokerCluster", "east", edges=[{"name": "edge", "profile": "large", "replicas": 3}])
    told = story(world)
    assert "restart east-head" not in told
    assert [word for word in told if word.startswith("restart")] == [f"restart edge-{n}" for n in range(3)]
    limits = world.objects["Pod", "edge-1-0"]["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"cpu": "1000m", "memory": str(128 * 1024 * 1024)}


def test_the_next_edge_waits_until_the_last_one_serves():
    world = settled()
    image(world)
    world.round()
    world.round()
    world.end_session(world.sessions()[0])
    world.ready = False  # the new pod does not come up
    for _ in range(20):
        steps = world.round()
        assert not any(isinstance(step, Evacuate) for step in steps)
    assert any(isinstance(step, StepBlocked) and "edge-0" in step.reason for step in steps)


def test_a_session_that_ends_badly_does_not_hold_the_roll():
    world = settled()
    image(world)
    world.round()
    world.round()
    world.end_session(world.sessions()[0], "Failed")
    assert any(isinstance(step, Restart) and step.broker == "edge-0" for step in world.round())


def test_an_edge_without_subscribers_is_replaced_at_once():
    world = settled()
    for broker in ("edge-0", "edge-1"):
        world.set_pod(broker, ready=False, waiting="ImagePullBackOff")
    image(world)
    world.round()
    assert {step.broker for step in world.round() if isinstance(step, Restart)} == {"edge-0", "edge-1"}


def test_a_head_that_does_not_run_is_replaced_before_its_edges():
    world = settled()
    world.set_pod("east-head", ready=False, waiting="ImagePullBackOff")
    for edge in range(3):
        world.set_pod(f"edge-{edge}", ready=False)
    image(world)
    world.round()
    assert [step.broker for step in world.round() if isinstance(step, Restart)] == ["east-head"]


def test_an_edge_that_waits_for_its_head_is_not_taken_for_broken():
    world = settled()
    world.set_pod("east-head", ready=False)
    world.set_pod("edge-0", ready=False)
    image(world)
    for _ in range(20):
        assert not any(isinstance(step, Restart) for step in world.round())


def test_heads_go_one_after_the_other():
    world = settled(TWO)
    image(world)
    told = [word for word in story(world) if "head" in word]
    assert sorted(told) == ["restart east-head", "restart west-head"]
    world.ready = False
    image(world, "new:2")
    started = []
    for _ in range(40):
        for name in world.sessions():
            world.end_session(name)
        started += [step.broker for step in world.round() if isinstance(step, Restart)]
    assert not {"east-head", "west-head"} <= set(started)


def test_a_lone_edge_is_replaced_without_a_session():
    world = settled(FLEET.replace("replicas: 3", "replicas: 1"))
    image(world)
    assert story(world) == ["restart edge-0", "restart east-head"]


def test_an_edge_that_is_emptied_takes_no_newcomers_until_it_is_ready_again():
    world = settled()
    image(world)
    world.round()
    world.round()
    assert cordoned_for_rollout(world.desired(), world.observed()) == {"edge-0"}
    world.end_session(world.sessions()[0])
    assert cordoned_for_rollout(world.desired(), world.observed()) == {"edge-0"}  # until its pod has gone
    world.round()
    assert cordoned_for_rollout(world.desired(), world.observed()) == frozenset()


def test_an_edge_that_need_not_be_replaced_after_all_takes_newcomers_and_is_emptied_the_next_time():
    world = settled()
    image(world)
    world.round()
    world.round()
    image(world, "")
    while world.round():
        for name in world.sessions():
            world.end_session(name)
    assert cordoned_for_rollout(world.desired(), world.observed()) == frozenset()
    image(world)
    assert story(world)[:2] == ["empty edge-0", "restart edge-0"]


def test_a_node_that_takes_pods_again_has_its_edges_back():
    world = drained()
    world.round()
    world.nodes = {"n1": node("n1"), "n2": node("n2")}
    assert cordoned_for_rollout(world.desired(), world.observed()) == {"edge-0"}  # its subscribers are on their way
    name = world.sessions()[0]
    world.end_session(name)
    assert [step for step in world.look() if isinstance(step, Delete)] != []
    world.objects["LoadBalancingSession", name]["metadata"]["deletionTimestamp"] = world.time
    assert world.look() == []  # it is on its way
    del world.objects["LoadBalancingSession", name]["metadata"]["deletionTimestamp"]
    world.round()
    assert cordoned_for_rollout(world.desired(), world.observed()) == frozenset()


def test_a_user_cordons():
    world = settled()
    world.spec("EdgeBroker", "edge-1", cordoned=True)
    assert cordoned_for_rollout(world.desired(), world.observed()) == {"edge-1"}
    assert world.look() == []  # which the cluster does not take back


def node(name: str, *, drained: bool = False) -> dict[str, Any]:
    ready = {"type": "Ready", "status": "True"}
    return {"metadata": {"name": name}, "spec": {"unschedulable": drained}, "status": {"conditions": [ready]}}


def test_edges_of_a_drained_node_are_emptied_one_by_one():
    world = settled(settings=OperatorSettings(read_nodes=True))
    assert world.objects["PodDisruptionBudget", "east-edges"]["spec"]["maxUnavailable"] == 0
    world.nodes = {"n1": node("n1", drained=True)}
    assert world.look() == []  # no other edge would take them
    world.nodes["n2"] = node("n2")
    assert [step.owner["metadata"]["name"] for step in world.round() if isinstance(step, Evacuate)] == ["edge-0"]
    world.end_session(world.sessions()[0])
    assert evictable(world) == set()
    world.round()
    assert evictable(world) == {"edge-0-0"}  # and left to the drain of the node
    assert [type(step) for step in world.round()] == [StepBlocked]
    world.now += EVICTION_SECONDS
    assert [step.broker for step in world.round() if isinstance(step, Restart)] == ["edge-0"]


@pytest.mark.parametrize(
    ("changed", "is_taken"),
    [
        ({"spec": {"taints": [{"key": "control-plane", "effect": "NoSchedule"}]}}, False),
        ({"spec": {"taints": [{"key": "spot", "effect": "PreferNoSchedule"}]}}, True),
        ({"metadata": {"name": "n2", "labels": {"disk": "tape"}}}, False),
        ({"status": {}}, False),
    ],
)
def test_an_edge_is_emptied_only_if_another_node_would_take_it(changed: dict[str, Any], is_taken: bool):
    text = FLEET.replace(
        "spec: {cpu: 250m, memory: 64Mi}", "spec: {cpu: 250m, memory: 64Mi, nodeSelector: [{name: disk, value: ssd}]}"
    )
    assert text != FLEET
    world = settled(text, OperatorSettings(read_nodes=True))
    labels = {"metadata": {"name": "n2", "labels": {"disk": "ssd"}}}
    world.nodes = {"n1": node("n1", drained=True), "n2": {**node("n2"), **labels, **changed}}
    assert any(isinstance(step, Evacuate) for step in world.look()) == is_taken


@pytest.mark.parametrize("zone", ["a", "b"])
def test_an_edge_is_emptied_only_if_another_node_meets_its_affinity(zone: str):
    test = "{key: zone, operator: In, values: [b]}"
    terms = f"{{nodeSelectorTerms: [{{matchExpressions: [{test}]}}]}}"
    own = f"affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {terms}}}}}"
    text = FLEET.replace("spec: {cpu: 250m, memory: 64Mi}", f"spec: {{cpu: 250m, memory: 64Mi, {own}}}")
    world = settled(text, OperatorSettings(read_nodes=True))
    other = {**node("n2"), "metadata": {"name": "n2", "labels": {"zone": zone}}}
    world.nodes = {"n1": node("n1", drained=True), "n2": other}
    assert any(isinstance(step, Evacuate) for step in world.look()) == (zone == "b")


def drained() -> World:
    """A fleet whose edges are all on a node that is drained, with another one to go to."""
    world = settled(settings=OperatorSettings(read_nodes=True))
    world.nodes = {"n1": node("n1", drained=True), "n2": node("n2")}
    return world


def evictable(world: World) -> set[str]:
    """Pods that no disruption budget protects."""
    selector = world.objects["PodDisruptionBudget", "east-edges"]["spec"]["selector"]
    (unless,) = selector["matchExpressions"]
    assert unless["operator"] == "DoesNotExist"
    pods = {name: world.objects["Pod", name]["metadata"]["labels"] for name in world.of("Pod")}
    return {name for name, labels in pods.items() if unless["key"] in labels}


def test_an_edge_that_is_evicted_as_soon_as_it_may_is_followed_by_the_next():
    world = drained()
    told: list[str] = []
    for _ in range(40):
        steps = world.round()
        assert not any(isinstance(step, Restart) for step in steps)
        told += [step.owner["metadata"]["name"] for step in steps if isinstance(step, Evacuate)]
        for name in world.sessions():
            world.end_session(name)
        for name in evictable(world):
            world.delete(("Pod", name))
            world.controllers()
            world.objects["Pod", name]["spec"]["nodeName"] = "n2"
    assert told == ["edge-0", "edge-1", "edge-2"]


def test_an_edge_that_need_not_go_after_all_is_protected_again():
    world = drained()
    world.round()
    world.end_session(world.sessions()[0])
    world.round()
    assert evictable(world) == {"edge-0-0"}
    world.nodes = {"n1": node("n1"), "n2": node("n2")}
    world.settle()
    assert evictable(world) == set()
    assert world.sessions() == []


@pytest.mark.parametrize("since", ["yes", "99999999999"])
def test_a_mark_that_says_nothing_is_written_again(since: str):
    world = drained()
    world.round()
    world.end_session(world.sessions()[0])
    world.objects["Pod", "edge-0-0"]["metadata"]["labels"][names.EVICTABLE] = since
    at = world.now
    assert [type(step) for step in world.round()] == [Patch]
    assert world.objects["Pod", "edge-0-0"]["metadata"]["labels"][names.EVICTABLE] == str(int(at))


def test_an_edge_that_has_to_be_emptied_again_is_protected_until_it_is():
    world = drained()
    world.round()
    world.end_session(world.sessions()[0])
    world.round()
    assert evictable(world) == {"edge-0-0"}
    world.serves = {"edge-0": ReportedSubscribers(1, world.now + 5)}
    world.now += 10
    steps = world.round()
    assert [type(step) for step in steps] == [Patch, Evacuate]
    assert evictable(world) == set()
    world.round()
    assert evictable(world) == set()
    for name in world.sessions():
        world.end_session(name)
    world.serves = {"edge-0": ReportedSubscribers(0, world.now + 5)}
    world.now += 10
    world.round()
    assert evictable(world) == {"edge-0-0"}


def test_an_edge_that_may_be_evicted_goes_before_another_is_emptied_into_it():
    world = settled(settings=OperatorSettings(read_nodes=True))
    world.nodes = {"n1": node("n1"), "n2": node("n2", drained=True)}
    world.objects["Pod", "edge-1-0"]["spec"]["nodeName"] = "n2"
    world.round()
    world.end_session(world.sessions()[0])
    world.round()
    assert evictable(world) == {"edge-1-0"}
    image(world)
    for _ in range(int(EVICTION_SECONDS) - 2):
        assert not any(isinstance(step, Evacuate) for step in world.round())
    world.now += EVICTION_SECONDS
    assert [step.broker for step in world.round() if isinstance(step, Restart)] == ["edge-1"]


def test_only_the_pod_that_was_seen_is_marked():
    world = drained()
    world.round()
    world.end_session(world.sessions()[0])
    (step,) = world.round()
    assert isinstance(step, Patch)
    assert step.patch["metadata"]["uid"] == step.item["metadata"]["uid"]


@pytest.mark.parametrize("drained", [True, False])
def test_without_rights_on_nodes_drains_take_one_edge_at_a_time(drained: bool):
    world = settled()
    world.nodes = None
    assert world.objects["PodDisruptionBudget", "east-edges"]["spec"]["maxUnavailable"] == 1
    assert world.look() == []


def test_a_heads_new_key_replaces_no_pod():
    """It takes the key while it runs, after a change of its pod; its edges find it by the authorised keys."""
    world = settled()
    before = {name: world.objects["Pod", name]["metadata"]["uid"] for name in world.of("Pod")}
    secret = world.objects["Secret", "east-head-keys"]
    pair = keys.make_key_pair()
    secret["data"] = keys.new_secret("x", {}, {}, "ns")["data"]
    secret["data"][names.PUBLIC_FILE] = keys.base64_text(pair.public)
    told = world.round()
    assert any(isinstance(step, Patch) and step.reason == "its key was replaced" for step in told)
    world.settle()
    assert {name: world.objects["Pod", name]["metadata"]["uid"] for name in world.of("Pod")} == before
    assert world.objects["Pod", "east-head-0"]["metadata"]["annotations"][names.KEY] == pair.public
    assert f'"public_key": "{pair.public}"' in world.objects["ConfigMap", "edge-0-config"]["data"]["config.json"]


def test_an_edges_new_key_is_one_that_it_is_started_with():
    world = settled()
    world.objects["Secret", "edge-0-keys"]["data"] = keys.new_secret("x", {}, {}, "ns")["data"]
    world.round()
    assert [step.owner["metadata"]["name"] for step in world.round() if isinstance(step, Evacuate)] == ["edge-0"]


def test_an_edge_that_is_cut_off_from_a_ready_head_is_restarted():
    world = settled()
    world.now += 100
    world.set_pod("edge-1", ready=False)
    world.now += 59
    assert world.look() == []
    world.now += 1
    (step,) = world.look()
    assert isinstance(step, Restart)
    assert (step.broker, "has lost east-head" in step.reason) == ("edge-1", True)
    world.set_pod("east-head", ready=True)  # it has just come back: its edges will, too
    assert world.look() == []


def test_of_a_head_with_a_standby_the_standby_is_replaced_first_and_the_head_once_it_has_handed_over():
    world = World(FLEET.replace("head: {profile: small}", "head: {profile: small, standby: 1}"))
    world.settle()
    first, second = (world.objects["Pod", f"east-head-{n}"]["metadata"]["uid"] for n in (0, 1))
    world.spec("BrokerCluster", "east", head={"profile": "large", "standby": 1})
    for _ in range(20):
        for name in world.sessions():
            world.end_session(name)
        world.round()
    replaced = [world.objects["Pod", f"east-head-{n}"]["metadata"]["uid"] for n in (0, 1)]
    assert replaced[0] == first, "it leads until its standby does"
    assert replaced[1] != second
    assert any("waiting for its standby to lead" in step.reason for step in world.look())
    cluster = world.objects["BrokerCluster", "east"]
    world.put({**cluster, "status": {"leadership": {"term": 2, "leader": 1, "leads": 5}}})
    world.settle()
    assert world.objects["Pod", "east-head-0"]["metadata"]["uid"] != first
    assert world.objects["Pod", "east-head-1"]["metadata"]["uid"] == replaced[1]
