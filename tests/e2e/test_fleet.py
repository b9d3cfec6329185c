"""The whole story in pods: install, apply, overload, balance, scale, lose a pod, drain, change hardware, uninstall.

The tests of this module continue one another, under one set of applications whose every delivery is judged at the end.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from tests.e2e.cluster import ROOT, TAG, Cluster, CommandError, Crowd, manifest, profile

pytestmark = [pytest.mark.cluster, pytest.mark.e2e, pytest.mark.timeout(1800)]

CHART, EDGES = str(ROOT / "helm" / "plimsoll"), "edgebrokers.plimsoll.dev"
SUBSCRIBERS = 500
PER_SECOND = 20.0
Object = dict[str, Any]


DETECTION = {"interval": "2s", "reportsValidFor": "10s", "stabilizeFor": "4s"}
"""Detection and settling are quick; leases and heartbeats stay as they are, since pods may stall for seconds."""


def quickstart() -> list[Object]:
    """The quick start's fleet, with hardware that can be overloaded, and quick detection."""
    fleet, _, cluster = yaml.safe_load_all((ROOT / "examples" / "kubernetes" / "quickstart.yaml").read_text())
    fleet["spec"]["defaults"]["policy"]["detection"] = DETECTION
    cluster["spec"]["head"]["profile"], cluster["spec"]["edges"][0]["profile"] = "quick", "slow"
    return [fleet, profile("quick", 0), profile("slow", 60), cluster]


def broker_cluster(replicas: int, hardware: str = "slow") -> Object:
    edges = [{"name": "edge", "profile": hardware, "replicas": 3}]
    return manifest("BrokerCluster", "east", head={"profile": "quick"}, edges=edges, scale={"replicas": replicas})


@pytest.fixture(scope="module")
def fleet(installed: Cluster) -> Cluster:
    """One head and three edges, only one of which takes newcomers."""
    installed.apply(*quickstart())
    installed.wait(lambda: installed.is_true("brokercluster", "east", "Ready"), 120, "the cluster to be ready")
    seconds = time.monotonic() - installed.began_at
    print(f"from helm install, with helm test, to four brokers that are ready: {seconds:.1f} s")
    for edge in ("edge-1", "edge-2"):
        installed.plimsoll("cordon", edge)
    return installed


@pytest.fixture(scope="module")
def crowd(fleet: Cluster) -> Iterator[Crowd]:
    """Publishes all the time; in all tests nothing may be lost, repeated or reordered."""
    crowd = Crowd(fleet, "traders", "east", SUBSCRIBERS, PER_SECOND)
    yield crowd
    found = crowd.verdict()
    assert (found["lost"], found["duplicated"], found["reordered"], found["gaps"]) == (0, 0, 0, 0), found
    assert found["ok"], found
    assert found["delivered"] >= SUBSCRIBERS * found["sent"] - found["lost"]


def settled(cluster: Cluster, crowd: Crowd, edges: int) -> bool:
    """All subscribers are served, by this number of edges at most, all of which are ready."""
    at = crowd.at()
    names = {item["metadata"]["name"] for item in cluster.get("edgebrokers")}
    return sum(at.values()) == SUBSCRIBERS and set(at) <= names and len(names) == edges


def test_an_example_application_publishes_and_is_served(fleet: Cluster):
    text = (ROOT / "examples" / "kubernetes" / "applications" / "quotes.yaml").read_text()
    fleet.kubectl("apply", "-f", "-", text=text.replace("plimsoll/broker:dev", f"plimsoll/broker:{TAG}"))
    fleet.kubectl("wait", "pod/quotes", "--for=condition=Ready", "--timeout=90s")
    assert "AAPL" in fleet.kubectl("logs", "quotes")
    fleet.kubectl("delete", "pod", "quotes", "--grace-period=1")


def test_a_faulty_cluster_says_so_and_the_others_go_on(fleet: Cluster):
    fleet.apply(manifest("BrokerCluster", "bad", head={"profile": "absent"}))
    fleet.wait(lambda: fleet.condition("brokercluster", "bad", "Accepted").get("status") == "False", 30, "its fault")
    assert fleet.is_true("brokercluster", "east", "Accepted")
    assert "observedGeneration" not in fleet.get("brokercluster", "bad")["status"]
    fleet.kubectl("delete", "brokercluster", "bad")


def test_an_overloaded_edge_is_relieved_by_itself(fleet: Cluster, crowd: Crowd):
    assert crowd.at() == {"edge-0": SUBSCRIBERS}
    begun = time.monotonic()

    def succeeded() -> list[Object]:
        sessions = fleet.get("loadbalancingsessions")
        return [one for one in sessions if one.get("status", {}).get("progress", {}).get("moved", 0) > 0
                and one["status"].get("phase") == "Succeeded"]  # fmt: skip

    with fleet.watching("lbs") as watched:
        for edge in ("edge-1", "edge-2"):  # a session may take less time than kubectl needs to begin to watch
            fleet.plimsoll("uncordon", edge)
        [first, *_] = fleet.wait(succeeded, 180, "a session that moved subscribers to succeed")
        name = first["metadata"]["name"]
        phases = re.compile(rf"^{name} .* Execute +(\w+) ", re.MULTILINE)
        fleet.wait(lambda: "Succeeded" in phases.findall(watched()), 10, "the watch to say so")
        assert len(set(phases.findall(watched()))) > 1, "it shows the progress of the session"
    fleet.kubectl("wait", f"lbs/{first['metadata']['name']}", "--for=condition=Succeeded", "--timeout=10s")
    assert first["spec"]["trigger"]["broker"] == "edge-0"
    explained = fleet.plimsoll("explain", f"lbs/{first['metadata']['name']}")
    assert "Chosen by:   Padres" in explained
    fleet.wait(lambda: fleet.is_true("brokercluster", "east", "Balanced"), 240, "the cluster to be balanced")
    print(f"from overload to balanced: {time.monotonic() - begun:.1f} s")
    assert max(crowd.at().values()) < SUBSCRIBERS / 2


def test_it_grows_and_shrinks_under_load(fleet: Cluster, crowd: Crowd):
    fleet.kubectl("scale", "brokercluster/east", "--replicas=5")
    fleet.wait(lambda: len(fleet.get("edgebrokers")) == 5, 60, "five edges")
    fleet.wait(lambda: fleet.is_true("brokercluster", "east", "Ready"), 120, "five edges to be ready")
    fleet.kubectl("scale", "brokercluster/east", "--replicas=2")
    fleet.wait(lambda: settled(fleet, crowd, 2), 240, "two edges to serve all")


def test_a_deleted_pod_comes_back_and_nothing_is_lost(fleet: Cluster, crowd: Crowd):
    before = fleet.get("pod", "edge-1-0")["metadata"]["uid"]
    fleet.kubectl("delete", "pod", "edge-1-0", "--wait=false")
    fleet.wait(lambda: fleet.get("pod", "edge-1-0")["metadata"]["uid"] != before, 120, "another pod of its name")
    fleet.wait(lambda: fleet.is_true("brokercluster", "east", "Ready") and settled(fleet, crowd, 2), 180, "all again")


def test_an_edge_is_drained(fleet: Cluster, crowd: Crowd):
    fleet.plimsoll("drain", "edge-1")
    fleet.wait(lambda: crowd.at() == {"edge-0": SUBSCRIBERS}, 60, "all at the other edge")
    fleet.plimsoll("uncordon", "edge-1")


def test_other_hardware_comes_one_edge_at_a_time(fleet: Cluster, crowd: Crowd):
    edges = ("edge-0", "edge-1")

    def pods() -> dict[str, str]:
        return {edge: fleet.get("pod", f"{edge}-0")["metadata"]["uid"] for edge in edges}

    before = pods()
    fleet.apply(profile("fast", 10), broker_cluster(2, "fast"))
    fleet.wait(lambda: not set(pods().values()) & set(before.values()), 300, "both edges in new pods")
    fleet.wait(lambda: fleet.is_true("brokercluster", "east", "Ready") and settled(fleet, crowd, 2), 120, "all served")
    assert {fleet.get("edgebroker", edge)["status"]["profile"] for edge in edges} == {"fast"}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (manifest("HardwareProfile", "tiny", memory="1Mi"), "memory"),
        (manifest("LoadBalancingSession", "both", scope="Local", select={"count": 1, "sharePercent": 5}), "select"),
        (manifest("BrokerCluster", "own", head={"profile": "quick"}, neighbors=[{"name": "own"}]), "neighbor"),
    ],
)
def test_what_is_wrong_is_refused_with_a_clear_message(fleet: Cluster, wrong: Object, message: str):
    with pytest.raises(CommandError, match=message):
        fleet.apply(wrong)


WATCHED = {"list", "watch"}
SELDOM = {
    ("brokerclusters", "get"): "when a policy remembers something of its cluster",
    ("secrets", "get"): "when the name of a new one is taken",
    ("loadbalancingsessions", "get"): "when a write meets a newer version of the object",
    ("loadbalancingsessions", "delete"): "when the time of an object is over",
    ("events", "patch"): "when the same is said again",
    **{("bundles", verb): "when the policy of a cluster has bundles" for verb in ("create", "patch", "delete")},
    **{(f"{kind}/status", "update"): "when there is a feed or a channel" for kind in ("feeds", "channels")},
    ("configmaps", "delete"): "when collectors are switched off",
    ("secrets", "delete"): "when a client is taken out of the fleet",
    ("services", "patch"): "when a listener's port changes",
    ("services", "delete"): "when an address for the outside is not asked for any more",
    ("networkpolicies", "patch"): "when a listener's port changes",
    ("networkpolicies", "delete"): "when the last cluster goes",
    ("poddisruptionbudgets", "patch"): "when the operator may read nodes from now on",
    ("poddisruptionbudgets", "delete"): "when a cluster goes and its fleet stays",
}
"""Rights that these tests do not use, and when they are needed."""


def test_the_operator_has_the_rights_that_it_uses_and_no_others(fleet: Cluster, crowd: Crowd):
    """Watches are kopf's, and not counted: a right to watch is used wherever a kind is read."""
    asked = fleet.asked()
    assert {(resource, verb) for resource, verb, code in asked if code == 403} == set(), "rights are missing"
    used = {(resource, verb) for resource, verb, _ in asked}
    role = fleet.get("role", "plimsoll")
    granted = {(resource, verb) for rule in role["rules"] for resource in rule["resources"] for verb in rule["verbs"]}
    unused = {(r, v) for r, v in granted - used if v not in WATCHED}
    assert " ".join(f"{r}:{v}" for r, v in sorted(unused - SELDOM.keys())) == "", "rights that are not used"


def test_an_upgrade_brings_definitions_up_and_leaves_the_fleet_alone(fleet: Cluster, crowd: Crowd):
    """As after a release whose definition of edges had no columns yet."""

    def pods() -> set[str]:
        labelled = fleet.get("pods", selector="app.kubernetes.io/name=plimsoll-broker")
        return {item["metadata"]["uid"] for item in labelled}

    fleet.own_definitions()
    without = '[{"op": "remove", "path": "/spec/versions/0/additionalPrinterColumns"}]'
    fleet.kubectl("patch", "customresourcedefinition", EDGES, "--type=json", "-p", without)
    before, sent = pods(), crowd.progress()["sent"]
    fleet.helm("upgrade", "plimsoll", CHART, "--reuse-values", "--set", "crds.install=true",
               "--set", "podAnnotations.upgraded=yes", "--wait", "--timeout", "120s")  # fmt: skip
    definition = fleet.get("customresourcedefinition", EDGES)
    assert definition["spec"]["versions"][0]["additionalPrinterColumns"]
    assert definition["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    fleet.wait(lambda: crowd.progress()["sent"] > sent + 5 * PER_SECOND, 60, "five more seconds of publications")
    fleet.wait(lambda: fleet.is_true("brokercluster", "east", "Ready") and settled(fleet, crowd, 2), 60, "all served")
    assert pods() == before


def test_without_the_operator_the_fleet_goes_on(fleet: Cluster, crowd: Crowd):
    before = crowd.progress()["sent"]
    fleet.helm("uninstall", "plimsoll", "--wait")
    fleet.wait(lambda: crowd.progress()["sent"] > before + 5 * PER_SECOND, 60, "five more seconds of publications")
    assert crowd.progress()["behind"] < 10 * PER_SECOND
    assert len(fleet.get("statefulsets")) == 3
    assert fleet.get("customresourcedefinition", EDGES), "definitions are kept"
