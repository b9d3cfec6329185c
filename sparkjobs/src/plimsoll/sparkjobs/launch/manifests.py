"""Jobs as plain objects of Kubernetes: the driver is a pod of ours, which asks for its executors itself (client mode).

- live: a Deployment of one, `Recreate`, so that never two drivers work on a checkpoint. If the driver's pod goes, its
  executors go; the next one goes on from the checkpoint.
- oracle and compact each hour, history and accuracy each day: CronJobs of one pod, which need no rights at all.
- Spark's local folders are left as they are: it gives each executor a volume for them, which may not lie over /tmp.
- Without a volume that collectors and jobs share, live can only be a container in the collector's own pod (`sidecar`),
  with two cores and no executors.

The driver's rights are pods of its namespace and nothing else; settings below keep Spark from asking for more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

import msgspec

from plimsoll.sparkjobs.launch.live_job_health import START_SECONDS
from plimsoll.sparkjobs.launch.local_process import QUICK_START_JVM_OPTIONS
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
    volumes,
)
from plimsoll.telemetry.schema import LATEST

POD_VERBS: Final = ["get", "list", "watch", "create", "delete", "deletecollection"]
SCHEDULES: Final = {"oracle": "7 * * * *", "compact": "22 * * * *", "history": "37 1 * * *", "accuracy": "47 1 * * *"}
SIDECAR: Final = "spark-live"
WAIT_SECONDS: Final = 60
"""A driver whose predecessor has not ended yet waits so long for its checkpoint; it prepares itself meanwhile."""
CRON_NAME_LENGTH: Final = 52
"""A CronJob's name has to leave room for the time of each run."""
TEMPLATE_FILE: Final = "executor.yaml"
TEMPLATE_FOLDER: Final = "/opt/templates"


def all_objects(launch: SparkLaunch) -> list[Object]:
    """All objects of a fleet's jobs, to be applied in this order.

    Raises:
        ValueError: no volume is named; then `sidecar` is the way.

    """
    if not launch.claim:
        raise ValueError("jobs in pods of their own read what collectors wrote: name the claim of the shared volume")
    return [*service_account_objects(launch), executor_template(launch), live_deployment(launch), *cron_jobs(launch)]


def cron_jobs(launch: SparkLaunch) -> list[Object]:
    """The jobs that run by the clock, whoever runs the live one."""
    return [cron_job(launch, job, schedule) for job, schedule in SCHEDULES.items()]


def service_account_objects(launch: SparkLaunch) -> list[Object]:
    """Who the driver is, and what it may: its executors' pods."""
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
    """The executors' template, where the driver reads it. JSON is YAML."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(launch, f"{launch.name}-executor", "live"),
        "data": {TEMPLATE_FILE: _executor_template_text(launch)},
    }


def _executor_template_text(launch: SparkLaunch) -> str:
    return msgspec.json.format(msgspec.json.encode(executor_pod(launch)), indent=1).decode()


def driver_settings(launch: SparkLaunch) -> dict[str, str]:
    """How the driver finds its cluster and makes its executors, with rights to pods alone."""
    volume = "spark.kubernetes.executor.volumes.persistentVolumeClaim.data"
    pulled = {"spark.kubernetes.container.image.pullSecrets": ",".join(launch.pull_secrets)}
    return {
        **(pulled if launch.pull_secrets else {}),
        "spark.master": "k8s://https://kubernetes.default.svc",
        "spark.kubernetes.namespace": launch.namespace,
        "spark.kubernetes.container.image": launch.image,
        "spark.kubernetes.container.image.pullPolicy": "IfNotPresent",
        "spark.kubernetes.driver.pod.name": "$(POD_NAME)",  # owner of the executors: they go with it
        "spark.driver.port": "7078",
        "spark.driver.memory": f"{launch.driver_memory_mb}m",
        "spark.executor.instances": str(launch.executors),
        "spark.executor.cores": "1",
        "spark.executor.memory": f"{launch.executor_memory_mb}m",
        "spark.executor.memoryOverhead": "400m",  # the Python workers live in it
        "spark.kubernetes.executor.request.cores": "200m",
        "spark.driver.extraJavaOptions": QUICK_START_JVM_OPTIONS,
        "spark.executor.extraJavaOptions": QUICK_START_JVM_OPTIONS,
        # The driver plans the query while executors come up, instead of waiting for them first.
        "spark.scheduler.minRegisteredResourcesRatio": "0",
        "spark.kubernetes.executor.podTemplateFile": f"{TEMPLATE_FOLDER}/{TEMPLATE_FILE}",
        "spark.kubernetes.executor.podTemplateContainerName": "executor",
        f"{volume}.options.claimName": launch.claim,
        f"{volume}.mount.path": DATA_PATH,
        "spark.ui.enabled": "false",
        "spark.log.level": "WARN",
        # Each of these would ask for rights to config maps, services or claims.
        "spark.kubernetes.executor.disableConfigMap": "true",
        "spark.kubernetes.driver.service.deleteOnTermination": "false",
        "spark.kubernetes.driver.ownPersistentVolumeClaim": "false",
    }


def live_deployment(launch: SparkLaunch) -> Object:
    """The live job."""
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
    # A driver reads the template once: another one wants another driver.
    told = {"plimsoll.dev/executor-hash": hashlib.sha256(_executor_template_text(launch).encode()).hexdigest()[:16]}
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
                "metadata": {"labels": {**labels(launch, "live"), PART_LABEL: DRIVER_PART}, "annotations": told},
                "spec": pod,
            },
        },
    }  # fmt: skip


def cron_job(launch: SparkLaunch, job: str, schedule: str) -> Object:
    """A job that ends, again and again, one at a time."""
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
    """Of the jobs that run by the clock."""
    fleet = ["--fleet", launch.fleet]
    checkpoint = f"{DATA_PATH}/checkpoints/live-v1"
    return {
        "oracle": [DATA_PATH, *fleet, "--against", f"{DATA_PATH}/{LATEST}", "--checkpoint", checkpoint],
        "compact": [DATA_PATH],
        "history": [DATA_PATH, *fleet],
        "accuracy": [DATA_PATH, f"{DATA_PATH}/model/v1/accuracy.json", *fleet],
    }[job]


def single_job(launch: SparkLaunch, name: str, job_name: str, given: Sequence[str]) -> Object:
    """One run of a job, by hand: audit, similarity, shuffle."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(launch, name, job_name),
        "spec": _job_spec(launch, job_name, given),
    }


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
    """The live job as a container of the collector's pod, which shares the volume of this name with it.

    The pod has a volume SIDECAR for it besides, an emptyDir: Spark unpacks libraries to /tmp.
    """
    tmp = {"name": SIDECAR, "mountPath": "/tmp"}  # noqa: S108  # inside the pod
    return {
        "name": SIDECAR,
        "image": launch.image,
        "imagePullPolicy": "IfNotPresent",
        "args": ["python3", "-m", "plimsoll.sparkjobs", *live_arguments(launch), "--wait", str(WAIT_SECONDS)],
        "resources": _resources(1500),
        # Restarted by its kubelet, after pauses that grow: nobody else can, without its collector.
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
    """A JVM that is throttled is slow, one that is out of memory is dead: memory has a limit, CPU has none."""
    return {"requests": {"cpu": cpu, "memory": f"{memory_mb}Mi"}, "limits": {"memory": f"{memory_mb}Mi"}}
