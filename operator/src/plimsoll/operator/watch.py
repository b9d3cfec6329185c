"""The watches, kept by kopf: an index per kind, and a handler that wakes the fleet of the namespace.

There are no timers, daemons or handlers of creation and deletion, so kopf writes nothing to any object, sets no
finalizers, and no reconciliation depends on a single event. All indexes are complete before a handler is called.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from time import monotonic, time
from typing import Any

import kopf

from plimsoll.core.spec.kinds import GROUP
from plimsoll.operator.kinds import API_KINDS
from plimsoll.operator.metrics import OperatorMetrics
from plimsoll.operator.names import MANAGER, Object
from plimsoll.operator.objects.manifest import uid

CUSTOM_KINDS = (
    "BrokerFleet", "BrokerCluster", "EdgeBroker", "HardwareProfile", "LoadBalancingSession", "Feed", "Channel",
)  # fmt: skip
WRITTEN_KINDS = ("Bundle",)
"""Kinds of ours whose objects the operator writes: they are no news to it."""
CHILD_KINDS = (
    "StatefulSet", "Pod", "Service", "ConfigMap", "Secret", "PodDisruptionBudget", "NetworkPolicy", *WRITTEN_KINDS,
)  # fmt: skip
SPARK_KINDS = ("Deployment", "CronJob", "ServiceAccount", "Role", "RoleBinding")
"""Further kinds that Spark's jobs consist of; watched only if the operator may run Spark."""
NODE_KIND = "Node"
LONGEST_PAUSE_SECONDS = 10.0

OnWatchEvent = Callable[[str, str, Object], None]
"""Called with the type of a change (ADDED, MODIFIED, DELETED, or empty for an initial object), kind and object."""


class ReconnectPauses:
    """Endless random pauses between reconnections; kopf iterates over them for every request."""

    def __iter__(self) -> Iterator[float]:
        pause = 0.5
        while True:
            yield random.uniform(pause / 2, pause)  # noqa: S311  # spreads requests, hides nothing
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)


def kopf_settings(*, interval_seconds: int = 600) -> kopf.OperatorSettings:
    """Settings for kopf: post no events, obey no peers, and never give up on the API server."""
    found = kopf.OperatorSettings()
    found.peering.standalone = True  # a Lease decides who mediates; brokers fence off old mediators
    found.scanning.disabled = True  # no rights on namespaces and definitions are needed
    found.posting.enabled = False
    found.process.ultimate_exiting_timeout = 15
    found.networking.connect_timeout, found.networking.request_timeout = 5, 30
    found.networking.error_backoffs = ReconnectPauses()
    found.watching.server_timeout, found.watching.client_timeout = interval_seconds, interval_seconds + 60
    found.watching.connect_timeout = 5
    found.persistence.finalizer = f"{GROUP}/kopf"  # never written: no handler here needs it
    found.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=GROUP)
    found.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix=GROUP, key="last-handled")
    for kind in (*CHILD_KINDS, *SPARK_KINDS):
        found.watching.label_selectors[API_KINDS[kind].plural] = watch_selector(kind)
    return found


def watch_selector(kind: str) -> str:
    """The label selector for a kind: of kinds that others create, too, only the operator's objects are watched."""
    return "" if kind in (*CUSTOM_KINDS, NODE_KIND) else f"app.kubernetes.io/managed-by={MANAGER}"


class Watches:
    """The registry for kopf, and what its indexes hold."""

    def __init__(self, on_event: OnWatchEvent, metrics: OperatorMetrics, *, nodes: bool, spark: bool = False) -> None:
        self.registry = kopf.OperatorRegistry()
        self._on_event, self._metrics = on_event, metrics
        self._indices: Mapping[str, Any] = {}
        self._nodes = nodes
        kopf.on.login(registry=self.registry)(_login)
        kopf.on.startup(registry=self.registry)(self._use_indices)
        self._children = (*CHILD_KINDS, *(SPARK_KINDS if spark else ()))
        self.kinds = (*CUSTOM_KINDS, *self._children, *((NODE_KIND,) if nodes else ()))
        self._stale_uids: dict[str, set[str]] = {}
        for kind in self.kinds:
            self._watch(kind)

    def objects(self, namespace: str) -> Iterable[Object]:
        """All objects of a namespace, as the watches have them now."""
        for kind in (*CUSTOM_KINDS, *self._children):
            index = self._indices.get(kind)
            if index is not None and namespace in index:
                yield from self._without_stale(kind, index[namespace])

    def all_of_kind(self, kind: str) -> list[Object]:
        """All objects of a kind."""
        index = self._indices.get(kind, {})
        return [item for namespace in index for item in self._without_stale(kind, index[namespace])]

    def drop(self, kind: str, item: Object) -> None:
        """Drop an object that a list has shown to be deleted; its watch will never deliver the deletion."""
        index = self._indices.get(kind, {})
        known = self._stale_uids.get(kind, set()) & {uid(each) for namespace in index for each in index[namespace]}
        self._stale_uids[kind] = known | {uid(item)}

    def _without_stale(self, kind: str, items: Iterable[Object]) -> Iterable[Object]:
        stale = self._stale_uids.get(kind)
        return items if not stale else [item for item in items if uid(item) not in stale]

    def nodes(self) -> Mapping[str, Object] | None:
        """Nodes by name, or None if they are not watched."""
        return {item["metadata"]["name"]: item for item in self.all_of_kind(NODE_KIND)} if self._nodes else None

    async def _use_indices(self, **given: Any) -> None:
        self._indices = {kind: given[kind] for kind in self.kinds}

    def _watch(self, kind: str) -> None:
        known = API_KINDS[kind]
        group, _, version = known.api_version.rpartition("/")

        async def index(namespace: str | None, body: Mapping[str, Any], **_: Any) -> dict[str, Object]:
            return {namespace or "": _plain_object(known.api_version, kind, body)}

        async def on_event(event: Mapping[str, Any], body: Mapping[str, Any], **_: Any) -> None:
            self._metrics.last_event_at = monotonic()
            self._metrics.last_event_timestamp.labels(kind).set(time())
            self._on_event(event["type"] or "", kind, _plain_object(known.api_version, kind, body))

        kopf.index(group, version, known.plural, id=kind, registry=self.registry)(index)
        kopf.on.event(group, version, known.plural, id=f"heard-{kind}", registry=self.registry)(on_event)


def relevant_fields(item: Object) -> object:
    """The part of a custom object that matters to a plan: of its status only the end of a session and the epoch."""
    metadata = item["metadata"]
    status = item.get("status", {})
    told: object = (status.get("mediatorEpoch"), status.get("draining"))
    if item["kind"] == "LoadBalancingSession":
        told = status.get("endedAt")
    kept = ("generation", "deletionTimestamp", "finalizers", "labels", "annotations", "ownerReferences")
    return {key: metadata.get(key) for key in kept}, told


def _plain_object(api_version: str, kind: str, body: Mapping[str, Any]) -> Object:
    """An object as a plain mapping, without `managedFields`, which is large and never read."""
    metadata = {key: value for key, value in body["metadata"].items() if key != "managedFields"}
    return {**body, "apiVersion": api_version, "kind": kind, "metadata": metadata}


async def _login(**kwargs: Any) -> kopf.ConnectionInfo | None:
    """Log in as the pod's service account, or else by the kubeconfig that KUBECONFIG names."""
    return kopf.login_with_service_account(**kwargs) or kopf.login_with_kubeconfig(**kwargs)
