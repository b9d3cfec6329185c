"""The settings of an operator process, read from its environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


class OperatorSettingsError(ValueError):
    """A variable of the environment is invalid; the message names it and says what to write."""


@dataclass(frozen=True, kw_only=True)
class OperatorSettings:
    """One operator process. Times are in seconds."""

    broker_image: str = "plimsoll/broker:dev"
    spark_image: str = "plimsoll/spark:dev"
    collector_image: str = "plimsoll/collector:dev"
    pull_secrets: tuple[str, ...] = ()
    """Names of Secrets in the fleet's namespace with which all these images are pulled."""
    spark: bool = False
    """Whether Spark may be run as pods; this needs rights on Deployments, CronJobs and more."""
    namespaces: tuple[str, ...] = ()
    """The namespaces to serve; empty for all of them, which needs cluster-wide rights."""
    read_nodes: bool = False
    """Whether to watch nodes, so that edges are emptied before their node is drained; this needs rights on nodes."""
    pod_name: str = ""
    pod_namespace: str = ""
    release: str = ""
    """NAMESPACE/NAME of its Deployment. Of several that watch a namespace one serves its fleet; empty: not checked."""
    http_port: int = 8080
    """The port for metrics and probes; 0 for any free one."""
    metrics_tls: str = ""
    """A folder with tls.crt and tls.key, to serve external.metrics.k8s.io for autoscalers; empty: it is not served."""
    https_port: int = 8443
    """The port for that; 0 for any free one."""
    log_level: str = "INFO"
    canary: str = ""
    """NAMESPACE/NAME of a ConfigMap that the operator writes to check its watches; empty for none."""
    resync_seconds: float = 15.0
    """The longest time between two reconciliations of a fleet."""
    load_seconds: float = 10.0
    """The interval at which load figures are written to the status of objects."""
    canary_seconds: float = 30.0
    silent_seconds: float = 90.0
    """The liveness probe fails if watches do not deliver the operator's own writes for this long."""


def read_settings(environment: Mapping[str, str]) -> OperatorSettings:
    """Settings from the environment.

    Raises:
        OperatorSettingsError: a variable is invalid.

    """
    pod_name, pod_namespace = environment.get("POD_NAME", ""), environment.get("POD_NAMESPACE", "")
    canary = f"{pod_namespace}/plimsoll-operator-canary" if pod_namespace else ""
    return OperatorSettings(
        broker_image=environment.get("PLIMSOLL_BROKER_IMAGE") or OperatorSettings.broker_image,
        spark_image=environment.get("PLIMSOLL_SPARK_IMAGE") or OperatorSettings.spark_image,
        collector_image=environment.get("PLIMSOLL_COLLECTOR_IMAGE") or OperatorSettings.collector_image,
        spark=_boolean(environment, "PLIMSOLL_SPARK"),
        pull_secrets=_names(environment, "PLIMSOLL_IMAGE_PULL_SECRETS"),
        namespaces=_names(environment, "PLIMSOLL_NAMESPACES"),
        read_nodes=_boolean(environment, "PLIMSOLL_READ_NODES"),
        pod_name=pod_name,
        pod_namespace=pod_namespace,
        release=environment.get("PLIMSOLL_RELEASE", ""),
        log_level=_level(environment),
        http_port=_port(environment, "PLIMSOLL_HTTP_PORT", OperatorSettings.http_port),
        metrics_tls=environment.get("PLIMSOLL_METRICS_TLS", ""),
        https_port=_port(environment, "PLIMSOLL_HTTPS_PORT", OperatorSettings.https_port),
        canary=environment.get("PLIMSOLL_CANARY", canary),
    )


def _names(environment: Mapping[str, str], name: str) -> tuple[str, ...]:
    found = (each.strip() for each in environment.get(name, "").split(","))
    return tuple(each for each in found if each)


def _boolean(environment: Mapping[str, str], name: str) -> bool:
    text = environment.get(name, "").strip().lower()
    if text not in ("", "true", "false"):
        raise OperatorSettingsError(f"{name}: {text!r} is neither true nor false")
    return text == "true"


def _level(environment: Mapping[str, str]) -> str:
    text = environment.get("PLIMSOLL_LOG_LEVEL", "").strip().upper() or OperatorSettings.log_level
    if text not in LOG_LEVELS:
        raise OperatorSettingsError(
            f"PLIMSOLL_LOG_LEVEL: {text!r} is not a level; write one of {', '.join(LOG_LEVELS)}"
        )
    return text


def _port(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name, "").strip() or str(default)
    if not text.isdecimal() or not int(text) < 65536:
        raise OperatorSettingsError(
            f"{name}: {text!r} is not a port; write a number below 65536, or 0 for any free one"
        )
    return int(text)
