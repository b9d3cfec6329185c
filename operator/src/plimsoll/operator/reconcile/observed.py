"""A fleet as observed: its objects, and the meaning of pod and node states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from types import MappingProxyType
from typing import Any

from plimsoll.core.config import Role
from plimsoll.core.head.standby.leadership import stored_leadership
from plimsoll.core.spec import API_VERSION, head_name
from plimsoll.operator import names
from plimsoll.operator.names import Object
from plimsoll.operator.objects.manifest import Ref, annotation, is_leaving

NOT_READY_SECONDS = 30.0
"""An edge that has not been ready for this long, while its head is, counts as out of service."""
STUCK_SECONDS = 60.0
"""An edge that has not been ready for this long, while its head is, has lost it for good and is restarted."""
_TAINTED = "DeletionByTaintManager"


@dataclass(frozen=True)
class ObservedObjects:
    """The objects of one namespace, by kind and name; `nodes` is None if the operator may not read nodes."""

    objects: Mapping[Ref, Object]
    nodes: Mapping[str, Object] | None = None

    def kind(self, kind: str) -> Iterator[Object]:
        """The objects of a kind, by name."""
        return iter(self._by_kind.get(kind, ()))

    @cached_property
    def _by_kind(self) -> Mapping[str, list[Object]]:
        """Cached: a plan asks for kinds many times, and a large fleet has thousands of objects."""
        found: dict[str, list[Object]] = {}
        for ref in sorted(self.objects):
            found.setdefault(ref[0], []).append(self.objects[ref])
        return found

    def get(self, kind: str, name: str) -> Object | None:
        return self.objects.get((kind, name))

    def pod(self, broker: str) -> Object | None:
        """The pod of a broker; of a head with a standby the one that leads, as stored."""
        return self._pod(broker, self._leaders.get(broker, 0))

    def standby_pod(self, head: str) -> Object | None:
        """The other pod of a head with a standby."""
        return self._pod(head, 1 - self._leaders.get(head, 0))

    def pods(self, broker: str) -> Iterator[Object]:
        """All pods of a broker, the one that leads first."""
        return (pod for pod in (self.pod(broker), self.standby_pod(broker)) if pod is not None)

    def _pod(self, broker: str, number: int) -> Object | None:
        found = self.get("Pod", names.pod_of(broker, number))
        return found if found is not None and label(found, names.BROKER) == broker else None

    @cached_property
    def _leaders(self) -> Mapping[str, int]:
        """By head, which of its pods leads."""
        return {
            head_name(str(item["metadata"]["name"])): stored_leadership(item.get("status", {})).leader
            for item in self.kind("BrokerCluster")
        }

    def dataset_pod(self, name: str) -> Object | None:
        """The pod of a recorder or of the driver of channels, by the name of what has made it; the newest of several.

        An operator for Spark may keep pods of drivers that have ended.
        """
        return self._dataset_pods.get(name)

    @cached_property
    def _dataset_pods(self) -> Mapping[str, Object]:
        pods = [pod for pod in self.kind("Pod") if label(pod, names.DATASET_POD)]
        pods.sort(key=lambda pod: (str(pod["metadata"].get("creationTimestamp", "")), str(pod["metadata"]["name"])))
        return {label(pod, names.DATASET_POD): pod for pod in pods}

    def node_of(self, pod: Object) -> Object | None:
        """The node of a pod, if nodes are watched."""
        return (self.nodes or {}).get(str(pod.get("spec", {}).get("nodeName", "")))

    def brokers(self) -> dict[str, Role]:
        """Brokers that have a StatefulSet or a pod."""
        found: dict[str, Role] = {}
        for kind in ("StatefulSet", "Pod"):
            for item in self.kind(kind):
                name, role = label(item, names.BROKER), label(item, "app.kubernetes.io/component")
                if name and label(item, "app.kubernetes.io/managed-by") == names.MANAGER:
                    found[name] = "head" if role == "head" else "edge"
        return found


def with_departed_edges(objects: Mapping[Ref, Object]) -> dict[Ref, Object]:
    """The objects, and for each edge that still runs without an EdgeBroker one that is being deleted.

    Nothing holds up the deletion of an EdgeBroker, least of all that of its namespace. Its pod belongs to the cluster
    and stays until its subscribers have been moved; until then the edge is taken for one that leaves.
    """
    found = dict(objects)
    for name, role in ObservedObjects(objects).brokers().items():
        if role == "edge" and ("EdgeBroker", name) not in objects:
            left = objects.get(("StatefulSet", name)) or objects["Pod", names.pod_of(name)]
            found["EdgeBroker", name] = _departed(name, left)
    return found


def is_departed(edge: Mapping[str, Any]) -> bool:
    """Whether an EdgeBroker is deleted, and only what it left behind is there."""
    return names.DEPARTED in (edge["metadata"].get("annotations") or {})


def _departed(name: str, left: Object) -> Object:
    kept = {key: left["metadata"][key] for key in ("namespace", "uid") if key in left["metadata"]}
    metadata = {**kept, "name": name, "annotations": {names.DEPARTED: "true"}, "finalizers": []}
    since = left["metadata"].get("creationTimestamp", "")
    spec = {"clusterRef": {"name": label(left, names.CLUSTER)}, "profile": ""}
    return {
        "apiVersion": API_VERSION,
        "kind": "EdgeBroker",
        "metadata": {**metadata, "deletionTimestamp": since},
        "spec": spec,
    }


def label(item: Mapping[str, object], key: str) -> str:
    """The value of a label; empty if there is none."""
    metadata = item.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, Mapping) else None
    return str((labels or {}).get(key, ""))


def unix_seconds(time: str) -> float:
    """A time of the API server, in seconds since 1970."""
    return datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp()


def rfc3339(at: float) -> str:
    """A time in seconds since 1970 as the API server writes it."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# -- pods


def condition(item: Object, type_: str) -> Mapping[str, str]:
    """A condition of an object's status; empty if it has none of this type."""
    found = (each for each in item.get("status", {}).get("conditions") or [] if each.get("type") == type_)
    return next(found, {})


def is_ready(pod: Object | None) -> bool:
    """Whether a pod is ready and not being deleted."""
    return pod is not None and not is_leaving(pod) and condition(pod, "Ready").get("status") == "True"


def broker_container(pod: Object) -> Object:
    """The state of the broker's container; empty before there is one."""
    return container_of(pod, names.CONTAINER)


def container_of(pod: Object, name: str) -> Object:
    """The state of a container; empty before there is one."""
    states = pod.get("status", {}).get("containerStatuses") or []
    return dict(next((each for each in states if each.get("name") == name), {}))


def pod_trouble(pod: Object, container: str = names.CONTAINER) -> tuple[str, str]:
    """Why a pod does not run, as a reason and a message; both empty if it runs or is about to."""
    if condition(pod, "PodScheduled").get("status") == "False":
        return "Unschedulable", condition(pod, "PodScheduled").get("message", "no node fits")
    waiting = container_of(pod, container).get("state", {}).get("waiting") or {}
    if waiting and waiting.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
        return str(waiting["reason"]), str(
            waiting.get("message", "") or last_termination(pod, container) or "its container is waiting"
        )
    return "", ""


def last_termination(pod: Object, container: str = names.CONTAINER) -> str:
    """How the container last ended, as the predicate of a sentence."""
    found = container_of(pod, container)
    ended = found.get("state", {}).get("terminated") or found.get("lastState", {}).get("terminated") or {}
    if not ended:
        return ""
    if ended.get("reason") == "OOMKilled":
        return "was killed because it used more memory than its profile allows"
    return f"was killed by signal {ended['signal']}" if ended.get("signal") else f"exited with {ended.get('exitCode')}"


def is_broken(pod: Object, now: float) -> bool:
    """Whether a pod can be replaced without loss: its container does not run, or has long not been ready."""
    if is_ready(pod):
        return False
    since = condition(pod, "Ready").get("lastTransitionTime")
    return bool(pod_trouble(pod)[0]) or (since is not None and now - unix_seconds(since) >= NOT_READY_SECONDS)


def is_out_of_service(pod: Object | None, head: Object | None, now: float) -> bool:
    """Whether an edge can be ended without moving subscribers: it is down, or long not ready while its head is."""
    if pod is None or is_ready(pod):
        return pod is None
    return bool(pod_trouble(pod)[0]) or (is_ready(head) and is_broken(pod, now))


def is_stuck(pod: Object, now: float) -> bool:
    """Whether a pod has not been ready for so long that only a restart will help."""
    ready = condition(pod, "Ready")
    since = ready.get("lastTransitionTime")
    return ready.get("status") == "False" and since is not None and now - unix_seconds(since) >= STUCK_SECONDS


def finalizers(item: Object) -> list[str]:
    """What others ask for before an object that is deleted may go."""
    return [str(each) for each in item["metadata"].get("finalizers") or []]


def is_lost(pod: Object, node: Object | None, now: float) -> bool:
    """Whether a pod is being deleted and its node is lost, so that no kubelet will confirm its end."""
    if not is_leaving(pod):
        return False
    tainted = condition(pod, "DisruptionTarget").get("reason") == _TAINTED
    gone = node is not None and condition(node, "Ready").get("status") != "True"
    if tainted or gone:
        return True
    if finalizers(pod):
        return False  # its kubelet may have confirmed its end; the owner of the finalizer keeps the object
    return now - unix_seconds(pod["metadata"]["deletionTimestamp"]) > NOT_READY_SECONDS  # the end of its grace period


# -- nodes


def is_unschedulable(node: Object | None) -> bool:
    """Whether a node is cordoned, as `kubectl drain` does first."""
    return node is not None and bool(node.get("spec", {}).get("unschedulable", False))


def accepts_pods(node: Object, selector: Mapping[str, str] = MappingProxyType({})) -> bool:
    """Whether a pod with this node selector and without tolerations can be placed on a node."""
    if is_unschedulable(node) or condition(node, "Ready").get("status") != "True":
        return False
    taints = node.get("spec", {}).get("taints") or []
    labels = node.get("metadata", {}).get("labels") or {}
    return selector.items() <= labels.items() and all(each.get("effect") == "PreferNoSchedule" for each in taints)


def pod_restart_hash(pod: Object) -> str:
    """The hash of the start parameters of a pod."""
    return annotation(pod, names.RESTART_HASH)
