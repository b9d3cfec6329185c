"""How the driver of channels is launched with executors: what it takes, its size, and what keeps it from running.

Executors get new rows from the driver and read everything else on the volume, so they need neither code of ours nor
credentials: they mount the volume, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from plimsoll.core.spec import ResourceProblem, Resources
from plimsoll.operator import names
from plimsoll.operator.names import Object
from plimsoll.operator.objects import dataset_pods
from plimsoll.operator.objects.dataset_pods import DatasetPod
from plimsoll.operator.objects.manifest import tolerations
from plimsoll.operator.objects.spark_jobs import APPLICATIONS, NOT_ALLOWED, SparkObstacle
from plimsoll.operator.settings import OperatorSettings
from plimsoll.sparkjobs.launch.operator_manifests import DRIVER_CONTAINER, Submission
from plimsoll.sparkjobs.launch.spec import CHANNELS_FILE, DriverLaunch

ARGUMENTS: Final = ("--config", f"{names.CONFIG_FOLDER}/{names.CONFIG_FILE}")
HEAP_MB: Final = 900
"""The heap of the driver's Java virtual machine."""
LEAST_MEMORY_MB: Final = 2300
CHANNEL_MEMORY_MB: Final = 120
"""What a channel needs: a process of Python, which hands its new rows to Spark."""
CHANNEL_STEP: Final = 4
NO_SHARED_VOLUME: Final = SparkObstacle(
    "NoDatasetVolume",
    "executors read feeds, tables and copies from stores on the volume of their driver: make a PersistentVolumeClaim,"
    " and name it in datasets.volumeClaim; or set datasets.spark.launcher to Process",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelLaunch(DriverLaunch):
    """Settings of the driver of one fleet's channels, and of its executors."""

    @property
    def name(self) -> str:
        return driver_name(self.fleet)

    @property
    def job(self) -> str:
        return "channels"

    @property
    def beside(self) -> Object:
        return dataset_pods.beside(self.fleet)

    @property
    def has_writing_executors(self) -> bool:
        return False


def driver_name(fleet: str) -> str:
    """The StatefulSet of a fleet's driver, or its SparkApplication."""
    return dataset_pods.service_name(f"{fleet}-channels")


def driver_memory_mb(channels: int) -> int:
    """The most memory of a driver's pod with this number of channels, in MiB.

    It grows by several channels at once, since each change of it restarts the pod.
    """
    steps = -(-max(0, channels - CHANNEL_STEP) // CHANNEL_STEP)
    return LEAST_MEMORY_MB + steps * CHANNEL_STEP * CHANNEL_MEMORY_MB


def has_executors(resources: Resources) -> bool:
    """Whether channels run on executors in pods of their own."""
    return resources.fleet.spec.datasets.spark.launcher != "Process"


def launch_obstacle(resources: Resources, settings: OperatorSettings) -> SparkObstacle | None:
    """Why a fleet's driver cannot be launched, as far as its own objects and settings show."""
    if not has_executors(resources):
        return None
    if not settings.spark:
        return NOT_ALLOWED
    return None if resources.fleet.spec.datasets.volume_claim else NO_SHARED_VOLUME


def standby_problems(resources: Resources) -> Iterator[ResourceProblem]:
    """A standby of the driver, which is a process of one machine."""
    if resources.fleet.spec.datasets.spark.standby_driver:
        found = "on Kubernetes the driver of channels is one pod, which is replaced when it ends"
        remedy = "Leave it out; a standby of the driver runs on one machine only."
        yield resources.fleet.problem(("spec", "datasets", "spark", "standbyDriver"), found, remedy)


def driver_image(resources: Resources, settings: OperatorSettings) -> str:
    """The image of the driver and its executors: of the channels, of the jobs over telemetry, or the operator's."""
    fleet = resources.fleet.spec
    of_jobs = fleet.telemetry.spark.image if fleet.telemetry.spark is not None else ""
    return fleet.datasets.spark.image or of_jobs or settings.spark_image


def launch_request(resources: Resources, settings: OperatorSettings, metadata: Object) -> ChannelLaunch:
    """How the driver is launched. `metadata`: namespace and owner of its objects."""
    datasets, memory_mb = resources.fleet.spec.datasets, driver_memory_mb(len(resources.channels))
    return ChannelLaunch(
        fleet=resources.fleet.name,
        namespace=metadata["namespace"],
        image=driver_image(resources, settings),
        claim=datasets.volume_claim,
        access=datasets.volume_access,
        executors=datasets.spark.executors,
        driver_memory_mb=HEAP_MB,
        driver_overhead_mb=memory_mb - HEAP_MB,
        owner=next(iter(metadata["ownerReferences"]), None),
        pull_secrets=settings.pull_secrets,
        tolerations=tolerations(resources.fleet.spec.pods.lost_node_after.seconds),
    )


def application(resources: Resources, launch: ChannelLaunch, wanted: DatasetPod) -> Object:
    """The driver as an object of an operator for Spark. `wanted`: its pod, if it were a StatefulSet."""
    template = dataset_pods.pod_template(resources, wanted)
    (container,) = template["spec"]["containers"]
    made_by_others = {"image", "imagePullPolicy", "command", "resources"}
    kept = {name: value for name, value in container.items() if name not in made_by_others}
    submitted = {"name": DRIVER_CONTAINER}
    return APPLICATIONS[resources.fleet.spec.datasets.spark.launcher](
        Submission(
            launch=launch, name=launch.name, file=CHANNELS_FILE, arguments=ARGUMENTS, driver_cpu=wanted.cpu,
            driver={**template, "spec": {**template["spec"], "containers": [kept | submitted]}},
        )
    )  # fmt: skip
