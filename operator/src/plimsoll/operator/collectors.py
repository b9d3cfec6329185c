"""Collectors of telemetry as pods: one StatefulSet for the fleet, with its configuration, address and volume.

All pods read one file and know by their name which of them they are. They have one identity, which may listen to heads
and ask for nothing. Their files lie on the claim that the fleet names, where jobs find them, too; without a claim they
live as long as their pod. User and group are those of Spark's pods, so that either may tidy up after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from plimsoll.core.config import BrokerConfig, Peer, Security
from plimsoll.core.spec import Resources
from plimsoll.operator import names, network
from plimsoll.operator.keys import Keys
from plimsoll.operator.names import Object
from plimsoll.operator.objects import tolerations
from plimsoll.operator.pods import port_of
from plimsoll.telemetry import config as configuration
from plimsoll.telemetry.asking import Asker, Known
from plimsoll.telemetry.config import CollectorConfig, Listened
from plimsoll.telemetry.outcomes import is_over
from plimsoll.telemetry.sending import Sender, token_of
from plimsoll.telemetry.snapshot import Wanted

HTTP_PORT = 7410
DATA_FOLDER = "/data"
USER = 185
GRACE_SECONDS = 30
"""So long a collector that is asked to end may take to write what waits."""
CPU, MEMORY = ("50m", "1"), ("160Mi", "512Mi")
"""What a pod asks for, and what it may use: docs/telemetry.md has what collectors were measured to use."""


def name_of(fleet: str) -> str:
    """The StatefulSet, and the Service by which its pods are reached one by one."""
    return f"{fleet}-telemetry"


def labels_of(fleet: str) -> dict[str, str]:
    """Labels of everything that belongs to collectors."""
    return {
        **names.fleet_labels(fleet),
        "app.kubernetes.io/name": "plimsoll-collector",
        "app.kubernetes.io/instance": name_of(fleet),
        "app.kubernetes.io/component": "collector",
    }


def hosts(fleet: str, namespace: str, replicas: int) -> tuple[tuple[str, int], ...]:
    """Where each collector serves."""
    name = name_of(fleet)
    return tuple((f"{name}-{index}.{name}.{namespace}.svc", HTTP_PORT) for index in range(replicas))


def objects(
    resources: Resources,
    brokers: Iterable[tuple[BrokerConfig, str]],
    image: str,
    metadata: Object,
    beside: Object | None = None,
) -> Iterator[Object]:
    """What the collectors of a fleet consist of; nothing if it asks for none. `brokers`: each with its public key.

    `beside`: a container that shares the collector's pod and files.
    """
    if not resources.fleet.spec.telemetry.collectors.replicas:
        return
    fleet, known = resources.fleet.name, list(brokers)
    text = configuration.encode(told(resources, known, metadata["namespace"])).decode()
    yield {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {**metadata, "name": names.config_of(name_of(fleet)), "labels": labels_of(fleet)},
        "data": {names.CONFIG_FILE: text},
    }
    control = frozenset(port_of(config.control) for config, _ in known)
    yield network.collector_policy(fleet, HTTP_PORT, control, metadata)
    yield _service(fleet, metadata)
    yield _stateful_set(resources, _pod_spec(resources, image, beside), metadata)


def told(resources: Resources, brokers: Iterable[tuple[BrokerConfig, str]], namespace: str) -> CollectorConfig:
    """What collectors are told."""
    spec, fleet = resources.fleet.spec, resources.fleet.name
    members: dict[str, list[str]] = {}
    heads: dict[str, Peer] = {}
    for config, key in brokers:
        members.setdefault(config.cluster, []).append(config.name)
        if config.role == "head":
            control = f"tcp://{names.host_of(config.name, namespace)}:{port_of(config.control)}"
            heads[config.cluster] = Peer(name=config.name, control=control, public_key=key)
    secret = "" if spec.security.plain else f"{names.KEYS_FOLDER}/{names.SECRET_FILE}"
    return CollectorConfig(
        name=name_of(fleet),
        fleet=fleet,
        folder=DATA_FOLDER,
        identity=names.COLLECTOR,
        collectors=spec.telemetry.collectors.replicas,
        interval_seconds=spec.telemetry.collectors.interval.seconds,
        retain_seconds=spec.telemetry.collectors.retain.seconds,
        report_seconds=spec.telemetry.report_interval.seconds * spec.time_scale_percent / 100,
        http=f"0.0.0.0:{HTTP_PORT}",
        security=Security(plain=spec.security.plain, secret_key_file=secret),
        clusters={name: Listened(head=heads[name], brokers=tuple(sorted(members[name]))) for name in sorted(heads)},
    )


def _service(fleet: str, metadata: Object) -> Object:
    """Each collector has a share of the fleet of its own, so each has an address of its own."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {**metadata, "name": name_of(fleet), "labels": labels_of(fleet)},
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": _selector(fleet),
            "ports": [{"name": "http", "port": HTTP_PORT, "targetPort": "http", "protocol": "TCP"}],
        },
    }


def _stateful_set(resources: Resources, pod: Object, metadata: Object) -> Object:
    fleet = resources.fleet.name
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {**metadata, "name": name_of(fleet), "labels": labels_of(fleet)},
        "spec": {
            "replicas": resources.fleet.spec.telemetry.collectors.replicas,
            "revisionHistoryLimit": 1,
            "serviceName": name_of(fleet),
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": _selector(fleet)},
            "template": {"metadata": {"labels": labels_of(fleet)}, "spec": pod},
        },
    }


def _selector(fleet: str) -> dict[str, str]:
    return {names.FLEET: fleet, "app.kubernetes.io/component": "collector"}


def _pod_spec(resources: Resources, image: str, beside: Object | None) -> Object:
    container = _container(image, keyed=not resources.fleet.spec.security.plain)
    others = [] if beside is None else [beside]
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "tolerations": tolerations(resources.fleet.spec.pods.lost_node_after.seconds),
        "containers": [container, *others],
        "volumes": [*_volumes(resources), *({"name": each["name"], "emptyDir": {}} for each in others)],
    }


def _container(image: str, *, keyed: bool) -> Object:
    file = f"{names.CONFIG_FOLDER}/{names.CONFIG_FILE}"
    (cpu, most_cpu), (memory, most_memory) = CPU, MEMORY
    keys = [{"name": "keys", "mountPath": names.KEYS_FOLDER, "readOnly": True}] if keyed else []
    return {
        "name": "collector",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python", "-m", "plimsoll.telemetry", "--config", file, "--name", "$(POD_NAME)"],
        "env": [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "ports": [{"name": "http", "containerPort": HTTP_PORT, "protocol": "TCP"}],
        "resources": {
            "requests": {"cpu": cpu, "memory": memory},
            "limits": {"cpu": most_cpu, "memory": most_memory},
        },
        "startupProbe": {**_probe("/livez"), "periodSeconds": 1, "failureThreshold": 60},
        "readinessProbe": {**_probe("/readyz"), "periodSeconds": 5, "failureThreshold": 2},
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
            {"name": "data", "mountPath": DATA_FOLDER},
            *keys,
        ],
    }


def _probe(path: str) -> Object:
    return {"httpGet": {"path": path, "port": "http"}, "timeoutSeconds": 5}


def _volumes(resources: Resources) -> Iterator[Object]:
    spec = resources.fleet.spec
    claim = spec.telemetry.collectors.volume_claim
    yield {"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}}
    yield {"name": "config", "configMap": {"name": names.config_of(name_of(resources.fleet.name))}}
    yield {"name": "data", **({"persistentVolumeClaim": {"claimName": claim}} if claim else {"emptyDir": {}})}
    if not spec.security.plain:
        secret = {"key": names.SECRET_FILE, "path": names.SECRET_FILE}
        keys = {"secretName": names.COLLECTOR_KEYS, "items": [secret], "defaultMode": 0o440}
        yield {"name": "keys", "secret": keys}


class Telling:
    """What passes between the operator and the collectors of one fleet: sessions that are over, and what they know.

    Each session is sent once in the life of this process, by who has the collectors' key. All of it happens on other
    threads; nobody waits for a collector here.
    """

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._sender: Sender | None = None
        self._asker: Asker | None = None
        self._to: tuple[str, int, str] | None = None
        self._offered: set[str] = set()

    @property
    def known(self) -> Known | None:
        """What collectors have said last; None without any, and before they have."""
        return self._asker.known if self._asker is not None else None

    @property
    def status(self) -> dict[str, Any]:
        """For the status of the fleet; empty without collectors, and before anything is known."""
        return {} if self.known is None else self.known.status

    def look(self, fleet: str, replicas: int, keys: Keys | None, sessions: Iterable[Object]) -> None:
        """The sessions as they are now. Without collectors nobody is told or asked; without keys nobody is told."""
        secret = keys.secret if keys is not None else ""
        to = (fleet, replicas, secret) if replicas else None
        if to != self._to:
            self.stop()
            self._to = to
        if to is None:
            return
        places = hosts(fleet, self._namespace, replicas)
        self._asker = self._asker or Asker(lambda: places, Wanted(fleet))
        found = {str(item["metadata"].get("uid", "")): item for item in sessions if is_over(item)}
        news = [item for uid, item in found.items() if uid not in self._offered]
        self._offered = set(found)
        if news and secret:
            self._sender = self._sender or Sender(lambda: places[0], token_of(secret))
            for item in news:
                self._sender.offer(item)

    def stop(self) -> None:
        """End; what has not arrived is sent again by whoever looks next."""
        for each in (self._sender, self._asker):
            if each is not None:
                each.stop(0.0)
        self._sender = self._asker = None
        self._offered = set()
