"""The pods of a fleet: for each broker a StatefulSet of one pod, and its mounts.

A head with a standby has two pods, of which either may lead. A StatefulSet keeps its pods running while no operator
does, and never has two pods of one name. With `OnDelete` it
replaces a pod only after its deletion, so the operator can evacuate an edge first. A pod has no privileges that a
broker does not need: no access to the API server, no root, no writable disk but /tmp and a head's log, no more than
its profile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from plimsoll.core import config as configuration
from plimsoll.core.config import BrokerConfig, PeerBroker
from plimsoll.core.spec.brokers import GROUP_LABEL
from plimsoll.core.spec.kinds import HardwareProfileSpec
from plimsoll.core.spec.resources import to_mapping
from plimsoll.core.spec.types.cluster import LogDiskSpec
from plimsoll.operator import names
from plimsoll.operator.names import Object
from plimsoll.operator.objects.manifest import container_basics, digest, pod_basics, tolerations

LEAVE_SECONDS = 30
"""Time for a terminated broker to let its subscribers move elsewhere."""
GRACE_SECONDS = LEAVE_SECONDS + 5
CPU_REQUEST_SHARE, MEMORY_REQUEST_SHARE = 10, 4
"""A pod requests this fraction of its CPU limit (1/n)."""
LOG_VOLUME = "log"
CLAIM_EXTRA_BYTES = 64 * 1024 * 1024
"""What file systems keep for themselves on a small volume."""
PLACEMENT_FIELDS = ("affinity", "nodeSelector", "priorityClassName", "tolerations")


@dataclass(frozen=True, kw_only=True)
class BrokerPodSpec:
    """The inputs of a broker's pod. `keyed`: it has a key pair, and reads the authorized keys."""

    config: BrokerConfig
    profile: HardwareProfileSpec
    image: str
    public_key: str = ""
    lost_node_after_seconds: float = 10.0
    log_disk: LogDiskSpec | None = None
    """Of a head: the disk that its cluster asks for its log."""
    group: str = ""
    """The group of edges that it belongs to; autoscalers select by it."""
    pods: int = 1
    """Two for a head with a standby."""

    @property
    def labels(self) -> dict[str, str]:
        config = self.config
        return names.broker_labels(config.fleet, config.cluster, config.name, config.role)

    @property
    def keyed(self) -> bool:
        return not self.config.security.plain

    @property
    def standby_key(self) -> str:
        """The key by which a process of a head would follow the other one; empty if there is to be no other one."""
        return standby_key(self.config)


def standby_key(config: BrokerConfig) -> str:
    """As `BrokerPodSpec.standby_key`."""
    return "" if config.standby is None else config.standby.head.public_key or "plain"


def port_of(endpoint: str) -> int:
    """The port of `tcp://HOST:PORT`."""
    return int(endpoint.rpartition(":")[2])


def config_map(wanted: BrokerPodSpec, metadata: Object) -> Object:
    """The broker's configuration file, which it reads once, at its start."""
    text = configuration.encode(wanted.config).decode()
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {**metadata, "name": names.config_of(wanted.config.name), "labels": wanted.labels},
        "data": {names.CONFIG_FILE: text},
    }


def restart_hash(wanted: BrokerPodSpec) -> str:
    """A hash of all settings that a running broker cannot take; a change restarts it.

    A head's own key is left out: it reads it again, and peers find its keys among the authorised ones.
    """
    return digest(_start_parameters(wanted))


def restart_fields(wanted: BrokerPodSpec) -> str:
    """The settings of `restart_hash` one by one, each as NAME=HASH."""
    config, key, pod = _start_parameters(wanted)
    container = pod["containers"][0]
    parts = {"key": key, "image": container["image"], "resources": container["resources"]}
    parts |= {name: pod[name] for name in PLACEMENT_FIELDS if name in pod}
    for name, value in config.items():
        nested = value if isinstance(value, dict) else {"": value}
        parts |= {f"{name}.{each}".rstrip("."): found for each, found in nested.items()}
    return " ".join(f"{name}={digest(value)[:6]}" for name, value in sorted(parts.items()))


def changed_fields(old: str, new: str) -> tuple[str, ...]:
    """The names of the settings that differ between two texts of `restart_fields`; empty if one of them is empty."""
    before, after = (dict(part.split("=", 1) for part in text.split() if "=" in part) for text in (old, new))
    if not before or not after:
        return ()
    return tuple(name for name in sorted(before.keys() | after.keys()) if before.get(name) != after.get(name))


def _start_parameters(wanted: BrokerPodSpec) -> tuple[Object, str, Object]:
    """The configuration, the key and the pod as far as a running broker cannot take them."""
    # Sent as MEMBERS, POLICY and GROUPS while they run; of a standby, and of what is waited for, the file itself says.
    said_again = {"edges", "policy", "groups", "standby"}
    config = wanted.config
    head = None if config.head is None else _unkeyed(config.head)
    config = msgspec.structs.replace(config, head=head, neighbors=tuple(map(_unkeyed, config.neighbors)))
    told = {name: value for name, value in msgspec.to_builtins(config).items() if name not in said_again}
    if told.get("disk_log"):
        for name in ("may_lag", "known_epoch", "known_position"):  # read again, or of use at a start alone
            del told["disk_log"][name]
    return told, "" if config.role == "head" else wanted.public_key, _pod_spec(replace(wanted, pods=1))


def _unkeyed(peer: PeerBroker) -> PeerBroker:
    return msgspec.structs.replace(peer, public_key="")


def stateful_set(wanted: BrokerPodSpec, metadata: Object) -> Object:
    """The StatefulSet of a broker, which has the broker's name."""
    annotations = {names.RESTART_HASH: restart_hash(wanted), names.RESTART_FIELDS: restart_fields(wanted)}
    if wanted.standby_key:
        annotations[names.STANDBY_KEY] = wanted.standby_key
    if wanted.keyed:
        annotations[names.KEY] = wanted.public_key
    grouped = {GROUP_LABEL: wanted.group} if wanted.group else {}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {**metadata, "name": wanted.config.name, "labels": wanted.labels},
        "spec": {
            "replicas": wanted.pods,
            "revisionHistoryLimit": 1,
            "serviceName": wanted.config.name,
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "OnDelete"},
            "selector": {"matchLabels": {names.BROKER: wanted.config.name}},
            "template": {
                "metadata": {"labels": {**wanted.labels, **grouped}, "annotations": annotations},
                "spec": _pod_spec(wanted),
            },
            **({} if wanted.log_disk is None else _log_claim(wanted, wanted.log_disk)),
        },
    }


def _log_claim(wanted: BrokerPodSpec, disk: LogDiskSpec) -> Object:
    """The claim of a head's log, made by its StatefulSet. It never goes with a pod, and with the set only if asked.

    The volume is larger than the log: the segment that is written to is made with its room.
    """
    spec: Object = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": str(disk.size.whole + disk.size.whole // 4 + CLAIM_EXTRA_BYTES)}},
    }
    if disk.storage_class:
        spec["storageClassName"] = disk.storage_class
    return {
        "volumeClaimTemplates": [{"metadata": {"name": LOG_VOLUME, "labels": wanted.labels}, "spec": spec}],
        "persistentVolumeClaimRetentionPolicy": {
            "whenDeleted": "Retain" if disk.retain else "Delete",
            "whenScaled": "Retain",
        },
    }


def _pod_spec(wanted: BrokerPodSpec) -> Object:
    config = wanted.config
    return {
        **pod_basics(names.USER, GRACE_SECONDS, has_large_volume=False),
        "tolerations": [*tolerations(wanted.lost_node_after_seconds), *_own_tolerations(wanted.profile)],
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {names.CLUSTER: config.cluster}},
            }
        ],
        **_node_selector(wanted.profile),
        **_affinity(wanted),
        **({"priorityClassName": wanted.profile.priority_class_name} if wanted.profile.priority_class_name else {}),
        "containers": [_container(wanted)],
        "volumes": _volumes(wanted),
    }


def _affinity(wanted: BrokerPodSpec) -> Object:
    """What the profile asks for; the two pods of a head with a standby are on two nodes if there are two that fit."""
    asked = {} if wanted.profile.affinity is None else to_mapping(wanted.profile.affinity)
    if wanted.pods > 1:
        apart = {
            "weight": 100,
            "podAffinityTerm": {
                "topologyKey": "kubernetes.io/hostname",
                "labelSelector": {"matchLabels": {names.BROKER: wanted.config.name}},
            },
        }
        theirs = asked.get("podAntiAffinity", {})
        preferred = [*theirs.get("preferredDuringSchedulingIgnoredDuringExecution", []), apart]
        asked = {
            **asked, "podAntiAffinity": {**theirs, "preferredDuringSchedulingIgnoredDuringExecution": preferred}
        }  # fmt: skip
    return {"affinity": asked} if asked else {}


def _container(wanted: BrokerPodSpec) -> Object:
    config = wanted.config
    ports = {"data": port_of(config.data), "control": port_of(config.control), "http": names.HTTP_PORT}
    if config.role == "head":  # it may be one of two at any time
        ports[names.PAIR_PORT_NAME] = names.PAIR_PORT
    file = f"{names.CONFIG_FOLDER}/{names.CONFIG_FILE}"
    return {
        "name": names.CONTAINER,
        "image": wanted.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python", "-m", "plimsoll.broker", "--config", file, "--leave-seconds", str(LEAVE_SECONDS)],
        "ports": [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in ports.items()],
        "resources": container_resources(wanted.profile),
        **container_basics(ready_seconds=2),
        "volumeMounts": [
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108  # a volume of the pod's own
            {"name": "config", "mountPath": names.CONFIG_FOLDER, "readOnly": True},
            *([] if wanted.log_disk is None else [{"name": LOG_VOLUME, "mountPath": names.LOG_FOLDER}]),
            *(
                [
                    {"name": "keys", "mountPath": names.KEYS_FOLDER, "readOnly": True},
                    {"name": "authorized", "mountPath": names.AUTHORIZED_FOLDER, "readOnly": True},
                ]
                if wanted.keyed
                else []
            ),
        ],
    }


def container_resources(profile: HardwareProfileSpec) -> Object:
    """Limits are the profile's; requests are lower, so that an idle fleet fits on a small test cluster."""
    milli, memory = profile.cpu.milli, profile.memory.whole
    return {
        "limits": {"cpu": f"{milli}m", "memory": str(memory)},
        "requests": {
            "cpu": f"{max(1, milli // CPU_REQUEST_SHARE)}m",
            "memory": str(max(1, memory // MEMORY_REQUEST_SHARE)),
        },
    }


def _volumes(wanted: BrokerPodSpec) -> list[Object]:
    name = wanted.config.name
    volumes: list[Object] = [
        {"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}},
        {"name": "config", "configMap": {"name": names.config_of(name)}},
    ]
    if wanted.keyed:
        secret = {"key": names.SECRET_FILE, "path": names.SECRET_FILE}
        volumes += [
            {
                "name": "keys",
                "secret": {"secretName": names.keys_of(name), "items": [secret], "defaultMode": 0o400},
            },
            {"name": "authorized", "configMap": {"name": names.AUTHORIZED_KEYS}},
        ]
    return volumes


def _node_selector(profile: HardwareProfileSpec) -> Mapping[str, Any]:
    chosen = {each.name: each.value for each in profile.node_selector}
    return {"nodeSelector": chosen} if chosen else {}


def _own_tolerations(profile: HardwareProfileSpec) -> list[Object]:
    """The taints that a profile tolerates, as Kubernetes writes them."""
    return [
        {
            "key": each.name,
            **({"operator": "Equal", "value": each.value} if each.value else {"operator": "Exists"}),
            **({"effect": each.effect} if each.effect != "Any" else {}),
        }
        for each in profile.tolerations
    ]
