"""A head with a standby, in pods: killed, evicted, changed, scaled by hand and lost under load, and nothing is lost.

Both logs are in memory. The pauses in which no publisher had an answer are printed; they depend on the machine.
A node is lost by `PLIMSOLL_LOSE_NODE`, as in `test_nodes.py`. Where there is only one node, the pod alone is cut off.
"""

from __future__ import annotations

import json

import pytest
from tests.e2e.cluster import Cluster, run
from tests.e2e.node_access import AWAY, FIND, LOSE, home_host, lose_pod
from tests.e2e.pairs import (
    HEAD,
    OPERATORS,
    in_sync,
    killed,
    leader,
    leadership,
    nodes,
    publishes_again,
    quick_start,
    start,
    under_load,
)

pytestmark = [pytest.mark.cluster, pytest.mark.e2e, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def fleet(installed: Cluster) -> Cluster:
    """The quick start's fleet, with a standby."""
    start(installed)
    return installed


def test_the_status_says_who_leads(fleet: Cluster):
    status = fleet.get("brokercluster", "east")["status"]
    assert status["head"]["pod"] == leader(fleet)
    fleet.wait(lambda: fleet.get("brokercluster", "east")["status"]["standby"].get("pod"), 60, "the standby's pod")
    assert {fleet.get("brokercluster", "east")["status"]["standby"]["pod"], leader(fleet)} == {f"{HEAD}-0", f"{HEAD}-1"}
    assert fleet.get("poddisruptionbudget", HEAD)["spec"]["minAvailable"] == 1
    assert fleet.get("service", HEAD)["spec"]["selector"]["statefulset.kubernetes.io/pod-name"] == leader(fleet)


def test_a_head_that_is_killed_is_replaced_by_its_standby(fleet: Cluster):
    with under_load(fleet, 2):
        for _ in range(2):
            before = leadership(fleet)["term"]
            killed(fleet, leader(fleet))
            fleet.wait(lambda before=before: leadership(fleet)["term"] > before, 60, "the standby to lead")
            fleet.wait(lambda: in_sync(fleet), 120, "the other one to follow")


def test_nor_does_it_matter_that_the_operator_dies_with_it(fleet: Cluster):
    with under_load(fleet, 1):
        (operator,) = fleet.get("pod", selector=OPERATORS)
        fleet.kubectl(
            "delete", "pod", leader(fleet), operator["metadata"]["name"], "--grace-period=0", "--force"
        )  # fmt: skip


def test_a_changed_head_is_replaced_by_promotion(fleet: Cluster):
    """As for an upgrade: new settings of the head. First the standby has them."""
    with under_load(fleet, 1):
        cluster = next(item for item in quick_start(log={"memory": "9Mi"}) if item["kind"] == "BrokerCluster")
        before = {pod: fleet.get("pod", pod)["metadata"]["uid"] for pod in (f"{HEAD}-0", f"{HEAD}-1")}
        fleet.apply(cluster)
        for pod, uid in before.items():
            fleet.wait(lambda pod=pod, uid=uid: fleet.get("pod", pod)["metadata"]["uid"] != uid, 180, f"a new {pod}")


def test_an_evicted_head_leaves_to_its_standby(fleet: Cluster):
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction"}
    with under_load(fleet, 1):
        pod = leader(fleet)
        about = {"name": pod, "namespace": fleet.namespace}
        path = f"/api/v1/namespaces/{fleet.namespace}/pods/{pod}/eviction"
        fleet.kubectl("create", "--raw", path, "-f", "-", text=json.dumps({**eviction, "metadata": about}))


def test_a_head_whose_pod_is_frozen_and_cut_off_is_replaced_as_if_its_node_were_lost(fleet: Cluster):
    """Its peers hear nothing more, and none of their connections is closed. The standby is on the same node."""
    with under_load(fleet, 1) as crowd:
        before, pod = leadership(fleet)["term"], fleet.get("pod", leader(fleet))
        lose_pod(pod)
        publishes_again(fleet, crowd, before)
        fleet.wait(lambda: fleet.get("pod", pod["metadata"]["name"])["metadata"]["uid"] != pod["metadata"]["uid"], 180,
                   "another pod in its place")  # fmt: skip


@pytest.fixture
def away_from(fleet: Cluster) -> str:
    """The host that stays, with the operator, and with a standby of the head that is on the node to be lost."""
    home = home_host()
    if not (LOSE and FIND):
        pytest.skip("needs commands that lose a node and find it: PLIMSOLL_LOSE_NODE, PLIMSOLL_FIND_NODE are not set")
    (operator,) = fleet.get("pod", selector=OPERATORS)
    if operator["spec"]["nodeName"] == AWAY:
        run("kubectl", "cordon", AWAY)
        try:
            fleet.kubectl("delete", "pod", operator["metadata"]["name"])
            fleet.kubectl("rollout", "status", "deployment/plimsoll", "--timeout=120s", seconds=150)
        finally:
            run("kubectl", "uncordon", AWAY)
    assert AWAY in nodes(fleet).values(), f"the two pods of the head prefer two nodes: {nodes(fleet)}"
    if nodes(fleet)[leader(fleet)] != AWAY:
        killed(fleet, leader(fleet))
        fleet.wait(lambda: in_sync(fleet) and nodes(fleet)[leader(fleet)] == AWAY, 180, f"the head to be on {AWAY}")
    return home


def test_a_head_whose_node_is_lost_is_replaced_by_its_standby_on_another_node(fleet: Cluster, away_from: str):
    with under_load(fleet, 1, host=away_from) as crowd:
        before = leadership(fleet)["term"]
        run("sh", "-c", LOSE)
        try:
            publishes_again(fleet, crowd, before)
        finally:
            run("sh", "-c", FIND)
        fleet.kubectl("wait", f"node/{AWAY}", "--for=condition=Ready", "--timeout=120s", seconds=150)


def test_a_stateful_set_that_is_scaled_by_hand_is_put_right(fleet: Cluster):
    fleet.wait(lambda: in_sync(fleet), 120, "the standby to follow")
    if leadership(fleet)["leader"] == 0:
        killed(fleet, f"{HEAD}-0")
        fleet.wait(lambda: leadership(fleet)["leader"] == 1 and in_sync(fleet), 120, "the second process to lead")
    with under_load(fleet, 1):
        fleet.kubectl("scale", "statefulset", HEAD, "--replicas=1")
        fleet.wait(lambda: fleet.get("statefulset", HEAD)["spec"]["replicas"] == 2, 60, "both pods to be wanted again")


def test_an_upgraded_image_goes_by_promotion(fleet: Cluster):
    """Both pods get it, the standby's first. It is the same image by a longer name, so no other one is needed here."""
    fleet.wait(lambda: in_sync(fleet), 120, "the standby to follow")
    pods = (f"{HEAD}-0", f"{HEAD}-1")
    image = images(fleet, leader(fleet))
    with under_load(fleet, 1):
        set_image(fleet, f"docker.io/{image}")
        for pod in pods:
            fleet.wait(lambda pod=pod: images(fleet, pod) == f"docker.io/{image}", 300, f"{pod} with the new image")
    set_image(fleet, "")
    for pod in pods:
        fleet.wait(lambda pod=pod: images(fleet, pod) == image, 300, f"{pod} as before")
    fleet.wait(lambda: in_sync(fleet), 180, "the other one to follow")


def set_image(fleet: Cluster, image: str) -> None:
    (name,) = [item["metadata"]["name"] for item in fleet.get("brokerfleet")]
    fleet.kubectl("patch", "brokerfleet", name, "--type=merge", "-p", json.dumps({"spec": {"pods": {"image": image}}}))


def images(fleet: Cluster, pod: str) -> str:
    """The image that a pod is specified with; empty while there is no such pod."""
    found = [
        item for item in fleet.get("pod", selector=f"plimsoll.dev/broker={HEAD}") if item["metadata"]["name"] == pod
    ]
    return str(found[0]["spec"]["containers"][0]["image"]) if found else ""


def switch(fleet: Cluster, wanted: int) -> None:
    patch = json.dumps({"spec": {"head": {"standby": wanted}}})
    fleet.kubectl("patch", "brokercluster", "east", "--type=merge", "-p", patch)


def has_second_pod(fleet: Cluster) -> bool:
    return bool(images(fleet, f"{HEAD}-1"))


def test_a_standby_is_switched_off_and_on_under_load_and_the_head_goes_on(fleet: Cluster):
    """The log is in memory; the pod that leads in the end takes on a standby, which leads once that pod is killed."""
    fleet.wait(lambda: in_sync(fleet), 120, "the standby to follow")
    with under_load(fleet, 1):
        switch(fleet, 0)
        fleet.wait(lambda: not has_second_pod(fleet), 180, "the second pod to end")
        fleet.wait(lambda: '"standby": null' in config(fleet), 60, "the file to say so")
        first = fleet.get("pod", f"{HEAD}-0")["metadata"]["uid"]
        term = leadership(fleet)["term"]
        switch(fleet, 1)
        fleet.wait(lambda: in_sync(fleet), 180, "the standby to follow")
        assert (fleet.get("pod", f"{HEAD}-0")["metadata"]["uid"], leadership(fleet)["term"]) == (first, term)
        killed(fleet, f"{HEAD}-0")
        fleet.wait(lambda: leadership(fleet)["leader"] == 1, 60, "the standby to lead")


def config(fleet: Cluster) -> str:
    found: str = fleet.get("configmap", f"{HEAD}-config")["data"]["config.json"]
    return found


def test_a_head_that_never_had_a_standby_takes_one_on_under_load(fleet: Cluster):
    """Its pod is made without one first; then it leads in no term, with its log in memory alone."""
    switch(fleet, 0)
    fleet.wait(lambda: not has_second_pod(fleet), 180, "the second pod to end")
    fleet.wait(lambda: '"standby": null' in config(fleet), 60, "the file to say so")
    killed(fleet, f"{HEAD}-0")
    fleet.wait(lambda: fleet.is_true("brokercluster", "east", "Ready"), 240, "the cluster to be ready")
    with under_load(fleet, 2):
        first = fleet.get("pod", f"{HEAD}-0")["metadata"]["uid"]
        switch(fleet, 1)
        fleet.wait(lambda: in_sync(fleet), 180, "the standby to follow")
        assert fleet.get("pod", f"{HEAD}-0")["metadata"]["uid"] == first
        killed(fleet, f"{HEAD}-0")
        fleet.wait(lambda: leadership(fleet)["leader"] == 1, 60, "the standby to lead")
