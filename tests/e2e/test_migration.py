"""A fleet of the time when EdgeBrokers had a finalizer and owned the objects of their edges, under today's chart.

The objects are made by today's operator, and given back what they had then while no operator runs.
"""

from __future__ import annotations

import json

import pytest
from tests.e2e.cluster import ROOT, TAG, Cluster, run

from plimsoll.operator import names

pytestmark = [pytest.mark.cluster, pytest.mark.e2e, pytest.mark.timeout(1800)]

EDGES = ("edge-0", "edge-1", "edge-2")
OF_AN_EDGE = (("statefulset", ""), ("service", ""), ("configmap", "-config"), ("secret", "-keys"))


def owners(cluster: Cluster, edge: str) -> set[str]:
    """The kinds of those that own the objects of an edge."""
    found = [cluster.get(kind, f"{edge}{suffix}")["metadata"] for kind, suffix in OF_AN_EDGE]
    return {owner["kind"] for metadata in found for owner in metadata["ownerReferences"]}


def finalizers(cluster: Cluster) -> list[str]:
    return [each for item in cluster.get("edgebrokers") for each in item["metadata"].get("finalizers", [])]


def make_old(cluster: Cluster, edge: str) -> None:
    """Give an edge back the finalizer, and its objects back to it."""
    uid = cluster.get("edgebroker", edge)["metadata"]["uid"]
    owner = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "EdgeBroker", "name": edge, "uid": uid,
             "controller": True, "blockOwnerDeletion": True}  # fmt: skip
    for kind, suffix in OF_AN_EDGE:
        patch = json.dumps({"metadata": {"ownerReferences": [owner]}})
        cluster.kubectl("patch", kind, f"{edge}{suffix}", "--type=merge", "-p", patch)
    patch = json.dumps({"metadata": {"finalizers": [names.FINALIZER]}})
    cluster.kubectl("patch", "edgebroker", edge, "--type=merge", "-p", patch)


def install(cluster: Cluster) -> None:
    sets = [f"image.tag={TAG}", f"brokerImage.tag={TAG}", "crds.install=false"]
    arguments = [part for each in sets for part in ("--set", each)]
    cluster.helm("install", "plimsoll", str(ROOT / "helm" / "plimsoll"), *arguments)
    cluster.helm("test", "plimsoll")


def test_a_fleet_with_finalizers_is_taken_over_and_its_namespace_can_be_deleted(installed: Cluster):
    installed.kubectl("apply", "--server-side", "-f", str(ROOT / "examples" / "kubernetes" / "quickstart.yaml"))
    installed.kubectl("wait", "bc/east", "--for=condition=Ready", "--timeout=2m", seconds=150)
    installed.helm("uninstall", "plimsoll", "--wait")
    for edge in EDGES:
        make_old(installed, edge)
    pods = {edge: installed.get("pod", f"{edge}-0")["metadata"]["uid"] for edge in EDGES}
    assert finalizers(installed) == [names.FINALIZER] * 3
    assert owners(installed, "edge-0") == {"EdgeBroker"}
    install(installed)
    installed.wait(lambda: finalizers(installed) == [], 60, "the finalizers to go")
    installed.wait(
        lambda: all(owners(installed, edge) == {"BrokerCluster"} for edge in EDGES), 60, "the cluster to own all"
    )
    installed.wait(lambda: installed.is_true("brokercluster", "east", "Ready"), 60, "the cluster to be ready")
    found = {edge: installed.get("pod", f"{edge}-0")["metadata"]["uid"] for edge in EDGES}
    assert found == pods, "brokers ran on"
    run("kubectl", "delete", "namespace", installed.namespace, "--timeout=120s", seconds=150)


def test_the_line_of_the_page_frees_a_namespace_that_hangs(cluster: Cluster):
    """Without an operator the finalizer of an earlier version keeps a namespace; docs/operator.md has the line."""
    name = f"{cluster.namespace}-old"
    run("kubectl", "create", "namespace", name)
    old = Cluster(name)
    old.apply({"apiVersion": "plimsoll.dev/v1alpha1", "kind": "EdgeBroker",
               "metadata": {"name": "edge-0", "finalizers": [names.FINALIZER]},
               "spec": {"clusterRef": {"name": "east"}, "profile": "standard"}})  # fmt: skip
    run("kubectl", "delete", "namespace", name, "--wait=false")
    old.wait(lambda: "deletionTimestamp" in old.get("edgebroker", "edge-0")["metadata"], 60, "the deletion to begin")
    page = (ROOT / "docs" / "operator.md").read_text(encoding="utf-8")
    (line,) = [line.strip() for line in page.splitlines() if "finalizers" in line and "kubectl" in line]
    run("bash", "-c", line.replace("-n ships", f"-n {name}"))
    run("kubectl", "wait", f"namespace/{name}", "--for=delete", "--timeout=60s", seconds=70)
