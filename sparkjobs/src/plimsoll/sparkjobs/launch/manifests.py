"""Jobs as plain Kubernetes objects, without an operator for Spark. The driver pod creates its executors (client mode).

- live: a Deployment of one replica with the strategy `Recreate`, so that two drivers never work on one checkpoint. The
  executors end with the driver's pod; its successor continues from the checkpoint.
- oracle and compact hourly, history and accuracy daily: CronJobs of one pod, which need no rights.
- Without a volume shared by collectors and jobs, live can only be a container in the collector's pod (`live_sidecar`),
  with two cores and no executors.

What a driver needs for its executors is in `executors`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from plimsoll.sparkjobs.launch.executors import (
    DRIVER_CPU,
    DRIVER_PORT,
    TEMPLATE_FOLDER,
    TEMPLATE_HASH,
    driver_settings,
    executor_template,
    pod_field,
    service_account_objects,
    template_hash,
    template_name,
)
from plimsoll.sparkjobs.launch.live_job_health import START_SECONDS
from plimsoll.sparkjobs.launch.spec import (
    DATA_PATH,
    DRIVER_PART,
    FLEET_LABEL,
    JOB_FILE,
    JOB_LABEL,
    PART_LABEL,
    UID,
    Object,
    SparkLaunch,
    container_security,
    labels,
    live_arguments,
    metadata,
    mounts,
    pod_security,
    scheduling,
    volumes,
)
from plimsoll.telemetry.schema import CHECKPOINT, LATEST

SCHEDULES: Final = {"oracle": "7 * * * *", "compact": "22 * * * *", "history": "37 1 * * *", "accuracy": "47 1 * * *"}
SIDECAR: Final = "spark-live"
WAIT_SECONDS: Final = 60
"""A driver waits this long for its predecessor to release the checkpoint; meanwhile it makes its Spark session."""
CRON_NAME_LENGTH: Final = 52
"""Kubernetes appends the time of each run to a CronJob's name, which needs room for it."""


def all_objects(launch: SparkLaunch) -> list[Object]:
    """All objects of a fleet's jobs, to be applied in this order.

    Raises:
        ValueError: no volume is named; use `live_sidecar` then.

    """
    if not launch.claim:
        raise ValueError("jobs in pods of their own need the collectors' files: name the claim of the shared volume")
    return [*service_account_objects(launch), executor_template(launch), live_deployment(launch), *cron_jobs(launch)]


def cron_jobs(launch: SparkLaunch) -> list[Object]:
    """The scheduled jobs; they are the same with every launcher of the live job."""
    return [cron_job(launch, job, schedule) for job, schedule in SCHEDULES.items()]


def live_deployment(launch: SparkLaunch) -> Object:
    """The Deployment of the live job's driver."""
    conf = [part for name, value in driver_settings(launch).items() for part in ("--conf", f"{name}={value}")]
    container: Object = {
        "name": "driver",
        "image": launch.image,
        "imagePullPolicy": "IfNotPresent",
        "args": ["driver", *conf, JOB_FILE, *live_arguments(launch), "--wait", str(WAIT_SECONDS)],
        "env": [
            pod_field("POD_NAME", "metadata.name"),
            pod_field("SPARK_DRIVER_BIND_ADDRESS", "status.podIP"),
        ],
        "ports": [{"name": "driver", "containerPort": DRIVER_PORT}],
        "resources": _resources(launch.driver_memory_mb + launch.driver_overhead_mb, DRIVER_CPU),
        "securityContext": container_security(),
        "volumeMounts": [*mounts(launch), {"name": "template", "mountPath": TEMPLATE_FOLDER, "readOnly": True}],
    }
    pod: Object = {
        "serviceAccountName": launch.name,
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 10,
        "securityContext": pod_security(),
        "containers": [container],
        "volumes": [*volumes(launch), {"name": "template", "configMap": {"name": template_name(launch)}}],
        **scheduling(launch),
    }
    selected = {FLEET_LABEL: launch.fleet, JOB_LABEL: launch.job, PART_LABEL: DRIVER_PART}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(launch, launch.live_name, launch.job),
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "revisionHistoryLimit": 2,
            "selector": {"matchLabels": selected},
            "template": {
                "metadata": {
                    "labels": {**labels(launch, launch.job), PART_LABEL: DRIVER_PART},
                    "annotations": {TEMPLATE_HASH: template_hash(launch)},
                },
                "spec": pod,
            },
        },
    }  # fmt: skip


def cron_job(launch: SparkLaunch, job: str, schedule: str) -> Object:
    """A scheduled job; its runs do not overlap."""
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": metadata(launch, f"{launch.name[: CRON_NAME_LENGTH - len(job) - 1]}-{job}", job),
        "spec": {
            "schedule": schedule,
            "timeZone": "Etc/UTC",
            "concurrencyPolicy": "Forbid",
            "startingDeadlineSeconds": 600,
            "successfulJobsHistoryLimit": 1,
            "failedJobsHistoryLimit": 2,
            "jobTemplate": {
                "metadata": {"labels": labels(launch, job)},
                "spec": _job_spec(launch, job, cron_arguments(launch, job)),
            },
        },
    }  # fmt: skip


def cron_arguments(launch: SparkLaunch, job: str) -> list[str]:
    """The arguments of a scheduled job."""
    fleet = ["--fleet", launch.fleet]
    checkpoint = f"{DATA_PATH}/{CHECKPOINT}"
    return {
        "oracle": [DATA_PATH, *fleet, "--against", f"{DATA_PATH}/{LATEST}", "--checkpoint", checkpoint],
        "compact": [DATA_PATH],
        "history": [DATA_PATH, *fleet],
        "accuracy": [DATA_PATH, f"{DATA_PATH}/model/v1/accuracy.json", *fleet],
    }[job]


def _job_spec(launch: SparkLaunch, job_name: str, given: Sequence[str]) -> Object:
    container: Object = {
        "name": job_name,
        "image": launch.image,
        "imagePullPolicy": "IfNotPresent",
        "args": ["python3", "-m", "plimsoll.sparkjobs", job_name, *given],
        "resources": _resources(1500),
        "securityContext": container_security(),
        "volumeMounts": mounts(launch),
    }
    pod: Object = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": pod_security(),
        "containers": [container],
        "volumes": volumes(launch),
        **scheduling(launch),
    }
    return {
        "backoffLimit": 1,
        "activeDeadlineSeconds": 3000,
        "ttlSecondsAfterFinished": 86_400,
        "template": {"metadata": {"labels": labels(launch, job_name)}, "spec": pod},
    }


def live_sidecar(launch: SparkLaunch, volume: str) -> Object:
    """The live job as a container of the collector's pod; the two share the volume of this name.

    The pod also needs an emptyDir named SIDECAR for /tmp, where Spark unpacks libraries.
    """
    tmp = {"name": SIDECAR, "mountPath": "/tmp"}  # noqa: S108  # inside the pod
    return {
        "name": SIDECAR,
        "image": launch.image,
        "imagePullPolicy": "IfNotPresent",
        "args": ["python3", "-m", "plimsoll.sparkjobs", *live_arguments(launch), "--wait", str(WAIT_SECONDS)],
        "resources": _resources(1500),
        # Only the kubelet can restart this container without the collector; its restarts back off.
        "livenessProbe": {
            "exec": {"command": ["python3", "-m", "plimsoll.sparkjobs.launch.liveness_probe", DATA_PATH]},
            "initialDelaySeconds": int(START_SECONDS),
            "periodSeconds": 30,
            "timeoutSeconds": 20,
            "failureThreshold": 2,
        },
        "securityContext": {**container_security(), "runAsUser": UID},
        "volumeMounts": [tmp, {"name": volume, "mountPath": DATA_PATH}],
    }


def _resources(memory_mb: int, cpu: str = "250m") -> Object:
    """Memory has a limit, CPU has none: it would throttle the start of the JVM."""
    return {"requests": {"cpu": cpu, "memory": f"{memory_mb}Mi"}, "limits": {"memory": f"{memory_mb}Mi"}}
