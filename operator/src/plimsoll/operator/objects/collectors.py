"""Collectors of telemetry as pods: one StatefulSet for the fleet, with its configuration, address and volume.

All pods read one file and derive their index from their name. They share one identity, which may only listen to heads.
Their files are on the claim that the fleet names, where jobs find them, too; without a claim they live as long as their
pod. User and group are those of Spark's pods, so that either may remove the other's files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from plimsoll.core.config import BrokerConfig, LinkSecurity, PeerBroker
from plimsoll.core.spec import Resources
from plimsoll.core.spec.field_info import BROKER_NAME_LENGTH
from plimsoll.operator import names
from plimsoll.operator.names import Object
from plimsoll.operator.objects import dataset_pods, network
from plimsoll.operator.objects.manifest import container_basics, pod_basics, tolerations
from plimsoll.operator.objects.pods import port_of
from plimsoll.operator.security.keys import StoredKeys
from plimsoll.telemetry import config as configuration
from plimsoll.telemetry.client.outcome_sender import OutcomeSender
from plimsoll.telemetry.client.snapshot_poller import PollResult, SnapshotPoller
from plimsoll.telemetry.config import CollectorConfig, MonitoredCluster
from plimsoll.telemetry.credentials import bearer_token
from plimsoll.telemetry.session_rows import is_over
from plimsoll.telemetry.snapshot import SnapshotRequirements

HTTP_PORT = 7410
DATA_FOLDER = "/data"
USER = 185
GRACE_SECONDS = 30
"""Time for a collector to write its buffers when it is terminated."""
CPU, MEMORY = ("50m", "1"), ("160Mi", "512Mi")
"""Requests and limits of a pod; docs/telemetry.md has what collectors were measured to use."""


def collector_name(fleet: str) -> str:
    """The name of the StatefulSet, and of the headless Service by which each pod is reached."""
    return dataset_pods.service_name(f"{fleet}-telemetry", most=BROKER_NAME_LENGTH)


def collector_labels(fleet: str) -> dict[str, str]:
    """The labels of all objects of collectors."""
    return {
        **names.fleet_labels(fleet),
        "app.kubernetes.io/name": "plimsoll-collector",
        "app.kubernetes.io/instance": collector_name(fleet),
        "app.kubernetes.io/component": "collector",
    }


def collector_addresses(fleet: str, namespace: str, replicas: int) -> tuple[tuple[str, int], ...]:
    """Host and port of each collector."""
    name = collector_name(fleet)
    return tuple((f"{name}-{index}.{name}.{namespace}.svc", HTTP_PORT) for index in range(replicas))


def collector_objects(
    resources: Resources,
    brokers: Iterable[tuple[BrokerConfig, str]],
    image: str,
    metadata: Object,
    beside: Object | None = None,
) -> Iterator[Object]:
    """The objects of a fleet's collectors; none without replicas. `brokers`: each with its public key.

    `beside`: a container that shares the collector's pod and files.
    """
    if not resources.fleet.spec.telemetry.collectors.replicas:
        return
    fleet, known = resources.fleet.name, list(brokers)
    text = configuration.encode_config(collector_config(resources, known, metadata["namespace"])).decode()
    yield {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {**metadata, "name": names.config_of(collector_name(fleet)), "labels": collector_labels(fleet)},
        "data": {names.CONFIG_FILE: text},
    }
    control = frozenset(port_of(config.control) for config, _ in known)
    yield network.collector_policy(fleet, HTTP_PORT, control, metadata)
    yield _service(fleet, metadata)
    yield _stateful_set(resources, _pod_spec(resources, image, beside), metadata)


def collector_config(
    resources: Resources, brokers: Iterable[tuple[BrokerConfig, str]], namespace: str
) -> CollectorConfig:
    """The configuration file of collectors."""
    spec, fleet = resources.fleet.spec, resources.fleet.name
    members: dict[str, list[str]] = {}
    heads: dict[str, PeerBroker] = {}
    for config, key in brokers:
        members.setdefault(config.cluster, []).append(config.name)
        if config.role == "head":
            control = f"tcp://{names.host_of(config.name, namespace)}:{port_of(config.control)}"
            heads[config.cluster] = PeerBroker(name=config.name, control=control, public_key=key)
    secret = "" if spec.security.plain else f"{names.KEYS_FOLDER}/{names.SECRET_FILE}"
    return CollectorConfig(
        name=collector_name(fleet),
        fleet=fleet,
        folder=DATA_FOLDER,
        identity=names.COLLECTOR,
        collectors=spec.telemetry.collectors.replicas,
        interval_seconds=spec.telemetry.collectors.interval.seconds,
        retain_seconds=spec.telemetry.collectors.retain.seconds,
        report_seconds=spec.telemetry.report_interval.seconds * spec.time_scale_percent / 100,
        http=f"0.0.0.0:{HTTP_PORT}",
        security=LinkSecurity(plain=spec.security.plain, secret_key_file=secret),
        clusters={
            name: MonitoredCluster(head=heads[name], brokers=tuple(sorted(members[name]))) for name in sorted(heads)
        },
    )


def _service(fleet: str, metadata: Object) -> Object:
    """A headless Service: each collector has its own share of the fleet, so each needs an address."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {**metadata, "name": collector_name(fleet), "labels": collector_labels(fleet)},
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
        "metadata": {**metadata, "name": collector_name(fleet), "labels": collector_labels(fleet)},
        "spec": {
            "replicas": resources.fleet.spec.telemetry.collectors.replicas,
            "revisionHistoryLimit": 1,
            "serviceName": collector_name(fleet),
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": _selector(fleet)},
            "template": {"metadata": {"labels": collector_labels(fleet)}, "spec": pod},
        },
    }


def _selector(fleet: str) -> dict[str, str]:
    return {names.FLEET: fleet, "app.kubernetes.io/component": "collector"}


def _pod_spec(resources: Resources, image: str, beside: Object | None) -> Object:
    container = _container(image, keyed=not resources.fleet.spec.security.plain)
    others = [] if beside is None else [beside]
    return {
        **pod_basics(USER, GRACE_SECONDS, has_large_volume=True),
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
        **container_basics(ready_seconds=5),
        "volumeMounts": [
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108  # a volume of the pod's own
            {"name": "config", "mountPath": names.CONFIG_FOLDER, "readOnly": True},
            {"name": "data", "mountPath": DATA_FOLDER},
            *keys,
        ],
    }


def _volumes(resources: Resources) -> Iterator[Object]:
    spec = resources.fleet.spec
    claim = spec.telemetry.collectors.volume_claim
    yield {"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}}
    yield {"name": "config", "configMap": {"name": names.config_of(collector_name(resources.fleet.name))}}
    yield {"name": "data", **({"persistentVolumeClaim": {"claimName": claim}} if claim else {"emptyDir": {}})}
    if not spec.security.plain:
        secret = {"key": names.SECRET_FILE, "path": names.SECRET_FILE}
        keys = {"secretName": names.COLLECTOR_KEYS, "items": [secret], "defaultMode": 0o440}
        yield {"name": "keys", "secret": keys}


class FleetCollectorClient:
    """Sends finished sessions to the collectors of one fleet, and polls their snapshots.

    Each process sends each session once, signed with the collectors' key. All requests run on other threads, so
    reconciliation never waits for a collector.
    """

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._sender: OutcomeSender | None = None
        self._asker: SnapshotPoller | None = None
        self._to: tuple[str, int, str] | None = None
        self._offered: set[str] = set()

    @property
    def known(self) -> PollResult | None:
        """The last poll of the collectors; None without collectors, and before the first answer."""
        return self._asker.result if self._asker is not None else None

    @property
    def status(self) -> dict[str, Any]:
        """The telemetry part of the fleet's status; empty without collectors, and before the first answer."""
        return {} if self.known is None else self.known.status

    def update(self, fleet: str, replicas: int, keys: StoredKeys | None, sessions: Iterable[Object]) -> None:
        """Start, stop or update the client. Without replicas it does nothing; without keys it only polls."""
        secret = keys.secret if keys is not None else ""
        to = (fleet, replicas, secret) if replicas else None
        if to != self._to:
            self.stop()
            self._to = to
        if to is None:
            return
        places = collector_addresses(fleet, self._namespace, replicas)
        self._asker = self._asker or SnapshotPoller(lambda: places, SnapshotRequirements(fleet))
        found = {str(item["metadata"].get("uid", "")): item for item in sessions if is_over(item)}
        news = [item for uid, item in found.items() if uid not in self._offered]
        self._offered = set(found)
        if news and secret:
            self._sender = self._sender or OutcomeSender(lambda: places[0], bearer_token(secret))
            for item in news:
                self._sender.enqueue(item)

    def stop(self) -> None:
        """Stop both threads; the next process sends unconfirmed sessions again."""
        for each in (self._sender, self._asker):
            if each is not None:
                each.stop(0.0)
        self._sender = self._asker = None
        self._offered = set()
