"""What kopf hears of: an index per kind, and a handler that wakes the fleet of the namespace. Nothing else is done.

No timers, daemons, or handlers of creation and deletion: so kopf writes nothing to any object, puts no finalizer on
one, and takes no edge-triggered event for the truth. By the time that a handler is called, all indexes are complete.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from time import monotonic, time
from typing import Any

import kopf

from plimsoll.core.spec.kinds import GROUP
from plimsoll.operator.kinds import KINDS
from plimsoll.operator.metrics import Metrics
from plimsoll.operator.names import MANAGER, Object
from plimsoll.operator.objects import uid

OWN = ("BrokerFleet", "BrokerCluster", "EdgeBroker", "HardwareProfile", "LoadBalancingSession")
CHILDREN = ("StatefulSet", "Pod", "Service", "ConfigMap", "Secret", "PodDisruptionBudget", "NetworkPolicy")
SPARK = ("Deployment", "CronJob", "ServiceAccount", "Role", "RoleBinding")
"""What Spark's jobs consist of besides; watched where it may be run."""
NODE = "Node"
LONGEST_PAUSE_SECONDS = 10.0

Told = Callable[[str, str, Object], None]
"""Told of a change: its type (ADDED, MODIFIED, DELETED or empty for what was there), its kind, the object."""


class Pauses:
    """Pauses between tries, without end, each different."""

    def __iter__(self) -> Iterator[float]:
        pause = 0.5
        while True:
            yield random.uniform(pause / 2, pause)  # noqa: S311  # spreads requests, hides nothing
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)


def settings(*, interval_seconds: int = 600) -> kopf.OperatorSettings:
    """How kopf watches: it posts no events, obeys no peers, and never gives up on the API server."""
    found = kopf.OperatorSettings()
    found.peering.standalone = True  # one replica, Recreate; fencing is the brokers'
    found.scanning.disabled = True  # no rights on namespaces and definitions are needed
    found.posting.enabled = False
    found.process.ultimate_exiting_timeout = 15
    found.networking.connect_timeout, found.networking.request_timeout = 5, 30
    found.networking.error_backoffs = Pauses()
    found.watching.server_timeout, found.watching.client_timeout = interval_seconds, interval_seconds + 60
    found.watching.connect_timeout = 5
    found.persistence.finalizer = f"{GROUP}/kopf"  # never written: nothing here asks for one
    found.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=GROUP)
    found.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix=GROUP, key="last-handled")
    for kind in (*CHILDREN, *SPARK):
        found.watching.label_selectors[KINDS[kind].plural] = selector(kind)
    return found


def selector(kind: str) -> str:
    """Which objects of a kind are watched: of those that others make, too, only the operator's."""
    return "" if kind in (*OWN, NODE) else f"app.kubernetes.io/managed-by={MANAGER}"


class Watches:
    """The registry for kopf, and what its indexes hold."""

    def __init__(self, told: Told, metrics: Metrics, *, nodes: bool, spark: bool = False) -> None:
        self.registry = kopf.OperatorRegistry()
        self._told, self._metrics = told, metrics
        self._indices: Mapping[str, Any] = {}
        self._nodes = nodes
        kopf.on.login(registry=self.registry)(_login)
        kopf.on.startup(registry=self.registry)(self._begin)
        self._children = (*CHILDREN, *(SPARK if spark else ()))
        self.kinds = (*OWN, *self._children, *((NODE,) if nodes else ()))
        self._ghosts: dict[str, set[str]] = {}
        for kind in self.kinds:
            self._watch(kind)

    def objects(self, namespace: str) -> Iterable[Object]:
        """All objects of a namespace, as the watches have them now."""
        for kind in (*OWN, *self._children):
            index = self._indices.get(kind)
            if index is not None and namespace in index:
                yield from self._there(kind, index[namespace])

    def everywhere(self, kind: str) -> list[Object]:
        """All objects of a kind."""
        index = self._indices.get(kind, {})
        return [item for namespace in index for item in self._there(kind, index[namespace])]

    def gone(self, kind: str, item: Object) -> None:
        """A life of an object is over, and no watch will tell of it: it is not shown any more."""
        index = self._indices.get(kind, {})
        known = self._ghosts.get(kind, set()) & {uid(each) for namespace in index for each in index[namespace]}
        self._ghosts[kind] = known | {uid(item)}

    def _there(self, kind: str, items: Iterable[Object]) -> Iterable[Object]:
        ghosts = self._ghosts.get(kind)
        return items if not ghosts else [item for item in items if uid(item) not in ghosts]

    def nodes(self) -> Mapping[str, Object] | None:
        """Nodes by name, or None where they are not watched."""
        return {item["metadata"]["name"]: item for item in self.everywhere(NODE)} if self._nodes else None

    async def _begin(self, **given: Any) -> None:
        self._indices = {kind: given[kind] for kind in self.kinds}

    def _watch(self, kind: str) -> None:
        known = KINDS[kind]
        group, _, version = known.api_version.rpartition("/")

        async def indexed(namespace: str | None, body: Mapping[str, Any], **_: Any) -> dict[str, Object]:
            return {namespace or "": _plain(known.api_version, kind, body)}

        async def heard(event: Mapping[str, Any], body: Mapping[str, Any], **_: Any) -> None:
            self._metrics.heard = monotonic()
            self._metrics.heard_at.labels(kind).set(time())
            self._told(event["type"] or "", kind, _plain(known.api_version, kind, body))

        kopf.index(group, version, known.plural, id=kind, registry=self.registry)(indexed)
        kopf.on.event(group, version, known.plural, id=f"heard-{kind}", registry=self.registry)(heard)


def essence(item: Object) -> object:
    """All of an object of ours that matters to what should be: not its status, but for the end of a session."""
    metadata = item["metadata"]
    status = item.get("status", {})
    told: object = (status.get("mediatorEpoch"), status.get("draining"))
    if item["kind"] == "LoadBalancingSession":
        told = status.get("endedAt")
    kept = ("generation", "deletionTimestamp", "finalizers", "labels", "annotations", "ownerReferences")
    return {key: metadata.get(key) for key in kept}, told


def _plain(api_version: str, kind: str, body: Mapping[str, Any]) -> Object:
    """An object as a plain mapping, without the record of who wrote which field."""
    metadata = {key: value for key, value in body["metadata"].items() if key != "managedFields"}
    return {**body, "apiVersion": api_version, "kind": kind, "metadata": metadata}


async def _login(**kwargs: Any) -> kopf.ConnectionInfo | None:
    """As a pod's service account, or else by the kubeconfig that KUBECONFIG names."""
    return kopf.login_with_service_account(**kwargs) or kopf.login_with_kubeconfig(**kwargs)
