"""The live job as an object of an operator for Spark: Kubeflow's or Apache's.

Both submit in cluster mode: they create the driver's pod, and it creates the executors' pods. Image, file, arguments
and restrictions are those of `manifests`. Neither operator is needed to render an object.
"""

from __future__ import annotations

from typing import Final

from plimsoll.sparkjobs.launch.local_process import JVM_OPTIONS
from plimsoll.sparkjobs.launch.spec import (
    DRIVER_PART,
    JOB_FILE,
    PART_LABEL,
    SPARK_VERSION,
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

RESTART_AFTER_SECONDS: Final = 30
RESTARTS: Final = 3
RESTART_RESET_SECONDS: Final = 3600
"""After this time without a restart the count of restarts is reset."""


def kubeflow_application(launch: SparkLaunch) -> Object:
    """`SparkApplication` of Kubeflow's operator (sparkoperator.k8s.io/v1beta2)."""
    return {
        "apiVersion": "sparkoperator.k8s.io/v1beta2",
        "kind": "SparkApplication",
        "metadata": metadata(launch, launch.live_name, "live"),
        "spec": {
            "type": "Python",
            "pythonVersion": "3",
            "mode": "cluster",
            "sparkVersion": SPARK_VERSION,
            "image": launch.image,
            "imagePullPolicy": "IfNotPresent",
            "mainApplicationFile": f"local://{JOB_FILE}",
            "arguments": live_arguments(launch),
            "sparkConf": _operator_settings(launch),
            # `Always` has no limit; the age of the snapshot shows whether a restart has helped.
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
                "memoryOverhead": "500m",
                "serviceAccount": launch.name,
                "labels": {**labels(launch, "live"), PART_LABEL: DRIVER_PART},
                "template": _pod_template(launch, "spark-kubernetes-driver"),
            },
            "executor": {
                "instances": launch.executors,
                "cores": 1,
                "memory": f"{launch.executor_memory_mb}m",
                "memoryOverhead": "400m",
                "labels": labels(launch, "live"),
                "template": _pod_template(launch, "spark-kubernetes-executor"),
            },
        },
    }


def apache_application(launch: SparkLaunch) -> Object:
    """`SparkApplication` of Apache's operator (spark.apache.org/v1)."""
    return {
        "apiVersion": "spark.apache.org/v1",
        "kind": "SparkApplication",
        "metadata": metadata(launch, launch.live_name, "live"),
        "spec": {
            "pyFiles": f"local://{JOB_FILE}",
            "driverArgs": live_arguments(launch),
            "deploymentMode": "ClusterMode",
            "runtimeVersions": {"sparkVersion": SPARK_VERSION},
            "sparkConf": {
                **_operator_settings(launch),
                "spark.kubernetes.namespace": launch.namespace,
                "spark.kubernetes.container.image": launch.image,
                "spark.kubernetes.container.image.pullPolicy": "IfNotPresent",
                "spark.kubernetes.authenticate.driver.serviceAccountName": launch.name,
                "spark.driver.memory": f"{launch.driver_memory_mb}m",
                "spark.driver.memoryOverhead": "500m",
                "spark.executor.instances": str(launch.executors),
                "spark.executor.cores": "1",
                "spark.executor.memory": f"{launch.executor_memory_mb}m",
                "spark.executor.memoryOverhead": "400m",
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
            "driverSpec": {"podTemplateSpec": _pod_template(launch, "spark-kubernetes-driver")},
            "executorSpec": {"podTemplateSpec": _pod_template(launch, "spark-kubernetes-executor")},
        },
    }


def _operator_settings(launch: SparkLaunch) -> dict[str, str]:
    return {
        "spark.sql.shuffle.partitions": str(state_partitions(launch)),
        "spark.ui.enabled": "false",
        "spark.log.level": "WARN",
        "spark.kubernetes.driver.request.cores": "400m",
        "spark.kubernetes.executor.request.cores": "200m",
        "spark.driver.extraJavaOptions": JVM_OPTIONS,
        "spark.executor.extraJavaOptions": JVM_OPTIONS,
        "spark.scheduler.minRegisteredResourcesRatio": "0",
        # The driver has rights to pods only; other objects are owned by its pod and deleted with it.
        "spark.kubernetes.executor.disableConfigMap": "true",
        "spark.kubernetes.driver.service.deleteOnTermination": "false",
        "spark.kubernetes.driver.ownPersistentVolumeClaim": "false",
    }


def _pod_template(launch: SparkLaunch, container: str) -> Object:
    """A pod template. Spark and the operator add what has fields of its own, and find the container by its name."""
    restricted: Object = {
        "name": container,
        "securityContext": container_security(),
        "volumeMounts": mounts(launch),
    }
    is_driver = container.endswith("driver")
    return {
        "metadata": {"labels": {**labels(launch, "live"), **({PART_LABEL: DRIVER_PART} if is_driver else {})}},
        "spec": {
            "enableServiceLinks": False,
            "automountServiceAccountToken": is_driver,
            "securityContext": pod_security(),
            "containers": [restricted],
            "volumes": volumes(launch),
            **scheduling(launch),
        },
    }
