"""Nodes that are cordoned, drained and lost, under applications whose every delivery is judged at the end.

They need a node that they may drain: `PLIMSOLL_DRAIN_NODE` names it, and another one has to take pods. Its loss takes
two more commands: `PLIMSOLL_LOSE_NODE` cuts it off, and `PLIMSOLL_FIND_NODE` brings it back.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.e2e.cluster import ROOT, TAG, Cluster, Crowd, manifest, profile, run
from tests.e2e.node_access import AWAY, FIND, HOST, LOSE, home_host

pytestmark = [pytest.mark.cluster, pytest.mark.e2e, pytest.mark.timeout(1800)]

CHART = str(ROOT / "helm" / "plimsoll")
BROKERS = "app.kubernetes.io/name=plimsoll-broker"
EDGES, SUBSCRIBERS, PER_SECOND = 3, 100, 20.0
Object = dict[str, Any]
PREFERRED = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
    {"weight": 100, "preference": {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [AWAY]}]}},
]}}  # fmt: skip


@pytest.fixture(scope="module")
def home() -> str:
    """The host that stays, with the head and the applications."""
    return home_host()


@pytest.fixture(scope="module")
def fleet(home: str, cluster: Cluster) -> Iterator[Cluster]:
    """An operator that reads nodes, and runs on the one to be drained while that is possible; three edges."""
    release = f"nodes-{secrets.token_hex(3)}"  # its cluster-wide objects have a name of their own
    sets = [f"image.tag={TAG}", f"brokerImage.tag={TAG}", "crds.install=false", "rbac.scope=Cluster"]
    sets.append("rbac.readNodes=true")
    try:
        cluster.helm("install", release, CHART, *(part for each in sets for part in ("--set", each)), "--set-json",
                     f"affinity={json.dumps(PREFERRED)}", "--wait", "--timeout", "120s")  # fmt: skip
        stays = profile("stays", 0)
        stays["spec"]["nodeSelector"] = [{"name": HOST, "value": home}]
        edges = [{"name": "edge", "profile": "plain", "replicas": EDGES}]
        cluster.apply(
            manifest("BrokerFleet", "fleet", security={"clients": [{"name": "crowd"}]}),
            stays, profile("plain", 0), manifest("BrokerCluster", "east", head={"profile": "stays"}, edges=edges),
        )  # fmt: skip
        cluster.wait(lambda: cluster.is_true("brokercluster", "east", "Ready"), 120, "the cluster to be ready")
        yield cluster
    finally:
        try:
            run("kubectl", "uncordon", AWAY)
        finally:
            cluster.helm("uninstall", release, "--wait")


@pytest.fixture(scope="module")
def crowd(fleet: Cluster, home: str) -> Iterator[Crowd]:
    crowd = Crowd(fleet, "crowd", "east", SUBSCRIBERS, PER_SECOND, host=home)
    yield crowd
    found = crowd.verdict()
    assert (found["lost"], found["duplicated"], found["reordered"], found["gaps"]) == (0, 0, 0, 0), found
    assert found["ok"], found


def places(fleet: Cluster) -> dict[str, str]:
    """The node of each edge."""
    pods = fleet.get("pods", selector=f"{BROKERS},app.kubernetes.io/component=edge")
    return {pod["metadata"]["labels"]["plimsoll.dev/broker"]: pod["spec"].get("nodeName", "") for pod in pods}


def settled(fleet: Cluster, crowd: Crowd) -> bool:
    return fleet.is_true("brokercluster", "east", "Ready") and sum(crowd.at().values()) == SUBSCRIBERS


def brought_back(fleet: Cluster, crowd: Crowd) -> set[str]:
    """The node takes pods again, and a restarted edge there serves subscribers; returns the edges there."""
    fleet.kubectl("uncordon", AWAY)
    if AWAY not in places(fleet).values():
        fleet.kubectl("delete", "pod", "edge-0-0")
    fleet.wait(lambda: settled(fleet, crowd) and AWAY in places(fleet).values(), 120, f"an edge on {AWAY}")
    there = {edge for edge, node in places(fleet).items() if node == AWAY}
    for edge in there - set(crowd.at()):
        most = max((at, name) for name, at in crowd.at().items())[1]
        fleet.apply(manifest(
            "LoadBalancingSession", f"to-{edge}-{secrets.token_hex(3)}", scope="Local", source={"name": most},
            target={"name": edge}, mode="Execute", select={"sharePercent": 50}, limits={"moveInterval": "0s"},
        ))  # fmt: skip
    fleet.wait(lambda: there <= set(crowd.at()) and settled(fleet, crowd), 120, f"subscribers at {there}")
    return there


def emptied(fleet: Cluster, since: set[str]) -> set[str]:
    """Edges that sessions have emptied, without the earlier sessions."""
    found = [item for item in fleet.get("loadbalancingsessions") if item["metadata"]["name"] not in since]
    return {item["spec"]["source"]["name"] for item in found if item["metadata"]["name"].startswith("restart-")}


def sessions(fleet: Cluster) -> set[str]:
    return {item["metadata"]["name"] for item in fleet.get("loadbalancingsessions")}


def test_edges_of_a_node_that_is_cordoned_are_emptied_and_placed_elsewhere(fleet: Cluster, crowd: Crowd):
    there, before = brought_back(fleet, crowd), sessions(fleet)
    fleet.kubectl("cordon", AWAY)
    fleet.wait(lambda: AWAY not in places(fleet).values() and settled(fleet, crowd), 180, f"no broker on {AWAY}")
    assert emptied(fleet, before) == there


def test_a_drain_waits_until_edges_have_been_emptied(fleet: Cluster, crowd: Crowd):
    there, before = brought_back(fleet, crowd), sessions(fleet)
    run("kubectl", "drain", AWAY, f"--pod-selector={BROKERS}", "--delete-emptydir-data", "--ignore-daemonsets",
        "--timeout=240s", seconds=300)  # fmt: skip
    fleet.wait(lambda: AWAY not in places(fleet).values() and settled(fleet, crowd), 120, f"no broker on {AWAY}")
    assert emptied(fleet, before) == there


def test_edges_of_a_lost_node_are_replaced_and_their_subscribers_served_meanwhile(fleet: Cluster, crowd: Crowd):
    if not (LOSE and FIND):
        pytest.skip("needs commands that lose a node and find it: PLIMSOLL_LOSE_NODE, PLIMSOLL_FIND_NODE are not set")
    there = brought_back(fleet, crowd)
    begun = time.monotonic()
    run("sh", "-c", LOSE)
    try:
        fleet.wait(lambda: not there & set(crowd.at()), 120, "subscribers to be served elsewhere")
        print(f"a node is lost: all are served elsewhere after {time.monotonic() - begun:.1f} s")
        fleet.wait(lambda: AWAY not in places(fleet).values() and settled(fleet, crowd), 300, "edges elsewhere")
        print(f"all edges are ready elsewhere after {time.monotonic() - begun:.1f} s")
    finally:
        run("sh", "-c", FIND)
    fleet.kubectl("wait", f"node/{AWAY}", "--for=condition=Ready", "--timeout=120s", seconds=150)
    sent = crowd.progress()["sent"]
    fleet.wait(lambda: crowd.progress()["sent"] > sent + 5 * PER_SECOND, 60, "five more seconds of publications")
    fleet.wait(lambda: settled(fleet, crowd), 30, "all to be well with the node back")
    assert AWAY not in places(fleet).values()
