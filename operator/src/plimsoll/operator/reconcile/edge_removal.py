"""Removes edges whose EdgeBroker is deleted: a session moves the subscribers, then the pod ends.

The pod belongs to the cluster, so it outlives the EdgeBroker. Where no other edge could take the subscribers the pod
ends at once.
"""

from __future__ import annotations

from collections.abc import Iterator

from plimsoll.core.spec import head_name
from plimsoll.mediator import evacuation
from plimsoll.operator import names
from plimsoll.operator.names import Object
from plimsoll.operator.objects.manifest import is_leaving, owner, ref, uid
from plimsoll.operator.reconcile.desired import DesiredFleet
from plimsoll.operator.reconcile.drain import ReconcileContext, drain_progress
from plimsoll.operator.reconcile.observed import (
    ObservedObjects,
    condition,
    finalizers,
    is_out_of_service,
    is_ready,
    unix_seconds,
)
from plimsoll.operator.reconcile.steps import Delete, Evacuate, Patch, ReconcileStep, StepBlocked


def leaving_edges(observed: ObservedObjects) -> Iterator[Object]:
    """EdgeBrokers that are deleted, as far as anything of them is left."""
    return (edge for edge in observed.kind("EdgeBroker") if is_leaving(edge))


def released(edge: Object) -> Patch:
    """Removes the finalizer that earlier versions have put on an EdgeBroker."""
    finalizers = [each for each in edge["metadata"]["finalizers"] if each != names.FINALIZER]
    version = edge["metadata"]["resourceVersion"]
    patch = {"metadata": {"finalizers": finalizers, "resourceVersion": version}}
    return Patch(edge, patch, "a finalizer would keep its namespace from being deleted without an operator")


def removal_steps(
    desired: DesiredFleet, observed: ObservedObjects, context: ReconcileContext
) -> Iterator[ReconcileStep]:
    """The next step of each edge that is being deleted."""
    for edge in leaving_edges(observed):
        yield from _next_steps(edge, desired, observed, context)


def _kept_by(item: Object | None) -> str:
    """Which finalizers keep an object, for its message."""
    found = finalizers(item) if item is not None else []
    return (
        f", which the finalizers {', '.join(found)} of others keep: remove them, or what they wait for" if found else ""
    )


def _next_steps(
    edge: Object, desired: DesiredFleet, observed: ObservedObjects, context: ReconcileContext
) -> Iterator[ReconcileStep]:
    name = edge["metadata"]["name"]
    stateful_set, pod = observed.get("StatefulSet", name), observed.pod(name)
    if names.FINALIZER in edge["metadata"].get("finalizers", []):
        yield released(edge)
    if stateful_set is None and pod is None:
        return
    if stateful_set is None or is_leaving(stateful_set):
        yield StepBlocked(ref(edge), f"waiting for its pod to end{_kept_by(pod or stateful_set)}")
    elif not _must_be_drained(edge, desired, observed, context):
        yield Delete(stateful_set, "its edge is deleted, and has no subscribers that another edge could take")
    else:
        # Named after what is left behind: the EdgeBroker itself may be gone before its session ends.
        same = {**edge, "metadata": {**edge["metadata"], "uid": uid(stateful_set)}}
        session = with_cluster_owner(evacuation.evacuation_session(same), observed, edge["spec"]["clusterRef"]["name"])
        found = drain_progress(observed, name, session["metadata"]["name"], context)
        if found.is_over:
            yield Delete(stateful_set, f"its edge is evacuated: {found.reason}")
        elif found.next_session and not is_ready(pod):
            yield StepBlocked(ref(edge), "waiting for it to be ready, to move its subscribers")
        elif found.next_session:
            yield Evacuate(edge, with_name(session, found.next_session), found.reason or "its edge is deleted")
        else:
            yield StepBlocked(ref(edge), f"waiting for session {found.name} to move its subscribers")


def with_cluster_owner(session: Object, observed: ObservedObjects, cluster: str) -> Object:
    """A session that is owned by the cluster, and so outlives its edge as a record."""
    found = observed.get("BrokerCluster", cluster)
    owners = [owner(found)] if found is not None else []
    return {**session, "metadata": {**session["metadata"], "ownerReferences": owners}}


def with_name(session: Object, name: str) -> Object:
    """A session under another name."""
    return {**session, "metadata": {**session["metadata"], "name": name}}


def _must_be_drained(edge: Object, desired: DesiredFleet, observed: ObservedObjects, context: ReconcileContext) -> bool:
    """Whether there may be subscribers to move, and an edge to take them. Without its head an edge keeps its own."""
    name, cluster = edge["metadata"]["name"], edge["spec"]["clusterRef"]["name"]
    pod, head = observed.pod(name), observed.pod(head_name(cluster))
    if not evacuation.has_drain_target(desired.resources, name, cluster) or is_out_of_service(pod, head, context.now):
        return False
    since = condition(pod or {}, "Ready").get("lastTransitionTime")
    return (
        is_ready(pod)
        or since is None
        or context.now - unix_seconds(since) < evacuation.LONGEST_SECONDS * context.time_factor
    )
