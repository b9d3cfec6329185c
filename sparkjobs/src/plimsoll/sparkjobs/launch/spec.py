"""The settings of a launch, and what all launchers share: names, labels, arguments of the job, restrictions of pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

Object = dict[str, Any]
VolumeAccess = Literal["ReadWriteOnce", "ReadWriteMany"]

SPARK_VERSION: Final = "4.3.0"
JOB_FILE: Final = "/opt/plimsoll/job.py"
"""The file for `spark-submit` in the image; its first argument is the job."""
DATA_PATH: Final = "/data"
UID: Final = 185
LEAST_PARTITIONS: Final = 2
COMPONENT: Final = "spark"
PART_LABEL, DRIVER_PART = "plimsoll.dev/part", "driver"
"""The label of a driver's pod, whichever launcher created it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkLaunch:
    """Settings of one fleet's jobs. `claim`: the volume that collectors write and jobs read.

    With `access` ReadWriteOnce all pods that use it are kept on the collectors' node; across nodes it must be
    ReadWriteMany. `owner`: an owner reference, with which the objects are deleted. `lag_seconds`: the collectors'
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


def state_partitions(launch: SparkLaunch) -> int:
    """Partitions of the live job's state, one for each core: each costs a task in every batch."""
    return max(LEAST_PARTITIONS, launch.executors)


def live_name(fleet: str) -> str:
    """The name of the object that runs a fleet's live job; the same for all kinds."""
    return f"{fleet}-spark-live"


def live_arguments(launch: SparkLaunch, root: str = DATA_PATH) -> list[str]:
    """The arguments of the live job, after its file."""
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
    """A pod's part of the pod security level `restricted`, and a group that may write to the volume."""
    return {
        "runAsNonRoot": True, "runAsUser": UID, "runAsGroup": UID, "fsGroup": UID,
        "fsGroupChangePolicy": "OnRootMismatch", "seccompProfile": {"type": "RuntimeDefault"},
    }  # fmt: skip


def container_security() -> Object:
    return {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip


def volumes(launch: SparkLaunch) -> list[Object]:
    """The data, and /tmp, where Spark unpacks libraries and spills; everything else is read-only."""
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
    """Where pods may run: on the collectors' node, if only one node can mount the volume."""
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
