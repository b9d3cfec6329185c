"""The pods of a fleet: one StatefulSet of one pod for each broker, and what it mounts.

A StatefulSet keeps its pod up while no operator runs, and never has two pods of one name. It replaces its pod only when
somebody has deleted it (`OnDelete`): the operator does, after it has evacuated the edge. A pod may do nothing that a
broker does not need: no rights on the API server, no root, no writable disk but /tmp, no more than its profile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from plimsoll.core import config as configuration
from plimsoll.core.config import BrokerConfig, Peer
from plimsoll.core.spec.brokers import GROUP_LABEL
from plimsoll.core.spec.kinds import HardwareProfileSpec
from plimsoll.operator import names
from plimsoll.operator.names import Object
from plimsoll.operator.objects import digest, tolerations

LEAVE_SECONDS = 30
"""So long a broker that is asked to end lets its subscribers go elsewhere."""
GRACE_SECONDS = LEAVE_SECONDS + 5
CPU_REQUEST_SHARE, MEMORY_REQUEST_SHARE = 10, 4
"""A pod asks the scheduler for one part in so many of what its profile lets it use."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What the pod of one broker is made from. `keyed`: it has a key of its own, and reads who may connect."""

    config: BrokerConfig
    profile: HardwareProfileSpec
    image: str
    public_key: str = ""
    lost_node_after_seconds: float = 10.0
    group: str = ""
    """The group of edges that it was made for; what autoscalers select by."""

    @property
    def labels(self) -> dict[str, str]:
        config = self.config
        return names.broker_labels(config.fleet, config.cluster, config.name, config.role)

    @property
    def keyed(self) -> bool:
        return not self.config.security.plain


def port_of(endpoint: str) -> int:
    """The port of `tcp://HOST:PORT`."""
    return int(endpoint.rpartition(":")[2])


def config_map(wanted: Wanted, metadata: Object) -> Object:
    """What the broker is told; its file is read once, at its start."""
    text = configuration.encode(wanted.config).decode()
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {**metadata, "name": names.config_of(wanted.config.name), "labels": wanted.labels},
        "data": {names.CONFIG_FILE: text},
    }


def restart_hash(wanted: Wanted) -> str:
    """Changes with all that a running broker will not hear of. What it is told again and again does not count.

    A head reads its own key again, and who dials a head finds its keys among those that are authorised.
    """
    said_again = {"edges"}  # MEMBERS, with those that take no newcomers
    config = wanted.config
    head = None if config.head is None else _unkeyed(config.head)
    config = msgspec.structs.replace(config, head=head, neighbors=tuple(map(_unkeyed, config.neighbors)))
    told = {name: value for name, value in msgspec.to_builtins(config).items() if name not in said_again}
    return digest([told, "" if config.role == "head" else wanted.public_key, _pod_spec(wanted)])


def _unkeyed(peer: Peer) -> Peer:
    return msgspec.structs.replace(peer, public_key="")


def stateful_set(wanted: Wanted, metadata: Object) -> Object:
    """The StatefulSet of one broker, called as the broker is."""
    annotations = {names.RESTART_HASH: restart_hash(wanted)}
    if wanted.keyed:
        annotations[names.KEY] = wanted.public_key
    grouped = {GROUP_LABEL: wanted.group} if wanted.group else {}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {**metadata, "name": wanted.config.name, "labels": wanted.labels},
        "spec": {
            "replicas": 1,
            "revisionHistoryLimit": 1,
            "serviceName": wanted.config.name,
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "OnDelete"},
            "selector": {"matchLabels": {names.BROKER: wanted.config.name}},
            "template": {
                "metadata": {"labels": {**wanted.labels, **grouped}, "annotations": annotations},
                "spec": _pod_spec(wanted),
            },
        },
    }


def _pod_spec(wanted: Wanted) -> Object:
    config = wanted.config
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": names.USER,
            "runAsGroup": names.USER,
            "fsGroup": names.USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "tolerations": tolerations(wanted.lost_node_after_seconds),
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {names.CLUSTER: config.cluster}},
            }
        ],
        **_node_selector(wanted.profile),
        "containers": [_container(wanted)],
        "volumes": _volumes(wanted),
    }


def _container(wanted: Wanted) -> Object:
    config = wanted.config
    ports = {"data": port_of(config.data), "control": port_of(config.control), "http": names.HTTP_PORT}
    file = f"{names.CONFIG_FOLDER}/{names.CONFIG_FILE}"
    return {
        "name": names.CONTAINER,
        "image": wanted.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python", "-m", "plimsoll.broker", "--config", file, "--leave-seconds", str(LEAVE_SECONDS)],
        "ports": [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in ports.items()],
        "resources": resources(wanted.profile),
        "startupProbe": {**_probe("/livez"), "periodSeconds": 1, "failureThreshold": 60},
        "readinessProbe": {**_probe("/readyz"), "periodSeconds": 2, "failureThreshold": 2},
        "livenessProbe": {**_probe("/livez"), "periodSeconds": 10, "failureThreshold": 6},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108  # a volume of the pod's own
            {"name": "config", "mountPath": names.CONFIG_FOLDER, "readOnly": True},
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


def resources(profile: HardwareProfileSpec) -> Object:
    """Limits as the profile says. Requests are less: a fleet that is idle should fit where it was tried out."""
    milli, memory = profile.cpu.milli, profile.memory.whole
    return {
        "limits": {"cpu": f"{milli}m", "memory": str(memory)},
        "requests": {
            "cpu": f"{max(1, milli // CPU_REQUEST_SHARE)}m",
            "memory": str(max(1, memory // MEMORY_REQUEST_SHARE)),
        },
    }


def _probe(path: str) -> Object:
    return {"httpGet": {"path": path, "port": "http"}, "timeoutSeconds": 5}


def _volumes(wanted: Wanted) -> list[Object]:
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
