"""Heads with a standby and two operators, when a node with half of them is drained, or lost under load.

They need the node and the commands of `test_nodes.py`. The applications are on the node that stays.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.e2e.cluster import ROOT, TAG, Cluster, run
from tests.e2e.node_access import AWAY, FIND, LOSE, home_host
from tests.e2e.pairs import (
    OPERATORS,
    in_sync,
    killed,
    leader,
    leadership,
    nodes,
    publishes,
    publishes_again,
    start,
    under_load,
)

pytestmark = [pytest.mark.cluster, pytest.mark.e2e, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def home() -> str:
    return home_host()


@pytest.fixture(scope="module")
def fleet(home: str, cluster: Cluster) -> Iterator[Cluster]:
    """Two operators that read nodes, and the quick start's fleet with a standby."""
    release = f"nodes-{secrets.token_hex(3)}"  # its cluster-wide objects have a name of their own
    sets = [f"image.tag={TAG}", f"brokerImage.tag={TAG}", "crds.install=false", "replicas=2"]
    sets += ["rbac.scope=Cluster", "rbac.readNodes=true"]
    try:
        cluster.helm("install", release, str(ROOT / "helm" / "plimsoll"), "--wait", "--timeout", "120s",
                     *(part for each in sets for part in ("--set", each)))  # fmt: skip
        start(cluster)
        yield cluster
    finally:
        run("kubectl", "uncordon", AWAY)
        cluster.helm("uninstall", release, "--wait")


def operators(fleet: Cluster) -> dict[str, str]:
    """The node of each operator that is ready."""
    found = fleet.get("pods", selector=OPERATORS)
    ready = [pod for pod in found if any(each.get("ready") for each in pod["status"].get("containerStatuses", []))]
    return {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in ready}


def mediating(fleet: Cluster) -> str:
    """The operator that mediates, as it has stored."""
    return str(fleet.get("brokerfleet", "quotes")["status"]["mediator"]["pod"])


def is_spread(fleet: Cluster) -> bool:
    """Whether each node has an operator and a process of the head."""
    return len(set(operators(fleet).values())) == len(set(nodes(fleet).values())) == 2


def spread(fleet: Cluster, home: str) -> None:
    """Both nodes have a pod of the head, and an operator."""
    fleet.wait(lambda: in_sync(fleet) and len(operators(fleet)) == 2, 180, "all to be well")
    if is_spread(fleet):
        return
    run("kubectl", "cordon", home_node(home))
    try:
        if AWAY not in operators(fleet).values():
            fleet.kubectl("delete", "pod", min(operators(fleet)))
        if AWAY not in nodes(fleet).values():
            follows = next(pod for pod in nodes(fleet) if pod != leader(fleet))
            fleet.kubectl("delete", "pod", follows)
        fleet.wait(lambda: is_spread(fleet) and in_sync(fleet), 180, f"an operator and a head on {AWAY}")
    finally:
        run("kubectl", "uncordon", home_node(home))


def home_node(home: str) -> str:
    names = run(
        "kubectl", "get", "nodes", "-l", f"kubernetes.io/hostname={home}", "-o", "jsonpath={.items[0].metadata.name}"
    )
    return names.strip()


def lead(fleet: Cluster, node: str) -> None:
    """The process on this node leads, with the other one in sync."""
    if nodes(fleet)[leader(fleet)] != node:
        killed(fleet, leader(fleet))
        fleet.wait(lambda: in_sync(fleet) and nodes(fleet)[leader(fleet)] == node, 180, f"the head to be on {node}")


def mediate(fleet: Cluster, node: str) -> None:
    """The operator on this node mediates."""

    def is_there() -> bool:
        return len(operators(fleet)) == 2 and operators(fleet).get(mediating(fleet)) == node

    if not is_there():
        fleet.kubectl("delete", "pod", mediating(fleet))
        fleet.wait(is_there, 120, f"the operator on {node} to mediate")


@contextmanager
def lost(fleet: Cluster) -> Iterator[float]:
    """Without the node, which is there again behind it; the time at which it was lost."""
    if not (LOSE and FIND):
        pytest.skip("needs commands that lose a node and find it: PLIMSOLL_LOSE_NODE, PLIMSOLL_FIND_NODE are not set")
    run("sh", "-c", LOSE)
    try:
        yield time.monotonic()
    finally:
        run("sh", "-c", FIND)
    fleet.kubectl("wait", f"node/{AWAY}", "--for=condition=Ready", "--timeout=120s", seconds=150)


def replaced(fleet: Cluster, since: float) -> None:
    """All pods are on the node that stays, and all is well."""

    def is_done() -> bool:
        return in_sync(fleet) and AWAY not in nodes(fleet).values() and fleet.is_true("brokercluster", "east", "Ready")

    fleet.wait(is_done, 300, "another standby, and edges elsewhere")
    print(f"all is ready on one node after {time.monotonic() - since:.1f} s")


def test_a_node_that_is_lost_with_the_head_and_the_operator_that_mediates(fleet: Cluster, home: str):
    """The other operator promotes. Both come back together, before Kubernetes has moved anything."""
    spread(fleet, home)
    lead(fleet, AWAY)
    mediate(fleet, AWAY)
    with under_load(fleet, 1, host=home) as crowd:
        before = leadership(fleet)["term"]
        with lost(fleet):
            publishes_again(fleet, crowd, before)


def test_a_node_that_is_lost_with_the_standby_and_the_operator_that_mediates(fleet: Cluster, home: str):
    """The head goes on alone, and its next standby is on the same node, once the lost one is given up."""
    spread(fleet, home)
    lead(fleet, home_node(home))
    mediate(fleet, AWAY)
    with under_load(fleet, 0, host=home) as crowd:
        before = leadership(fleet)["term"]
        with lost(fleet) as since:
            publishes(fleet, crowd)
            assert (leadership(fleet)["term"], leadership(fleet)["standby"]) == (before, 0)
            replaced(fleet, since)


def test_a_node_that_is_drained_with_the_head_and_an_operator(fleet: Cluster, home: str):
    """The standby leads as soon as the node is cordoned; edges are emptied, and then evicted."""
    spread(fleet, home)
    lead(fleet, AWAY)
    with under_load(fleet, 1, host=home):
        try:
            run(
                "kubectl", "drain", AWAY, "--delete-emptydir-data", "--ignore-daemonsets", "--timeout=240s", seconds=300
            )
            fleet.wait(lambda: AWAY not in nodes(fleet).values(), 120, f"no broker on {AWAY}")
        finally:
            run("kubectl", "uncordon", AWAY)
