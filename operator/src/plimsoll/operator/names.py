"""Names on Kubernetes: objects of a broker, labels, annotations, ports and paths.

They must not change: the chart's RBAC rules, dashboards, `kubectl plimsoll` and running fleets rely on them.
"""

from __future__ import annotations

from typing import Any

from plimsoll.core.config import Role
from plimsoll.core.spec.kinds import GROUP

Object = dict[str, Any]

MANAGER = "plimsoll-operator"
"""The field manager of server-side apply, and the value of the managed-by label."""
MEDIATOR = "plimsoll.mediator"
"""The operator's name on the wire; brokers' names have no dot, so no broker can have it."""
COLLECTOR = "plimsoll.collector"
"""The name of all collectors of a fleet on the wire."""
RECORDER = "plimsoll.recorder"
"""The identity of the recorders of feeds, as clients of heads."""
CHANNELS = "plimsoll.channels"
"""The identity of the driver of channels, as a client of heads."""
PARAMETERS = "plimsoll.parameters"
"""The identity with which the driver of channels lists parameters at edges, as collectors do."""
FINALIZER = f"{GROUP}/evacuate"
"""Earlier versions put it on EdgeBrokers; it is removed, since a namespace could not be deleted without an operator."""

FLEET = f"{GROUP}/fleet"
CLUSTER = f"{GROUP}/cluster"
BROKER = f"{GROUP}/broker"
CLIENT = f"{GROUP}/client"
DATASET_POD = f"{GROUP}/dataset-pod"
"""On what belongs to a recorder or to the driver of channels: the name of its StatefulSet or SparkApplication."""

DESIRED_HASH = f"{GROUP}/desired-hash"
"""On every child: the hash of the desired object when it was written."""
RESTART_HASH = f"{GROUP}/restart-hash"
"""On a pod: the hash of its start parameters, which cannot change while it runs."""
RESTART_FIELDS = f"{GROUP}/restart-fields"
"""On a pod: its start parameters, each as NAME=HASH, to say which one has changed."""
KEY = f"{GROUP}/public-key"
"""On a pod: the public key that it was given."""
STANDBY_KEY = f"{GROUP}/standby-key"
"""On a pod of a head with a standby: the key by which its process would follow the other one. On a pod that runs, a
change makes the kubelet update the mounted configuration at once."""
KEYS_HASH = f"{GROUP}/authorized-keys-hash"
"""On a pod: changed by the operator to make the kubelet update the mounted authorized keys at once."""
CONFIG_HASH = f"{GROUP}/config-hash"
"""On the pod of a recorder, which is restarted by a change; on that of a driver of channels, where it makes the kubelet
update the mounted file at once."""
KEYS_AT = f"{GROUP}/authorized-keys-at"
"""On a pod: the time of that change."""
EVICTABLE = f"{GROUP}/evictable"
"""A label of a pod that may be evicted, because its node is drained: since when, in whole seconds since 1970."""
ROTATE = f"{GROUP}/rotate-keys"
"""On a fleet or an edge, set by users: any new text requests new keys."""
ROTATED = f"{GROUP}/rotated-keys"
"""On a Secret: the text of `ROTATE` for which its keys were last replaced."""

POD_NAME = "statefulset.kubernetes.io/pod-name"
"""A label that Kubernetes gives the pods of a StatefulSet; the Service of a head selects by it, as it may have two."""

RELEASE = f"{GROUP}/release"
"""On the Lease of a fleet: NAMESPACE/NAME of the Deployment of the operators that serve it."""

DEPARTED = f"{GROUP}/departed"
"""In the operator's memory only: on an EdgeBroker that is deleted and whose pod still runs."""
DELETED_AT = f"{GROUP}/keys-deleted-at"
"""On a Secret: when it was made in place of a deleted one, whose public key it holds as the old one."""

ACCEPTED = "plimsoll-accepted"
"""The ConfigMap with the objects that the fleet was last built of."""

DATA_PORT, CONTROL_PORT, HTTP_PORT, PAIR_PORT = 7400, 7401, 7402, 7403
"""`PAIR_PORT`: where each of the two processes of a head with a standby listens for the operator, whatever it is."""
PAIR_PORT_NAME = "pair"
LOG_FOLDER = "/var/lib/plimsoll/log"
CONFIG_FOLDER, KEYS_FOLDER, AUTHORIZED_FOLDER = "/etc/plimsoll/config", "/etc/plimsoll/keys", "/etc/plimsoll/authorized"
CONFIG_FILE, SECRET_FILE, PUBLIC_FILE, AUTHORIZED_FILE = "config.json", "secret.key", "public.key", "authorized_keys"
READERS_FILE = "feed_readers"
"""Beside the authorized keys of brokers: the clients, and which feeds each may read."""
CONTAINER = "broker"
USER = 10001

AUTHORIZED_KEYS = "plimsoll-authorized-keys"
MEDIATOR_KEYS = "plimsoll-mediator-keys"
COLLECTOR_KEYS = "plimsoll-collector-keys"
RECORDER_KEYS = "plimsoll-recorder-keys"
CHANNEL_KEYS = "plimsoll-channel-keys"
PARAMETER_KEYS = "plimsoll-parameter-keys"
NETWORK_POLICY = "plimsoll-brokers"
COLLECTOR_POLICY = "plimsoll-collectors"
DATASET_POLICY = "plimsoll-datasets"
FEED_POLICY = "plimsoll-feeds"
CHANNEL_POLICY, EXECUTOR_POLICY = "plimsoll-channels", "plimsoll-executors"
"""`CHANNEL_POLICY`: what the driver of channels may reach beyond other pods on the volume, for its executors."""


def config_of(broker: str) -> str:
    """The ConfigMap of a broker."""
    return f"{broker}-config"


def keys_of(broker: str) -> str:
    """The Secret of a broker."""
    return f"{broker}-keys"


def client_keys(client: str) -> str:
    """The Secret of a client."""
    return f"plimsoll-client-{client}"


def external_of(broker: str) -> str:
    """The Service by which a broker is reached from outside the cluster."""
    return f"{broker}-external"


def pod_of(broker: str, number: int = 0) -> str:
    """The pod of a broker's StatefulSet; a head with a standby has two, 0 and 1."""
    return f"{broker}-{number}"


def process_of(head: str, number: int) -> str:
    """The name of the connection to one of the two processes of a head; no broker can have it."""
    return f"{head}.{number}"


def host_of(broker: str, namespace: str) -> str:
    """The name by which pods in any namespace reach a broker."""
    return f"{broker}.{namespace}.svc"


def fleet_labels(fleet: str) -> dict[str, str]:
    """Labels of what belongs to the fleet as a whole."""
    return {
        "app.kubernetes.io/name": "plimsoll",
        "app.kubernetes.io/part-of": fleet,
        "app.kubernetes.io/managed-by": MANAGER,
        FLEET: fleet,
    }


def broker_labels(fleet: str, cluster: str, broker: str, role: Role) -> dict[str, str]:
    """Labels of everything that belongs to one broker."""
    return {
        "app.kubernetes.io/name": "plimsoll-broker",
        "app.kubernetes.io/instance": broker,
        "app.kubernetes.io/component": role,
        "app.kubernetes.io/part-of": fleet,
        "app.kubernetes.io/managed-by": MANAGER,
        FLEET: fleet,
        CLUSTER: cluster,
        BROKER: broker,
    }
