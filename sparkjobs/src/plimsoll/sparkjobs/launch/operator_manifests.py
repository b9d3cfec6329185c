"""A driver as an object of an operator for Spark: Kubeflow's or Apache's.

Both submit in cluster mode: they create the driver's pod, and it creates the executors' pods. Image, file, arguments
and restrictions are those of `manifests`. Neither operator is needed to render an object.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from plimsoll.sparkjobs.launch.executors import (
    DRIVER_CPU,
    EXECUTOR_OVERHEAD,
    common_settings,
    executor_pod,
    pod_settings,
)
from plimsoll.sparkjobs.launch.spec import (
    DRIVER_PART,
    JOB_FILE,
    PART_LABEL,
    SPARK_VERSION,
    DriverLaunch,
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

DRIVER_CONTAINER: Final = "spark-kubernetes-driver"
EXECUTOR_CONTAINER: Final = "spark-kubernetes-executor"
RESTART_AFTER_SECONDS: Final = 30
RESTARTS: Final = 3
RESTART_RESET_SECONDS: Final = 3600
"""After this time without a restart the count of restarts is reset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What an operator for Spark is to run. `name`: of the object; `file`: the program, in the image.

    `driver`: the template of the driver's pod, whose container is called DRIVER_CONTAINER; the operator and Spark add
    what has fields of its own, such as image, command and memory.
    """

    launch: DriverLaunch
    name: str
    file: str
    arguments: Sequence[str]
    driver: Object
    driver_cpu: str


def live_submission(launch: SparkLaunch) -> Submission:
    """The live job as a program to submit."""
    return Submission(
        launch=launch, name=launch.live_name, file=JOB_FILE, arguments=live_arguments(launch),
        driver=_live_driver(launch), driver_cpu=DRIVER_CPU,
    )  # fmt: skip


def kubeflow_application(asked: Submission) -> Object:
    """`SparkApplication` of Kubeflow's operator (sparkoperator.k8s.io/v1beta2)."""
    launch = asked.launch
    return {
        "apiVersion": "sparkoperator.k8s.io/v1beta2",
        "kind": "SparkApplication",
        "metadata": metadata(launch, asked.name, launch.job),
        "spec": {
            "type": "Python",
            "pythonVersion": "3",
            "mode": "cluster",
            "sparkVersion": SPARK_VERSION,
            "image": launch.image,
            "imagePullPolicy": "IfNotPresent",
            "mainApplicationFile": f"local://{asked.file}",
            "arguments": list(asked.arguments),
            "sparkConf": _operator_settings(asked),
            # `Always` has no limit; what the driver says of itself shows whether a restart has helped.
            "restartPolicy": {
                "type": "Always",
                "onFailureRetries": RESTARTS,
                "onFailureRetryInterval": RESTART_AFTER_SECONDS,
                "onSubmissionFailureRetries": RESTARTS,
                "onSubmissionFailureRetryInterval": RESTART_AFTER_SECONDS,
            },
            "driver": {
                "cores": 1,
                "memory": f"{launch.driver_memory_mb}m",
                "memoryOverhead": f"{launch.driver_overhead_mb}m",
                "serviceAccount": launch.name,
                "labels": asked.driver["metadata"]["labels"],
                "template": asked.driver,
            },
            "executor": {
                "instances": launch.executors,
                "cores": 1,
                "memory": f"{launch.executor_memory_mb}m",
                "memoryOverhead": EXECUTOR_OVERHEAD,
                "labels": labels(launch, launch.job),
                "template": _executor_template(launch),
            },
        },
    }


def apache_application(asked: Submission) -> Object:
    """`SparkApplication` of Apache's operator (spark.apache.org/v1)."""
    launch = asked.launch
    return {
        "apiVersion": "spark.apache.org/v1",
        "kind": "SparkApplication",
        "metadata": metadata(launch, asked.name, launch.job),
        "spec": {
            "pyFiles": f"local://{asked.file}",
            "driverArgs": list(asked.arguments),
            "deploymentMode": "ClusterMode",
            "runtimeVersions": {"sparkVersion": SPARK_VERSION},
            "sparkConf": {
                **_operator_settings(asked),
                **pod_settings(launch),
                "spark.kubernetes.authenticate.driver.serviceAccountName": launch.name,
                "spark.driver.memoryOverhead": f"{launch.driver_overhead_mb}m",
            },
            "applicationTolerations": {
                "restartConfig": {
                    "restartPolicy": "Always",
                    "maxRestartAttempts": RESTARTS,
                    "restartBackoffMillis": RESTART_AFTER_SECONDS * 1000,
                    "restartCounterResetMillis": RESTART_RESET_SECONDS * 1000,
                },
                "resourceRetainPolicy": "OnFailure",
            },
            "driverSpec": {"podTemplateSpec": asked.driver},
            "executorSpec": {"podTemplateSpec": _executor_template(launch)},
        },
    }


def _operator_settings(asked: Submission) -> dict[str, str]:
    return {**common_settings(asked.launch), "spark.kubernetes.driver.request.cores": asked.driver_cpu}


def _executor_template(launch: DriverLaunch) -> Object:
    pod = executor_pod(launch, EXECUTOR_CONTAINER)
    return {"metadata": pod["metadata"], "spec": pod["spec"]}


def _live_driver(launch: SparkLaunch) -> Object:
    container: Object = {
        "name": DRIVER_CONTAINER,
        "securityContext": container_security(),
        "volumeMounts": mounts(launch),
    }
    return {
        "metadata": {"labels": {**labels(launch, launch.job), PART_LABEL: DRIVER_PART}},
        "spec": {
            "enableServiceLinks": False,
            "automountServiceAccountToken": True,
            "securityContext": pod_security(),
            "containers": [container],
            "volumes": volumes(launch),
            **scheduling(launch),
        },
    }
