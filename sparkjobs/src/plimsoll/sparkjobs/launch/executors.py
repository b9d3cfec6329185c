"""What a driver in a pod needs for executors in pods of their own: an account, their template, and settings of Spark.

The account has rights to pods of its namespace only; settings keep Spark from requesting other objects. Spark's local
folders keep their defaults: Spark mounts a volume for them into each executor, which must not be over /tmp.
"""

from __future__ import annotations

import hashlib
import shlex
from typing import Final

import msgspec

from plimsoll.sparkjobs.launch.local_process import JVM_OPTIONS
from plimsoll.sparkjobs.launch.spec import (
    SUBMIT_VARIABLE,
    DriverLaunch,
    Object,
    container_security,
    labels,
    metadata,
    mounts,
    pod_security,
    scheduling,
    shuffle_partitions,
    volumes,
)

POD_VERBS: Final = ["get", "list", "watch", "create", "delete", "deletecollection"]
TEMPLATE_FILE: Final = "executor.yaml"
TEMPLATE_FOLDER: Final = "/opt/templates"
TEMPLATE_HASH: Final = "plimsoll.dev/executor-hash"
"""An annotation of a driver's pod. A driver reads the template once, so a changed one must replace the driver's pod."""
DRIVER_PORT: Final = 7078
DRIVER_CPU: Final = "400m"
EXECUTOR_OVERHEAD: Final = "400m"
"""Memory beside the heap of an executor: its Java virtual machine, and Python workers if it has some."""
EXECUTOR_CPU: Final = "200m"


def service_account_objects(launch: DriverLaunch) -> list[Object]:
    """The driver's ServiceAccount and its rights to the executors' pods."""
    named = metadata(launch, launch.name, launch.job)
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


def executor_pod(launch: DriverLaunch, container: str = "executor") -> Object:
    """The template of an executor's pod. Spark adds image, command and ports, and finds the container by its name."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"labels": labels(launch, launch.job)},
        "spec": {
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "securityContext": pod_security(),
            "containers": [
                {
                    "name": container,
                    "securityContext": container_security(),
                    "volumeMounts": mounts(launch, writes=launch.has_writing_executors),
                }
            ],
            "volumes": volumes(launch),
            **scheduling(launch),
        },
    }


def executor_template(launch: DriverLaunch) -> Object:
    """The ConfigMap from which the driver reads the executors' template. JSON is valid YAML."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(launch, template_name(launch), launch.job),
        "data": {TEMPLATE_FILE: _template_text(launch)},
    }


def template_name(launch: DriverLaunch) -> str:
    """The ConfigMap of the executors' template, to be mounted at TEMPLATE_FOLDER."""
    return f"{launch.name}-executor"


def template_hash(launch: DriverLaunch) -> str:
    """A short hash of the executors' template."""
    return hashlib.sha256(_template_text(launch).encode()).hexdigest()[:16]


def _template_text(launch: DriverLaunch) -> str:
    return msgspec.json.format(msgspec.json.encode(executor_pod(launch)), indent=1).decode()


def common_settings(launch: DriverLaunch) -> dict[str, str]:
    """Settings of Spark for a driver with executors in pods, with any launcher."""
    pulled = {"spark.kubernetes.container.image.pullSecrets": ",".join(launch.pull_secrets)}
    return {
        **(pulled if launch.pull_secrets else {}),
        "spark.sql.shuffle.partitions": str(shuffle_partitions(launch)),
        "spark.ui.enabled": "false",
        "spark.log.level": "WARN",
        "spark.kubernetes.executor.request.cores": EXECUTOR_CPU,
        "spark.driver.extraJavaOptions": JVM_OPTIONS,
        "spark.executor.extraJavaOptions": JVM_OPTIONS,
        # The driver plans the query while executors start, instead of waiting for them first.
        "spark.scheduler.minRegisteredResourcesRatio": "0",
        # Without these, Spark would need rights to config maps, services or claims. Such objects of an operator for
        # Spark are owned by the driver's pod and deleted with it.
        "spark.kubernetes.executor.disableConfigMap": "true",
        "spark.kubernetes.driver.service.deleteOnTermination": "false",
        "spark.kubernetes.driver.ownPersistentVolumeClaim": "false",
    }


def pod_settings(launch: DriverLaunch) -> dict[str, str]:
    """Settings with the image, the number and the size of the pods, for a driver that has no other place for them."""
    return {
        "spark.kubernetes.namespace": launch.namespace,
        "spark.kubernetes.container.image": launch.image,
        "spark.kubernetes.container.image.pullPolicy": "IfNotPresent",
        "spark.driver.memory": f"{launch.driver_memory_mb}m",
        "spark.executor.instances": str(launch.executors),
        "spark.executor.cores": "1",
        "spark.executor.memory": f"{launch.executor_memory_mb}m",
        "spark.executor.memoryOverhead": EXECUTOR_OVERHEAD,
    }


def pod_field(name: str, field: str) -> Object:
    """A variable of a container's environment: a field of its pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": field}}}


def python_environment(launch: DriverLaunch) -> list[Object]:
    """The environment of a container whose program is Python, and starts Spark in client mode by itself.

    Started by `spark-submit` it would be a child of Java, which ends first when the pod is to end.
    """
    here = {"spark.driver.host": "$(POD_IP)", "spark.driver.bindAddress": "$(POD_IP)"}
    settings = {**driver_settings(launch), **here}
    words = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    return [
        pod_field("POD_NAME", "metadata.name"),
        pod_field("POD_IP", "status.podIP"),
        {"name": SUBMIT_VARIABLE, "value": shlex.join([*words, "pyspark-shell"])},
    ]


def driver_settings(launch: DriverLaunch) -> dict[str, str]:
    """Settings with which a driver in client mode finds its cluster and creates executors, with rights to pods only.

    Kubernetes puts the name of the pod in place of `$(POD_NAME)`, a variable of the container's environment.
    """
    return {
        **common_settings(launch),
        **pod_settings(launch),
        "spark.master": "k8s://https://kubernetes.default.svc",
        "spark.kubernetes.driver.pod.name": "$(POD_NAME)",  # owner of the executors, which are deleted with it
        "spark.driver.port": str(DRIVER_PORT),
        "spark.kubernetes.executor.podTemplateFile": f"{TEMPLATE_FOLDER}/{TEMPLATE_FILE}",
        "spark.kubernetes.executor.podTemplateContainerName": "executor",
    }
