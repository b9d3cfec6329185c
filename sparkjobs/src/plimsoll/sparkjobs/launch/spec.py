"""The settings of a launch, and what all launchers share: names, labels, arguments of the job, restrictions of pods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

Object = dict[str, Any]
VolumeAccess = Literal["ReadWriteOnce", "ReadWriteMany"]

SPARK_VERSION: Final = "4.3.0"
JOB_FILE: Final = "/opt/plimsoll/job.py"
"""The file for `spark-submit` in the image; its first argument is the job."""
CHANNELS_FILE: Final = "/opt/plimsoll/channels.py"
"""The file for `spark-submit` that runs the driver of channels."""
SUBMIT_VARIABLE: Final = "PYSPARK_SUBMIT_ARGS"
"""The variable with which Python's own Spark is given options of `spark-submit`."""
DATA_PATH: Final = "/data"
UID: Final = 185
LEAST_PARTITIONS: Final = 2
COMPONENT: Final = "spark"
FLEET_LABEL, JOB_LABEL = "plimsoll.dev/fleet", "plimsoll.dev/job"
LIVE_FLEET_LENGTH: Final = 41
"""Operators for Spark label pods with the name of the object, and append to it for the names of Services."""
PART_LABEL, DRIVER_PART = "plimsoll.dev/part", "driver"
"""The label of the live job's driver, whichever launcher created it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverLaunch(ABC):
    """Settings of a driver and of its executors in pods of their own. `claim`: the volume that all of them mount.

    With `access` ReadWriteOnce they are kept on the node of the pods that use the volume, too; across nodes it must be
    ReadWriteMany. `owner`: an owner reference, with which the objects are deleted. `driver_memory_mb`: the heap;
    `driver_overhead_mb`: what the driver needs beside it.
    """

    fleet: str
    namespace: str
    image: str
    claim: str = ""
    access: VolumeAccess = "ReadWriteOnce"
    executors: int = 2
    driver_memory_mb: int = 700
    driver_overhead_mb: int = 500
    executor_memory_mb: int = 512
    owner: Mapping[str, Any] | None = None
    tolerations: Sequence[Object] = ()
    pull_secrets: Sequence[str] = ()

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the driver's account, with which names of other objects begin."""

    @property
    @abstractmethod
    def job(self) -> str:
        """What the driver does, as a label."""

    @property
    @abstractmethod
    def beside(self) -> Object:
        """A selector of the pods that use the volume, too."""

    @property
    @abstractmethod
    def has_writing_executors(self) -> bool:
        """Whether executors write to the volume."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkLaunch(DriverLaunch):
    """Settings of the jobs over one fleet's telemetry. `lag_seconds`: the collectors' interval."""

    trigger_seconds: int = 5
    lag_seconds: int = 10

    @property
    def name(self) -> str:
        return f"{self.fleet}-spark"

    @property
    def job(self) -> str:
        return "live"

    @property
    def beside(self) -> Object:
        return {"matchLabels": {FLEET_LABEL: self.fleet, "app.kubernetes.io/component": "collector"}}

    @property
    def has_writing_executors(self) -> bool:
        return True  # the state of the live job

    @property
    def live_name(self) -> str:
        return live_name(self.fleet)


def shuffle_partitions(launch: DriverLaunch) -> int:
    """Partitions after a shuffle, and of state: one for each core, as each costs a task in every batch."""
    return max(LEAST_PARTITIONS, launch.executors)


def live_name(fleet: str) -> str:
    """The name of the object that runs a fleet's live job; the same for all kinds. A namespace has one fleet."""
    return f"{fleet[:LIVE_FLEET_LENGTH]}-spark-live"


def live_arguments(launch: SparkLaunch, root: str = DATA_PATH) -> list[str]:
    """The arguments of the live job, after its file."""
    return [
        "live", root, "--fleet", launch.fleet, "--trigger", str(launch.trigger_seconds), "--lag",
        str(launch.lag_seconds),
    ]  # fmt: skip


def labels(launch: DriverLaunch, job: str) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "plimsoll-spark",
        "app.kubernetes.io/instance": launch.fleet,
        "app.kubernetes.io/component": COMPONENT,
        "app.kubernetes.io/part-of": launch.fleet,
        "app.kubernetes.io/managed-by": "plimsoll-operator",
        FLEET_LABEL: launch.fleet,
        JOB_LABEL: job,
    }


def metadata(launch: DriverLaunch, name: str, job: str) -> Object:
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


def volumes(launch: DriverLaunch) -> list[Object]:
    """The data, and /tmp, where Spark unpacks libraries and spills; everything else is read-only."""
    found: list[Object] = [{"name": "tmp", "emptyDir": {}}]
    if launch.claim:
        found.append({"name": "data", "persistentVolumeClaim": {"claimName": launch.claim}})
    return found


def mounts(launch: DriverLaunch, *, writes: bool = True) -> list[Object]:
    found: list[Object] = [{"name": "tmp", "mountPath": "/tmp"}]  # noqa: S108  # inside the pod
    if launch.claim:
        found.append({"name": "data", "mountPath": DATA_PATH, **({} if writes else {"readOnly": True})})
    return found


def scheduling(launch: DriverLaunch) -> Object:
    """Where pods may run: beside the others of the volume, if only one node can mount the volume."""
    tolerated: Object = {"tolerations": list(launch.tolerations)} if launch.tolerations else {}
    if not launch.claim or launch.access == "ReadWriteMany":
        return tolerated
    beside = {"labelSelector": launch.beside, "topologyKey": "kubernetes.io/hostname"}
    return {**tolerated, "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [beside]}}}
