"""A head with its log on a volume, in pods: it is deleted under load, and its subscribers notice nothing but a pause.

The volume is a folder of a node, for clusters without a provisioner. A pod with more rights than brokers have makes it
writable, in a namespace of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from tests.e2e.cluster import ROOT, TAG, Cluster, Crowd, run

pytestmark = [pytest.mark.cluster, pytest.mark.e2e, pytest.mark.timeout(600)]

SUBSCRIBERS = 50
PER_SECOND = 40.0
HEAD = "east-head"
DELETIONS = 3
Object = dict[str, Any]


def node_name() -> str:
    return run("kubectl", "get", "nodes", "-o", "jsonpath={.items[0].metadata.name}").strip()


def folder_maker(name: str, node: str, path: str) -> Object:
    """A pod that makes a folder of its node writable for brokers."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": name},
        "spec": {
            "restartPolicy": "Never",
            "nodeName": node,
            "automountServiceAccountToken": False,
            "volumes": [{"name": "log", "hostPath": {"path": path, "type": "DirectoryOrCreate"}}],
            "containers": [{
                "name": "make",
                "image": f"plimsoll/broker:{TAG}",
                "imagePullPolicy": "IfNotPresent",
                "command": ["python", "-c", "import os; os.chmod('/log', 0o777)"],
                "securityContext": {"runAsUser": 0, "runAsNonRoot": False},
                "volumeMounts": [{"name": "log", "mountPath": "/log"}],
            }],
        },
    }  # fmt: skip


def volume(name: str, node: str, path: str) -> Object:
    """A folder of a node as a volume, for claims of the storage class `name`."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": name,
            "hostPath": {"path": path, "type": "Directory"},
            "nodeAffinity": {
                "required": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
                    ]
                }
            },
        },
    }


@pytest.fixture(scope="module")
def storage_class(installed: Cluster) -> Iterator[str]:
    """A class with one volume."""
    name, node = f"{installed.namespace}-log", node_name()
    path = f"/var/lib/{name}"
    run("kubectl", "create", "namespace", name)
    try:
        run("kubectl", "apply", "-f", "-", text=yaml.safe_dump(folder_maker(name, node, path)))
        run("kubectl", "-n", name, "wait", f"pod/{name}", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=90s")
        run("kubectl", "apply", "-f", "-", text=yaml.safe_dump(volume(name, node, path)))
        yield name
    finally:
        run("kubectl", "delete", "namespace", name, "--ignore-not-found", "--wait=false")
        run("kubectl", "delete", "persistentvolume", name, "--ignore-not-found", "--wait=false")


@pytest.fixture(scope="module")
def fleet(installed: Cluster, storage_class: str) -> Cluster:
    """The quick start's fleet, with the log of its head on the volume."""
    objects = list(yaml.safe_load_all((ROOT / "examples" / "kubernetes" / "quickstart.yaml").read_text()))
    cluster = next(item for item in objects if item["kind"] == "BrokerCluster")
    cluster["spec"]["head"]["log"] = {
        "sync": "Always",
        "disk": {"size": "256Mi", "storageClass": storage_class, "retain": False},
    }
    installed.apply(*objects)
    installed.wait(lambda: installed.is_true("brokercluster", "east", "Ready"), 180, "the cluster to be ready")
    return installed


def epoch(fleet: Cluster) -> int:
    return int(fleet.get("brokercluster", "east")["status"]["head"]["epoch"])


def test_the_log_of_the_head_is_on_its_volume(fleet: Cluster, storage_class: str):
    claim = fleet.get("persistentvolumeclaim", f"log-{HEAD}-0")
    assert claim["status"]["phase"] == "Bound"
    assert claim["spec"]["volumeName"] == storage_class
    fleet.wait(lambda: fleet.is_true("brokercluster", "east", "LogSafe"), 60, "the condition of the log")


def test_a_head_that_is_deleted_loses_nothing_and_leaves_no_gap(fleet: Cluster):
    crowd = Crowd(fleet, "traders", "east", SUBSCRIBERS, PER_SECOND)
    for _ in range(DELETIONS):
        before = epoch(fleet)
        fleet.kubectl("delete", "pod", f"{HEAD}-0", "--grace-period=0", "--force")
        fleet.wait(lambda before=before: epoch(fleet) > before, 120, "the head to come back")
        fleet.wait(lambda: fleet.is_true("brokercluster", "east", "Ready"), 120, "the cluster to be ready")
        fleet.wait(lambda: sum(crowd.at().values()) == SUBSCRIBERS, 60, "all to be served")
    found = crowd.verdict()
    assert (found["lost"], found["duplicated"], found["reordered"], found["gaps"]) == (0, 0, 0, 0), found
    assert found["ok"], found
