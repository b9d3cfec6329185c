"""Spark in pods, launched by the operator for a fleet under load: a driver that dies, one that cannot start, none.

The tests of this module continue one another. They run if PLIMSOLL_SPARK_IMAGE_TAG names an image of Spark in the
cluster; files go to a volume of the default storage class, or of this machine if there is none and the cluster's node
is this machine.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.cluster import ROOT, TAG, Cluster, CommandError, Crowd, run
from tests.images import tag

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.e2e,
    pytest.mark.images("broker", "operator", "collector", "spark"),
    pytest.mark.timeout(900),
]

Object = dict[str, Any]
SUBSCRIBERS = 20
PER_SECOND = 20.0
START_SECONDS = 300.0
"""A first driver pulls its image, and shares the machine with all other starting processes."""
DEAD_SECONDS, STARTING_SECONDS = 90.0, 180.0
"""A snapshot of this age requires another driver, unless the present one has started since."""
BACK_SECONDS = 360.0
"""From the deletion of a driver to the next snapshot, at the latest; how long it takes is printed."""
ASK = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:7410/v1/snapshot').read().decode())"


def manifest(kind: str, name: str, **spec: Any) -> Object:
    return {"apiVersion": "plimsoll.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def fleet_with(**spark: Any) -> Object:
    collectors = {"replicas": 1, "interval": "2s", "volumeClaim": "data"}
    telemetry = {"reportInterval": "1s", "collectors": collectors, "spark": {"trigger": "2s", **spark}}
    return manifest("BrokerFleet", "fleet", security={"clients": [{"name": "crowd"}]}, telemetry=telemetry)


def claim(storage_class: str | None) -> Object:
    spec: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    if storage_class is not None:
        spec["storageClassName"] = storage_class
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": spec}


def local_volume(name: str, folder: Path, node: str) -> Object:
    """A folder of this machine; unlike a hostPath it gets the group of the pod that mounts it."""
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    return {
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": name,
            "persistentVolumeReclaimPolicy": "Retain", "local": {"path": str(folder)},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        },
    }  # fmt: skip


def has_default_class() -> bool:
    mark = "storageclass.kubernetes.io/is-default-class"
    found = json.loads(run("kubectl", "get", "storageclass", "-o", "json"))["items"]
    return any((each["metadata"].get("annotations") or {}).get(mark) == "true" for each in found)


@pytest.fixture(scope="module")
def volume(cluster: Cluster) -> Iterator[str]:
    """The claim `data`."""
    if has_default_class():
        cluster.apply(claim(None))
        yield "data"
        return
    folder = Path(tempfile.mkdtemp(prefix="plimsoll-e2e-", dir="/var/tmp"))
    node = json.loads(run("kubectl", "get", "nodes", "-o", "json"))["items"][0]["metadata"]["labels"]
    cluster.apply(local_volume(cluster.namespace, folder, node["kubernetes.io/hostname"]), claim(cluster.namespace))
    yield "data"
    run("kubectl", "delete", "persistentvolume", cluster.namespace, "--wait=false")
    shutil.rmtree(folder, ignore_errors=True)  # pods may still write there


@pytest.fixture(scope="module")
def fleet(cluster: Cluster, volume: str) -> Cluster:
    sets = [
        f"image.tag={TAG}", f"brokerImage.tag={TAG}", f"sparkImage.tag={tag('spark')}",
        f"collectorImage.tag={tag('collector')}", "crds.install=false", "rbac.spark=true",
    ]  # fmt: skip
    arguments = [part for each in sets for part in ("--set", each)]
    cluster.helm("install", "plimsoll", str(ROOT / "helm" / "plimsoll"), *arguments, "--wait", "--timeout", "120s")
    edges = [{"name": "edge", "profile": "quick", "replicas": 2}]
    cluster.apply(
        fleet_with(), manifest("HardwareProfile", "quick", cpu="500m", memory="96Mi"),
        manifest("BrokerCluster", "east", head={"profile": "quick"}, edges=edges),
    )  # fmt: skip
    return cluster


@pytest.fixture(scope="module")
def crowd(fleet: Cluster) -> Iterator[Crowd]:
    """Publishes all the time: no delivery is lost, with or without Spark."""
    fleet.wait(lambda: fleet.is_true("brokercluster", "east", "Ready"), 180, "the cluster to be ready")
    crowd = Crowd(fleet, "crowd", "east", SUBSCRIBERS, PER_SECOND)
    yield crowd
    found = crowd.verdict()
    assert found["ok"], found


def telemetry(fleet: Cluster) -> Object:
    found: Object = fleet.get("brokerfleet", "fleet").get("status", {}).get("telemetry", {})
    return found


def reason(fleet: Cluster) -> str:
    return str(fleet.condition("brokerfleet", "fleet", "SparkReady").get("reason", ""))


def snapshot(fleet: Cluster) -> Object:
    """The snapshot that the collector serves: Spark's, or its own fold."""
    found: Object = json.loads(fleet.kubectl("exec", "fleet-telemetry-0", "-c", "collector", "--", "python", "-c", ASK))
    return found


def pods(fleet: Cluster, labels: str) -> list[Object]:
    found: Object = json.loads(fleet.kubectl("get", "pods", "-l", labels, "-o", "json"))
    return [pod for pod in found["items"] if "deletionTimestamp" not in pod["metadata"]]


def decided_by_spark(fleet: Cluster) -> Object:
    """The telemetry part of a fleet's status while Spark's snapshot is used; empty while it is not."""
    found = telemetry(fleet)
    return found if found.get("source") == "Spark" and "snapshotAgeSeconds" in found else {}


def test_a_fleet_that_asks_for_spark_is_decided_by_its_snapshot(fleet: Cluster, crowd: Crowd):
    began = time.monotonic()
    found = fleet.wait(lambda: decided_by_spark(fleet), START_SECONDS, "Spark's snapshot to be used")
    print(f"decided by Spark {time.monotonic() - began:.0f} s after the fleet served; {found}")
    assert found["snapshotAgeSeconds"] <= 45
    assert (found["brokersSeen"], found["brokersExpected"]) == (3, 3)
    assert found["spark"]["launcher"] == "Kubernetes"
    fleet.wait(lambda: reason(fleet) == "Fresh", 30, "the condition to say so")
    (driver,) = pods(fleet, "plimsoll.dev/part=driver")
    assert found["spark"]["driver"] == driver["metadata"]["name"]
    executors = pods(fleet, "spark-role=executor")
    assert [pod["status"]["phase"] for pod in executors] == ["Running"] * 2
    owners = {owner["uid"] for pod in executors for owner in pod["metadata"]["ownerReferences"]}
    assert owners == {driver["metadata"]["uid"]}
    assert {item["metadata"]["name"] for item in fleet.get("cronjobs")} == {
        f"fleet-spark-{job}" for job in ("oracle", "compact", "history", "accuracy")
    }


def test_a_driver_that_is_deleted_is_followed_by_another_that_goes_on_from_its_checkpoint(fleet: Cluster, crowd: Crowd):
    (driver,) = pods(fleet, "plimsoll.dev/part=driver")
    before = snapshot(fleet)
    assert before["source"] == "spark"
    deleted, deleted_us = time.monotonic(), time.time_ns() // 1000
    fleet.kubectl("delete", "pod", driver["metadata"]["name"], "--wait=false")
    said: set[str] = set()

    def restarted() -> Object:
        said.add(telemetry(fleet).get("source", ""))
        now = snapshot(fleet)
        (latest,) = pods(fleet, "plimsoll.dev/part=driver")
        # What the previous driver has written in its last moments does not count.
        is_new = now["source"] == "spark" and now["written_us"] > deleted_us + 10_000_000
        return now if is_new and latest["metadata"]["uid"] != driver["metadata"]["uid"] else {}

    after = fleet.wait(restarted, BACK_SECONDS, "the next driver's snapshot")
    took, busy = time.monotonic() - deleted, os.getloadavg()[0] / (os.cpu_count() or 1)
    print(f"next snapshot {took:.0f} s after the driver was deleted, load {busy:.1f}; decided by {sorted(said)}")
    assert after["run_us"] == before["run_us"], "it goes on from the checkpoint"
    assert after["batch"] > before["batch"]
    counts = after["counts"]
    assert counts["rows_in"] == counts["counted"] + counts["duplicate"] + counts["late"] + counts["invalid"]
    fleet.wait(lambda: decided_by_spark(fleet), 60, "Spark's snapshot to be used again")


def test_a_driver_that_runs_and_writes_nothing_is_restarted(fleet: Cluster, crowd: Crowd):
    """It is stopped as if it hung: its pod is Running all the time."""
    (driver,) = pods(fleet, "plimsoll.dev/part=driver")
    name, begun = driver["metadata"]["name"], time.monotonic()
    fleet.kubectl("exec", name, "--", "pkill", "-STOP", "java")
    fleet.wait(lambda: telemetry(fleet).get("source") == "Fold", 120, "the fold to be used")
    assert telemetry(fleet)["reason"].startswith("Stale: ")
    assert [pod["status"]["phase"] for pod in pods(fleet, "plimsoll.dev/part=driver")] == ["Running"]

    def another() -> bool:
        found = [pod["metadata"]["uid"] for pod in pods(fleet, "plimsoll.dev/part=driver")]
        return bool(found) and driver["metadata"]["uid"] not in found

    fleet.wait(another, DEAD_SECONDS + STARTING_SECONDS, "another driver")
    print(f"another driver {time.monotonic() - begun:.0f} s after the first hung")
    events = fleet.kubectl("get", "events", "-o", "jsonpath={range .items[*]}{.reason}{' '}{end}").split()
    assert "SparkRestarting" in events
    fleet.wait(lambda: decided_by_spark(fleet), START_SECONDS, "Spark's snapshot to be used again")
    assert telemetry(fleet)["spark"]["restarts"] == 1


def test_without_a_driver_the_fleet_is_decided_by_the_fold_and_says_so(fleet: Cluster, crowd: Crowd):
    fleet.apply(fleet_with(image="plimsoll/spark:missing"))
    fleet.wait(lambda: telemetry(fleet).get("source") == "Fold", 120, "the fold to be used")
    found = telemetry(fleet)
    assert found["reason"].startswith("Stale: ")
    assert found["brokersSeen"] == found["brokersExpected"] == 3
    assert not fleet.is_true("brokerfleet", "fleet", "SparkReady")
    message = fleet.condition("brokerfleet", "fleet", "LoadDataFresh")["message"]
    assert message.endswith("clusters are compared by the collectors' fold")
    fleet.apply(fleet_with())
    began = time.monotonic()
    fleet.wait(lambda: decided_by_spark(fleet), START_SECONDS, "Spark's snapshot to be used again")
    print(f"decided by Spark again {time.monotonic() - began:.0f} s after its image was named")


def test_an_operator_for_spark_that_is_not_there_is_named(fleet: Cluster, crowd: Crowd):
    served = run("kubectl", "api-resources", "--api-group=spark.apache.org", "-o", "name")
    if served.strip():
        pytest.skip("the cluster has Apache's operator for Spark")
    fleet.apply(fleet_with(launcher="SparkApplication"))
    fleet.wait(lambda: reason(fleet) == "NotServed", 60, "the condition to say what is missing")
    fleet.wait(lambda: not pods(fleet, "plimsoll.dev/part=driver"), 60, "our own driver to go")


WATCHED = {"get", "list", "watch"}
SELDOM = {
    ("deployments", "patch"): "when an image or a setting changes",
    ("cronjobs", "patch"): "when an image or a setting changes",
    ("serviceaccounts", "patch"): "when another client has changed it",
    ("roles", "patch"): "when another client has changed it",
    ("rolebindings", "patch"): "when another client has changed it",
    ("pods", "create"): "needed by a driver, so the operator that grants it must have it",
    ("pods", "deletecollection"): "needed by a driver, so the operator that grants it must have it",
    ("sparkapplications", "create"): "where that operator is installed",
    ("sparkapplications", "patch"): "where that operator is installed",
    ("sparkapplications", "delete"): "where that operator is installed",
}
"""Rights for Spark that these tests do not use, and when they are needed."""
OF_SPARK = {"deployments", "cronjobs", "serviceaccounts", "roles", "rolebindings", "sparkapplications"}


def test_switched_off_nothing_of_it_is_left(fleet: Cluster, crowd: Crowd):
    fleet.apply(fleet_with(launcher="None"))

    def left() -> list[str]:
        kinds = "deployments,cronjobs,serviceaccounts,roles,rolebindings,configmaps,pods"
        found = fleet.kubectl("get", kinds, "-l", "app.kubernetes.io/component=spark", "-o", "name").split()
        return [name for name in found if name]

    fleet.wait(lambda: not left(), 90, "all of Spark to go")
    fleet.wait(lambda: reason(fleet) == "", 30, "the condition to go")
    asked = fleet.asked()
    assert {(resource, verb) for resource, verb, code in asked if code == 403} == set(), "rights are missing"
    used = {(resource, verb) for resource, verb, _ in asked}
    role = fleet.get("role", "plimsoll")
    granted = {(resource, verb) for rule in role["rules"] for resource in rule["resources"] for verb in rule["verbs"]}
    unused = {(r, v) for r, v in granted - used if r in OF_SPARK and v not in WATCHED}
    assert unused - SELDOM.keys() == set(), "rights that are not used"


def test_the_operator_refuses_nothing_that_a_crowd_is_owed(fleet: Cluster, crowd: Crowd):
    with pytest.raises(CommandError, match="launcher"):
        fleet.apply(fleet_with(launcher="Yarn"))
    assert crowd.progress()["behind"] < 10 * PER_SECOND
