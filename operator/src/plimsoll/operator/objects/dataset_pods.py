"""Pods that work on a fleet's volume of datasets: recorders of feeds, and the driver of channels.

Each is a StatefulSet of one pod, which never has two pods at once: a dataset and a ledger have one writer. The volume
is the claim that the fleet names; without it there are only pods that keep what they have in an object store, since it
has to outlast them. User and group are those of collectors and of Spark, so that each may read the other's files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from plimsoll.client.connection_file import connection_file_text
from plimsoll.core.client import Address
from plimsoll.core.config import BrokerConfig
from plimsoll.core.spec import Resource, ResourceProblem, Resources
from plimsoll.core.spec.dataset_identities import channels_identity, recorder_identity
from plimsoll.core.spec.kinds import FeedSpec
from plimsoll.core.spec.types.fleet import ClientSpec
from plimsoll.feeds.object_path import is_object_url
from plimsoll.operator import names
from plimsoll.operator.names import Object
from plimsoll.operator.objects.manifest import container_basics, digest, pod_basics, tolerations
from plimsoll.sparkjobs.launch.executors import TEMPLATE_FOLDER

HTTP_PORT, FEED_PORT = 7420, 7421
"""`FEED_PORT`: where a recorder serves its dataset."""
DATA_FOLDER = "/data"
TMP_FOLDER = "/tmp"  # noqa: S108  # a volume of the pod's own
USER = 185
CONNECTION_FILE = "connection.json"
CONTROL_KEYS_FOLDER = "/etc/plimsoll/control-keys"
NAME_LENGTH = 50
"""Kubernetes puts the name of a StatefulSet, with a hash, into labels of 63 characters."""
COMPONENT = "app.kubernetes.io/component"
RECORDER_COMPONENT, DRIVER_COMPONENT = "recorder", "channels"
NO_ANNOTATIONS: Mapping[str, str] = MappingProxyType({})
_PARTS = re.compile(r"[/{},]")


@dataclass(frozen=True, kw_only=True)
class DatasetPod:
    """What one of these pods is made of.

    `keys`: the Secret of its identity as a client; `control_keys`: that of its identity at edges, and `control_key` the
    public key there, which it reads once; all empty in a fleet without keys. `config`: the text of its configuration.
    `restarts`: whether a change of it restarts the pod. `start_seconds`: how long it may take until it answers.
    `serves`: whether it serves its dataset; with keys it then has the file of those who may read. `account`: the
    ServiceAccount that it uses; empty: none. `environment`: variables of its container. `executor_template`: the
    ConfigMap with the template of its executors in Spark; empty: it has none. `is_ready_at_once`: whether the pod
    counts as ready while its program starts. `annotations`: of the pod.
    """

    name: str
    component: str
    image: str
    command: tuple[str, ...]
    config: str
    cpu: str
    memory: tuple[str, str]
    grace_seconds: int
    start_seconds: int
    keys: str = ""
    control_keys: str = ""
    control_key: str = ""
    restarts: bool = True
    serves: bool = False
    account: str = ""
    environment: tuple[Object, ...] = ()
    executor_template: str = ""
    is_ready_at_once: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


def is_recorded(resources: Resources, feed: Resource[FeedSpec]) -> bool:
    """Whether there is a place for the dataset of a feed: on the fleet's volume, or in an object store."""
    return bool(resources.fleet.spec.datasets.volume_claim) or is_object_url(feed.spec.path)


def recorded_feeds(resources: Resources) -> list[Resource[FeedSpec]]:
    """The feeds that have a recorder."""
    return [feed for _, feed in sorted(resources.feeds.items()) if is_recorded(resources, feed)]


def runs_channels(resources: Resources) -> bool:
    """Whether there are channels, and a place for their ledgers."""
    datasets = resources.fleet.spec.datasets
    return bool(resources.channels) and bool(datasets.volume_claim or datasets.ledgers)


def service_name(name: str, most: int = NAME_LENGTH) -> str:
    """A name for a StatefulSet and its Service: as given, or with a letter before it or a hash in place of its end."""
    name = name if name[0].isalpha() else f"f{name}"
    return name if len(name) <= most else f"{name[: most - 9]}-{digest(name)[:8]}"


def identities(resources: Resources) -> Iterator[tuple[str, ClientSpec]]:
    """The identities of these pods as clients, by the name of their Secret. No other identity may use their names."""
    if recorded_feeds(resources):
        yield names.RECORDER_KEYS, recorder_identity(names.RECORDER)
    if runs_channels(resources):
        yield names.CHANNEL_KEYS, channels_identity(names.CHANNELS)


def path_problems(resources: Resources) -> Iterator[ResourceProblem]:
    """Paths that lead out of the volume, beyond which pods can write nothing."""
    remedy = "Write one below the volume, such as feeds/NAME."
    for _, feed in sorted(resources.feeds.items()):
        if _leads_out(feed.spec.path):
            yield feed.problem(("spec", "path"), f"{feed.spec.path} is not on the volume of datasets", remedy)
    for _, channel in sorted(resources.channels.items()):
        for index, table in enumerate(channel.spec.tables):
            if _leads_out(table.path):
                found = f"{table.path} is not on the volume of datasets"
                yield channel.problem(("spec", "tables", index, "path"), found, remedy)


def _leads_out(path: str) -> bool:
    """Spark takes the path of a table as a pattern: `{../a,b}` is two paths, and `.\\.` is `..`."""
    if is_object_url(path):
        return False
    return path.startswith("/") or ".." in _PARTS.split(path.replace("\\", ""))


def plain_connection(heads: Mapping[str, BrokerConfig]) -> str:
    """The connection file of a fleet without keys."""
    return connection_file_text({name: Address(config.advertised) for name, config in heads.items()}, None)


def connection_of(resources: Resources) -> str:
    """Where a pod finds the heads and its keys: the folder of its Secret, or the file of a fleet without keys."""
    plain = resources.fleet.spec.security.plain
    return f"{names.CONFIG_FOLDER}/{CONNECTION_FILE}" if plain else names.KEYS_FOLDER


def pod_objects(resources: Resources, wanted: DatasetPod, metadata: Object, connection: str) -> Iterator[Object]:
    """The ConfigMap, the StatefulSet, and the Service of what it serves. `connection`: the file of a plain fleet."""
    labels = _labels(resources.fleet.name, wanted)
    config = config_map(resources, wanted, metadata, connection)
    yield config
    if wanted.serves:
        yield _service(resources.fleet.name, wanted, {**metadata, "name": wanted.name, "labels": labels})
    restart = {names.CONFIG_HASH: digest(config["data"])} if wanted.restarts else {}
    yield {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {**metadata, "name": wanted.name, "labels": labels},
        "spec": {
            "replicas": 1,
            "revisionHistoryLimit": 1,
            "serviceName": wanted.name,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": _selector(resources.fleet.name, wanted)},
            "template": pod_template(resources, wanted, restart),
        },
    }


def config_map(resources: Resources, wanted: DatasetPod, metadata: Object, connection: str) -> Object:
    """The ConfigMap of a pod. `connection`: the file of a plain fleet."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            **metadata, "name": names.config_of(wanted.name), "labels": _labels(resources.fleet.name, wanted)
        },
        "data": {names.CONFIG_FILE: wanted.config, **({CONNECTION_FILE: connection} if connection else {})},
    }  # fmt: skip


def pod_template(resources: Resources, wanted: DatasetPod, more: Mapping[str, str] = NO_ANNOTATIONS) -> Object:
    """Labels, annotations and specification of a pod. `more`: further annotations."""
    key = {names.KEY: wanted.control_key} if wanted.control_key else {}
    annotations = {**wanted.annotations, **more, **key}
    labels = _labels(resources.fleet.name, wanted)
    return {
        "metadata": {"labels": labels, **({"annotations": annotations} if annotations else {})},
        "spec": _pod_spec(resources, wanted),
    }


def beside(fleet: str) -> Object:
    """A selector of a fleet's recorders and of its driver of channels, which share a volume."""
    return {
        "matchLabels": {names.FLEET: fleet},
        "matchExpressions": [{"key": names.DATASET_POD, "operator": "Exists"}],
    }


def _service(fleet: str, wanted: DatasetPod, metadata: Object) -> Object:
    """Where applications read. It has an address before the pod is ready: a dataset can be read without a head."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {
            "type": "ClusterIP",
            "publishNotReadyAddresses": True,
            "selector": _selector(fleet, wanted),
            "ports": [{"name": "feed", "port": FEED_PORT, "targetPort": "feed", "protocol": "TCP"}],
        },
    }


def _selector(fleet: str, wanted: DatasetPod) -> dict[str, str]:
    return {names.FLEET: fleet, names.DATASET_POD: wanted.name}


def _labels(fleet: str, wanted: DatasetPod) -> dict[str, str]:
    return {
        **names.fleet_labels(fleet),
        "app.kubernetes.io/name": f"plimsoll-{wanted.component}",
        "app.kubernetes.io/instance": wanted.name,
        COMPONENT: wanted.component,
        names.DATASET_POD: wanted.name,
        **wanted.labels,
    }


def _pod_spec(resources: Resources, wanted: DatasetPod) -> Object:
    fleet, claim = resources.fleet.spec, resources.fleet.spec.datasets.volume_claim
    is_tied = bool(claim) and fleet.datasets.volume_access != "ReadWriteMany"
    return {
        **pod_basics(USER, wanted.grace_seconds, has_large_volume=True),
        **({"serviceAccountName": wanted.account, "automountServiceAccountToken": True} if wanted.account else {}),
        "tolerations": tolerations(fleet.pods.lost_node_after.seconds),
        **({"affinity": _on_one_node(resources.fleet.name)} if is_tied else {}),
        "containers": [{**_container(wanted, has_volume=bool(claim)), **_store(fleet.datasets.store_secret)}],
        "volumes": [*_volumes(resources, wanted)],
    }


def _store(secret: str) -> Object:
    """Address and credentials of the object store, as environment variables."""
    return {"envFrom": [{"secretRef": {"name": secret}}]} if secret else {}


def _on_one_node(fleet: str) -> Object:
    """All of them on one node, which alone can mount the claim. The first of them may be on any."""
    term = {"labelSelector": beside(fleet), "topologyKey": "kubernetes.io/hostname"}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _container(wanted: DatasetPod, *, has_volume: bool) -> Object:
    memory, most_memory = wanted.memory
    basics = container_basics(ready_seconds=2)
    ports = {"http": HTTP_PORT, **({"feed": FEED_PORT} if wanted.serves else {})}
    mounts = {"tmp": TMP_FOLDER, **({"data": DATA_FOLDER} if has_volume else {})}
    read_only = {"config": names.CONFIG_FOLDER}
    read_only |= {"keys": names.KEYS_FOLDER} if wanted.keys else {}
    read_only |= {"control-keys": CONTROL_KEYS_FOLDER} if wanted.control_keys else {}
    read_only |= {"readers": names.AUTHORIZED_FOLDER} if _has_readers(wanted) else {}
    read_only |= {"template": TEMPLATE_FOLDER} if wanted.executor_template else {}
    return {
        "name": wanted.component,
        "image": wanted.image,
        "imagePullPolicy": "IfNotPresent",
        "command": list(wanted.command),
        **({"env": list(wanted.environment)} if wanted.environment else {}),
        "ports": [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in ports.items()],
        "resources": {"requests": {"cpu": wanted.cpu, "memory": memory}, "limits": {"memory": most_memory}},
        "securityContext": basics["securityContext"],
        **_probes(basics, wanted),
        "volumeMounts": [
            *({"name": name, "mountPath": path} for name, path in mounts.items()),
            *({"name": name, "mountPath": path, "readOnly": True} for name, path in read_only.items()),
        ],
    }


def _probes(basics: Object, wanted: DatasetPod) -> Object:
    if wanted.is_ready_at_once:
        return {"livenessProbe": {**basics["livenessProbe"], "initialDelaySeconds": wanted.start_seconds}}
    startup = {**basics["startupProbe"], "failureThreshold": wanted.start_seconds}
    return {"startupProbe": startup, **{name: basics[name] for name in ("readinessProbe", "livenessProbe")}}


def _volumes(resources: Resources, wanted: DatasetPod) -> Iterator[Object]:
    yield {"name": "tmp", "emptyDir": {}}
    if claim := resources.fleet.spec.datasets.volume_claim:
        yield {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
    yield {"name": "config", "configMap": {"name": names.config_of(wanted.name)}}
    for name, secret in (("keys", wanted.keys), ("control-keys", wanted.control_keys)):
        if secret:
            yield {"name": name, "secret": {"secretName": secret, "defaultMode": 0o440}}
    if _has_readers(wanted):
        file = {"key": names.READERS_FILE, "path": names.READERS_FILE}
        yield {"name": "readers", "configMap": {"name": names.AUTHORIZED_KEYS, "items": [file]}}
    if wanted.executor_template:
        yield {"name": "template", "configMap": {"name": wanted.executor_template}}


def _has_readers(wanted: DatasetPod) -> bool:
    return wanted.serves and bool(wanted.keys)
