"""What an operator process is told by its environment, and its times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


class SettingsError(ValueError):
    """The environment cannot be used; names the variable and says what to do."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One operator process. Times are in seconds."""

    broker_image: str = "plimsoll/broker:dev"
    spark_image: str = "plimsoll/spark:dev"
    collector_image: str = "plimsoll/collector:dev"
    pull_secrets: tuple[str, ...] = ()
    """Names of Secrets of a fleet's namespace with which all these images are pulled."""
    spark: bool = False
    """Whether Spark may be run as pods; needs rights on what it consists of."""
    namespaces: tuple[str, ...] = ()
    """Namespaces that are served; none: all of them, which needs rights in all of them."""
    read_nodes: bool = False
    """Whether nodes are watched, so that edges are evacuated before their node is drained; needs rights on nodes."""
    pod_name: str = ""
    pod_namespace: str = ""
    http_port: int = 8080
    """Metrics and probes; 0 takes any free one."""
    log_level: str = "INFO"
    canary: str = ""
    """NAMESPACE/NAME of the ConfigMap by which the operator sees that its watches hear; empty: no canary."""
    resync_seconds: float = 15.0
    """A fleet is looked at again after so long, whatever was heard of it."""
    load_seconds: float = 10.0
    """Load figures in the status of objects are at most so old, and written no more often."""
    canary_seconds: float = 30.0
    silent_seconds: float = 90.0
    """Watches that do not hear of the operator's own writing for so long are deaf, and the process is not alive."""


def read(environment: Mapping[str, str]) -> Settings:
    """Settings from the environment.

    Raises:
        SettingsError: a variable does not hold what it should.

    """
    pod_name, pod_namespace = environment.get("POD_NAME", ""), environment.get("POD_NAMESPACE", "")
    canary = f"{pod_namespace}/plimsoll-operator-canary" if pod_namespace else ""
    return Settings(
        broker_image=environment.get("PLIMSOLL_BROKER_IMAGE") or Settings.broker_image,
        spark_image=environment.get("PLIMSOLL_SPARK_IMAGE") or Settings.spark_image,
        collector_image=environment.get("PLIMSOLL_COLLECTOR_IMAGE") or Settings.collector_image,
        spark=_boolean(environment, "PLIMSOLL_SPARK"),
        pull_secrets=_names(environment, "PLIMSOLL_IMAGE_PULL_SECRETS"),
        namespaces=_names(environment, "PLIMSOLL_NAMESPACES"),
        read_nodes=_boolean(environment, "PLIMSOLL_READ_NODES"),
        pod_name=pod_name,
        pod_namespace=pod_namespace,
        log_level=_level(environment),
        http_port=_port(environment, "PLIMSOLL_HTTP_PORT", Settings.http_port),
        canary=environment.get("PLIMSOLL_CANARY", canary),
    )


def _names(environment: Mapping[str, str], name: str) -> tuple[str, ...]:
    found = (each.strip() for each in environment.get(name, "").split(","))
    return tuple(each for each in found if each)


def _boolean(environment: Mapping[str, str], name: str) -> bool:
    text = environment.get(name, "").strip().lower()
    if text not in ("", "true", "false"):
        raise SettingsError(f"{name}: {text!r} is neither true nor false")
    return text == "true"


def _level(environment: Mapping[str, str]) -> str:
    text = environment.get("PLIMSOLL_LOG_LEVEL", "").strip().upper() or Settings.log_level
    if text not in LEVELS:
        raise SettingsError(f"PLIMSOLL_LOG_LEVEL: {text!r} is not a level; write one of {', '.join(LEVELS)}")
    return text


def _port(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name, "").strip() or str(default)
    if not text.isdecimal() or not int(text) < 65536:
        raise SettingsError(f"{name}: {text!r} is not a port; write a number below 65536, or 0 for any free one")
    return int(text)
