"""What a launch is told, and what all ways of launching share: names, labels, the job's own arguments, restrictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

Object = dict[str, Any]
VolumeAccess = Literal["ReadWriteOnce", "ReadWriteMany"]

SPARK_VERSION: Final = "4.3.0"
JOB_FILE: Final = "/opt/plimsoll/job.py"
"""In the image: the file that `spark-submit` is given; its first argument names the job."""
DATA_PATH: Final = "/data"
UID: Final = 185
COMPONENT: Final = "spark"
PART_LABEL, DRIVER_PART = "plimsoll.dev/part", "driver"
"""The label of a driver's pod, whoever has made it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkLaunch:
    """One fleet's jobs. `claim`: the volume that collectors write to and jobs read.

    With `access` ReadWriteOnce all pods that use it are kept on one node, the collectors'; across nodes it has to be
    ReadWriteMany. `owner`: the object that goes with them, as an owner reference. `lag_seconds`: the collectors'
    interval.
    """

    fleet: str
    namespace: str
    image: str
    claim: str = ""
    access: VolumeAccess = "ReadWriteOnce"
    executors: int = 2
    trigger_seconds: int = 5
    lag_seconds: int = 10
    driver_memory_mb: int = 700
    executor_memory_mb: int = 512
    owner: Mapping[str, Any] | None = None
    tolerations: Sequence[Object] = ()
    pull_secrets: Sequence[str] = ()

    @property
    def name(self) -> str:
        return f"{self.fleet}-spark"

    @property
    def live_name(self) -> str:
        return live_name(self.fleet)


def live_name(fleet: str) -> str:
    """The object that runs a fleet's live job, whatever its kind."""
    return f"{fleet}-spark-live"


def live_arguments(launch: SparkLaunch, root: str = DATA_PATH) -> list[str]:
    """Of the live job, behind its file."""
    return [
        "live", root, "--fleet", launch.fleet, "--trigger", str(launch.trigger_seconds), "--lag",
        str(launch.lag_seconds),
    ]  # fmt: skip


def labels(launch: SparkLaunch, job: str) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "plimsoll-spark",
        "app.kubernetes.io/instance": launch.fleet,
        "app.kubernetes.io/component": COMPONENT,
        "app.kubernetes.io/part-of": launch.fleet,
        "app.kubernetes.io/managed-by": "plimsoll-operator",
        "plimsoll.dev/fleet": launch.fleet,
        "plimsoll.dev/job": job,
    }


def metadata(launch: SparkLaunch, name: str, job: str) -> Object:
    found: Object = {"name": name, "namespace": launch.namespace, "labels": labels(launch, job)}
    if launch.owner is not None:
        found["ownerReferences"] = [dict(launch.owner)]
    return found


def pod_security() -> Object:
    """What the level `restricted` of pod security asks of a pod, and a group that may write to the volume."""
    return {
        "runAsNonRoot": True, "runAsUser": UID, "runAsGroup": UID, "fsGroup": UID,
        "fsGroupChangePolicy": "OnRootMismatch", "seccompProfile": {"type": "RuntimeDefault"},
    }  # fmt: skip


def container_security() -> Object:
    return {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip


def volumes(launch: SparkLaunch) -> list[Object]:
    """Spark unpacks libraries and spills to /tmp; all else is read-only."""
    found: list[Object] = [{"name": "tmp", "emptyDir": {}}]
    if launch.claim:
        found.append({"name": "data", "persistentVolumeClaim": {"claimName": launch.claim}})
    return found


def mounts(launch: SparkLaunch) -> list[Object]:
    found: list[Object] = [{"name": "tmp", "mountPath": "/tmp"}]  # noqa: S108  # inside the pod
    if launch.claim:
        found.append({"name": "data", "mountPath": DATA_PATH})
    return found


def scheduling(launch: SparkLaunch) -> Object:
    """Where pods may run: beside the collectors, if one node alone can have the volume."""
    tolerated: Object = {"tolerations": list(launch.tolerations)} if launch.tolerations else {}
    if not launch.claim or launch.access == "ReadWriteMany":
        return tolerated
    beside = {
        "labelSelector": {
            "matchLabels": {"plimsoll.dev/fleet": launch.fleet, "app.kubernetes.io/component": "collector"}
        },
        "topologyKey": "kubernetes.io/hostname",
    }
    return {**tolerated, "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [beside]}}}
