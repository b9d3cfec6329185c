"""Jobs as plain Kubernetes objects, without an operator for Spark. The driver pod creates its executors (client mode).

- live: a Deployment of one replica with the strategy `Recreate`, so that two drivers never work on one checkpoint. The
  executors end with the driver's pod; its successor continues from the checkpoint.
- oracle and compact hourly, history and accuracy daily: CronJobs of one pod, which need no rights.
- Spark's local folders keep their defaults: Spark mounts a volume for them into each executor, which must not be over
  /tmp.
- Without a volume shared by collectors and jobs, live can only be a container in the collector's pod (`live_sidecar`),
  with two cores and no executors.

The driver may only manage pods of its namespace; settings below keep Spark from requesting other objects.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

import msgspec

from plimsoll.sparkjobs.launch.live_job_health import START_SECONDS
from plimsoll.sparkjobs.launch.local_process import JVM_OPTIONS
from plimsoll.sparkjobs.launch.spec import (
    DATA_PATH,
    DRIVER_PART,
    JOB_FILE,
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
    state_partitions,
    volumes,
)
from plimsoll.telemetry.schema import CHECKPOINT, LATEST

POD_VERBS: Final = ["get", "list", "watch", "create", "delete", "deletecollection"]
SCHEDULES: Final = {"oracle": "7 * * * *", "compact": "22 * * * *", "history": "37 1 * * *", "accuracy": "47 1 * * *"}
SIDECAR: Final = "spark-live"
WAIT_SECONDS: Final = 60
"""A driver waits this long for its predecessor to release the checkpoint; meanwhile it makes its Spark session."""
CRON_NAME_LENGTH: Final = 52
"""Kubernetes appends the time of each run to a CronJob's name, which needs room for it."""
TEMPLATE_FILE: Final = "executor.yaml"
TEMPLATE_FOLDER: Final = "/opt/templates"


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


def service_account_objects(launch: SparkLaunch) -> list[Object]:
    """The driver's ServiceAccount and its rights to the executors' pods."""
    named = metadata(launch, launch.name, "live")
    group = "rbac.authorization.k8s.io"
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": named, "automountServiceAccountToken": False},
        {
            "apiVersion": f"{group}/v1", "kind": "Role", "metadata": named,
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": POD_VERBS}],
        },
        {
            "apiVersion": f"{group}/v1", "kind": "RoleBinding", "metadata": named,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": launch.name},
            "subjects": [{"kind": "ServiceAccount", "name": launch.name, "namespace": launch.namespace}],
        },
    ]  # fmt: skip


def executor_pod(launch: SparkLaunch) -> Object:
    """The template of an executor's pod. Spark adds image, command, ports and the data volume."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"labels": labels(launch, "live")},
        "spec": {
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "securityContext": pod_security(),
            "containers": [
                {
                    "name": "executor",
                    "securityContext": container_security(),
                    "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108  # inside the pod
                }
            ],
            "volumes": [{"name": "tmp", "emptyDir": {}}],
            **scheduling(launch),
        },
    }


def executor_template(launch: SparkLaunch) -> Object:
    """The ConfigMap from which the driver reads the executors' template. JSON is valid YAML."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(launch, f"{launch.name}-executor", "live"),
        "data": {TEMPLATE_FILE: _executor_template_text(launch)},
    }


def _executor_template_text(launch: SparkLaunch) -> str:
    return msgspec.json.format(msgspec.json.encode(executor_pod(launch)), indent=1).decode()


def driver_settings(launch: SparkLaunch) -> dict[str, str]:
    """Spark settings with which the driver finds its cluster and creates executors, with rights to pods only."""
    volume = "spark.kubernetes.executor.volumes.persistentVolumeClaim.data"
    pulled = {"spark.kubernetes.container.image.pullSecrets": ",".join(launch.pull_secrets)}
    return {
        **(pulled if launch.pull_secrets else {}),
        "spark.master": "k8s://https://kubernetes.default.svc",
        "spark.kubernetes.namespace": launch.namespace,
        "spark.kubernetes.container.image": launch.image,
        "spark.kubernetes.container.image.pullPolicy": "IfNotPresent",
        "spark.kubernetes.driver.pod.name": "$(POD_NAME)",  # owner of the executors, which are deleted with it
        "spark.driver.port": "7078",
        "spark.driver.memory": f"{launch.driver_memory_mb}m",
        "spark.executor.instances": str(launch.executors),
        "spark.executor.cores": "1",
        "spark.executor.memory": f"{launch.executor_memory_mb}m",
        "spark.executor.memoryOverhead": "400m",  # for the Python workers
        "spark.kubernetes.executor.request.cores": "200m",
        "spark.driver.extraJavaOptions": JVM_OPTIONS,
        "spark.executor.extraJavaOptions": JVM_OPTIONS,
        # The driver plans the query while executors start, instead of waiting for them first.
        "spark.scheduler.minRegisteredResourcesRatio": "0",
        "spark.kubernetes.executor.podTemplateFile": f"{TEMPLATE_FOLDER}/{TEMPLATE_FILE}",
        "spark.kubernetes.executor.podTemplateContainerName": "executor",
        f"{volume}.options.claimName": launch.claim,
        f"{volume}.mount.path": DATA_PATH,
        "spark.sql.shuffle.partitions": str(state_partitions(launch)),
        "spark.ui.enabled": "false",
        "spark.log.level": "WARN",
        # Without these, Spark would need rights to config maps, services or claims.
        "spark.kubernetes.executor.disableConfigMap": "true",
        "spark.kubernetes.driver.service.deleteOnTermination": "false",
        "spark.kubernetes.driver.ownPersistentVolumeClaim": "false",
    }


def live_deployment(launch: SparkLaunch) -> Object:
    """The Deployment of the live job's driver."""
    conf = [part for name, value in driver_settings(launch).items() for part in ("--conf", f"{name}={value}")]
    container: Object = {
        "name": "driver",
        "image": launch.image,
        "imagePullPolicy": "IfNotPresent",
        "args": ["driver", *conf, JOB_FILE, *live_arguments(launch), "--wait", str(WAIT_SECONDS)],
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "SPARK_DRIVER_BIND_ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        ],
        "ports": [{"name": "driver", "containerPort": 7078}],
        "resources": _resources(launch.driver_memory_mb + 500, "400m"),
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
        "volumes": [*volumes(launch), {"name": "template", "configMap": {"name": f"{launch.name}-executor"}}],
        **scheduling(launch),
    }
    selected = {"plimsoll.dev/fleet": launch.fleet, "plimsoll.dev/job": "live", PART_LABEL: DRIVER_PART}
    # A driver reads the template once, so a changed template must replace the driver's pod.
    annotations = {
        "plimsoll.dev/executor-hash": hashlib.sha256(_executor_template_text(launch).encode()).hexdigest()[:16]
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(launch, launch.live_name, "live"),
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "revisionHistoryLimit": 2,
            "selector": {"matchLabels": selected},
            "template": {
                "metadata": {"labels": {**labels(launch, "live"), PART_LABEL: DRIVER_PART}, "annotations": annotations},
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
