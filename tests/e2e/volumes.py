"""A folder of a node as a volume, for clusters without a provisioner.

A pod with more rights than brokers have makes it writable, in a namespace of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import yaml
from tests.e2e.cluster import TAG, Object, run


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


def volume(name: str, node: str, path: str, storage_class: str = "", claim: Object | None = None) -> Object:
    """A folder of a node as a volume, for claims of a storage class, by default `name`, or for one of them alone."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            **({} if claim is None else {"claimRef": claim}),
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": storage_class or name,
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


@contextmanager
def node_volume(name: str) -> Iterator[str]:
    """One volume for claims of the storage class `name`; it is deleted in the end, and its folder stays."""
    node, path = node_name(), f"/var/lib/{name}"
    run("kubectl", "create", "namespace", name)
    try:
        run("kubectl", "apply", "-f", "-", text=yaml.safe_dump(folder_maker(name, node, path)))
        run("kubectl", "-n", name, "wait", f"pod/{name}", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=90s")
        run("kubectl", "apply", "-f", "-", text=yaml.safe_dump(volume(name, node, path)))
        yield name
    finally:
        run("kubectl", "delete", "namespace", name, "--ignore-not-found", "--wait=false")
        run("kubectl", "delete", "persistentvolume", name, "--ignore-not-found", "--wait=false")
