"""Replaces running brokers whose start parameters have changed, or whose node is drained.

In each cluster one edge at a time is emptied by a session and replaced; an edge that is out of service is replaced at
once. A head is replaced when none of its edges is being replaced, one head of the fleet at a time: its edges keep their
subscribers and resume. Where another head can take them, its publishers move there first (head_drain.py).

A head with a standby is replaced without a pause that clients notice: first the pod of the standby, then the standby
leads (pairs/), and the pod that led before is the outdated one of a standby.

An empty edge on a node that is drained is left to `kubectl drain` for a while, and ended only then. `kubectl drain`
evicts by name and repeats that until there is no such pod: if the operator ended the pod first, its StatefulSet would
start one of the same name on another node, and that one would be evicted, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from plimsoll.core.spec import head_name
from plimsoll.mediator import evacuation
from plimsoll.mediator.session_objects import is_over
from plimsoll.operator import names
from plimsoll.operator.names import Object
from plimsoll.operator.objects.manifest import annotation, is_leaving, needs_write, uid
from plimsoll.operator.objects.pods import changed_fields
from plimsoll.operator.pairs.requests import has_earlier_settings, is_pair_pod
from plimsoll.operator.reconcile import head_drain
from plimsoll.operator.reconcile.desired import DesiredBroker, DesiredFleet
from plimsoll.operator.reconcile.drain import ReconcileContext, drain_progress, restart_session_name, restart_sessions
from plimsoll.operator.reconcile.edge_removal import with_cluster_owner, with_name
from plimsoll.operator.reconcile.node_affinity import meets_node_affinity
from plimsoll.operator.reconcile.observed import (
    STUCK_SECONDS,
    ObservedObjects,
    accepts_pods,
    broker_container,
    condition,
    is_broken,
    is_out_of_service,
    is_ready,
    is_stuck,
    is_unschedulable,
    label,
    pod_restart_hash,
    unix_seconds,
)
from plimsoll.operator.reconcile.steps import Delete, Evacuate, Patch, ReconcileStep, Restart, StepBlocked

EVICTION_SECONDS = 15.0
"""An edge that may be evicted and is not within this time is ended; `kubectl drain` tries every 5 s."""


def rollout_steps(
    desired: DesiredFleet, observed: ObservedObjects, context: ReconcileContext
) -> Iterator[ReconcileStep]:
    """The next step of each cluster with brokers to replace."""
    head_moves = any(
        broker.role == "head" and not is_ready(observed.pod(broker.name)) for broker in desired.brokers.values()
    )
    for cluster in sorted(desired.resources.clusters):
        rolling = _ClusterRollout(desired, observed, context, cluster)
        for change in rolling.steps(head_moves=head_moves):
            head_moves = head_moves or (isinstance(change, Restart) and change.broker == head_name(cluster))
            yield change


def cordoned_for_rollout(desired: DesiredFleet, observed: ObservedObjects) -> frozenset[str]:
    """Brokers that take no newcomers because they are cordoned, about to be replaced, or being deleted."""
    found = {broker.name for broker in desired.brokers.values() if restart_sessions(observed, broker.name)}
    return frozenset(found | {
        str(edge["metadata"]["name"]) for edge in observed.kind("EdgeBroker")
        if is_leaving(edge) or edge["spec"].get("cordoned", False)
    })  # fmt: skip


@dataclass(frozen=True)
class _ClusterRollout:
    desired: DesiredFleet
    observed: ObservedObjects
    context: ReconcileContext
    cluster: str

    def steps(self, *, head_moves: bool) -> Iterator[ReconcileStep]:
        head = self.desired.brokers.get(head_name(self.cluster))
        edges = [
            broker
            for broker in self.desired.brokers.values()
            if broker.cluster == self.cluster and broker.role == "edge"
        ]
        yield from self._uncordon_current(edges if head is None else [*edges, head])
        if head is None:
            return
        yield from self._standby(head)
        if self._is_broken(head):
            yield from self._head(head, waits="" if not head_moves else "another head is starting")
            return
        yield from self._stuck(edges, head)
        outdated = [edge for edge in edges if self._reason(edge)]
        for edge in outdated:
            if self._is_out_of_service(edge, head):
                yield self._replace_empty_edge(edge)
        rest = [edge for edge in outdated if not self._is_out_of_service(edge, head)]
        rest.sort(
            key=lambda edge: not self._evictable_since(edge)
        )  # an edge that may be evicted already is finished first
        moving = [edge.name for edge in edges if edge not in rest and not is_ready(self.observed.pod(edge.name))]
        if rest:
            yield from self._edge(rest[0], head, moving)
        elif self._reason(head) and head.config.standby is not None and is_pair_pod(self.observed.pod(head.name)):
            why = f"waiting for its standby to lead: {self._reason(head)}"
            yield StepBlocked(("BrokerCluster", self.cluster), why)
        elif self._reason(head):
            waits = f"{moving[0]} is not ready" if moving else "another head is starting" if head_moves else ""
            yield from self._head(head, waits)

    def _standby(self, head: DesiredBroker) -> Iterator[ReconcileStep]:
        """Replace the pod of a standby; the head goes on alone meanwhile."""
        pod, leader = self.observed.standby_pod(head.name), self.observed.pod(head.name)
        if head.config.standby is None or pod is None or not is_ready(leader):
            return
        if why := self._reason_of(head, pod):
            yield Restart(head.name, pod, f"{why}; {head.name} goes on alone until it is back")

    def _uncordon_current(self, edges: list[DesiredBroker]) -> Iterator[ReconcileStep]:
        """Let edges that need no replacement after all take subscribers again, by deleting their sessions."""
        for edge in edges:
            pod = self.observed.pod(edge.name)
            if pod is None or is_leaving(pod) or pod_restart_hash(pod) != edge.restart_hash:
                continue
            if is_unschedulable(self.observed.node_of(pod)):
                continue
            if label(pod, names.EVICTABLE):
                yield _evictable_patch(pod, None, "its node is schedulable again")
            for session in restart_sessions(self.observed, edge.name):
                if is_over(session) and not is_leaving(session):
                    yield Delete(session, f"{edge.name} need not be replaced any more")

    def _stuck(self, edges: list[DesiredBroker], head: DesiredBroker) -> Iterator[ReconcileStep]:
        """Restart an edge that has long been cut off from a ready head: its subscribers get nothing."""
        over = self.observed.pod(head.name)
        if over is None or not is_ready(over) or not self._is_settled(over):
            return
        for edge in edges:
            pod = self.observed.pod(edge.name)
            if pod is None or is_leaving(pod) or self._reason(edge) or not is_stuck(pod, self.context.now):
                continue
            if "running" in broker_container(pod).get("state", {}):
                yield Restart(edge.name, pod, f"it has lost {head.name}, which is ready")

    def _is_settled(self, head: Object) -> bool:
        """Whether a head has been ready long enough for its edges to reconnect."""
        return self.context.now - unix_seconds(condition(head, "Ready")["lastTransitionTime"]) >= STUCK_SECONDS

    def _edge(self, edge: DesiredBroker, head: DesiredBroker, moving: list[str]) -> Iterator[ReconcileStep]:
        """Replace one edge, once its head and the other edges are ready to take its subscribers."""
        subject, pod = ("EdgeBroker", edge.name), self.observed.pod(edge.name)
        stored = self.observed.get("EdgeBroker", edge.name)
        if pod is None or stored is None:
            return
        if moving:
            yield StepBlocked(subject, f"waiting for {moving[0]} to be ready: {self._reason(edge)}")
        elif not evacuation.has_drain_target(self.desired.resources, edge.name, self.cluster):
            yield self._replace_empty_edge(edge)
        elif not is_ready(self.observed.pod(head.name)):
            yield StepBlocked(subject, f"waiting for {head.name} to be ready: {self._reason(edge)}")
        else:
            yield from self._empty(edge, stored)

    def _empty(self, edge: DesiredBroker, stored: Object) -> Iterator[ReconcileStep]:
        name = restart_session_name(self.observed, edge.name)
        found = drain_progress(self.observed, edge.name, name, self.context)
        if found.is_over:
            yield self._replace_empty_edge(edge)
            return
        if self._evictable_since(edge):
            yield _evictable_patch(self.observed.pod(edge.name) or {}, None, "it has subscribers again")
        if found.next_session:
            session = with_cluster_owner(evacuation.evacuation_session(stored), self.observed, self.cluster)
            yield Evacuate(stored, with_name(session, found.next_session), found.reason or self._reason(edge))
        else:
            yield StepBlocked(
                ("EdgeBroker", edge.name),
                f"waiting for session {found.name} to move its subscribers: {self._reason(edge)}",
            )

    def _head(self, head: DesiredBroker, waits: str) -> Iterator[ReconcileStep]:
        pod = self.observed.pod(head.name)
        if pod is None or is_leaving(pod):
            return
        if waits and not is_broken(pod, self.context.now):
            why = f"{waits}, so {head.name} is replaced later: {self._reason(head)}"
            yield StepBlocked(("BrokerCluster", self.cluster), why)
        else:
            yield head_drain.next_step(self.desired, self.observed, self.context, self._restart(head))

    def _replace_empty_edge(self, edge: DesiredBroker) -> ReconcileStep:
        """Restart an empty edge; on a node that is drained, leave it to `kubectl drain` for a while first."""
        pod, now, since = self.observed.pod(edge.name) or {}, self.context.now, self._evictable_since(edge)
        if not is_unschedulable(self.observed.node_of(pod)):
            return self._restart(edge)
        if not since.isdigit() or int(since) > now:
            return _evictable_patch(pod, str(int(now)), "its node is drained and it is empty, so it may be evicted")
        if now - int(since) >= EVICTION_SECONDS:
            return self._restart(edge)
        return StepBlocked(("EdgeBroker", edge.name), "waiting for `kubectl drain` to evict its pod")

    def _evictable_since(self, edge: DesiredBroker) -> str:
        """Since when an edge may be evicted, as its pod says; empty if it may not."""
        return label(self.observed.pod(edge.name) or {}, names.EVICTABLE)

    def _restart(self, broker: DesiredBroker) -> Restart:
        pod = self.observed.pod(broker.name)
        return Restart(broker.name, pod or {}, self._reason(broker))

    def _is_out_of_service(self, edge: DesiredBroker, head: DesiredBroker) -> bool:
        pod = self.observed.pod(edge.name)
        return pod is not None and is_out_of_service(pod, self.observed.pod(head.name), self.context.now)

    def _reason(self, broker: DesiredBroker) -> str:
        """Why a broker's present pod has to be replaced; empty if it has not, or if that cannot be done yet."""
        return self._reason_of(broker, self.observed.pod(broker.name))

    def _reason_of(self, broker: DesiredBroker, pod: Object | None) -> str:
        """As `_reason`, of one of its pods."""
        stateful_set = self.observed.get("StatefulSet", broker.name)
        if pod is None or is_leaving(pod) or not uid(pod) or stateful_set is None:
            return ""
        is_old = has_earlier_settings(pod, broker.config, broker.restart_hash)
        drained = broker.role == "edge" and is_unschedulable(self.observed.node_of(pod)) and self._has_elsewhere(broker)
        if not is_old and not drained:
            return ""
        status, generation = stateful_set.get("status", {}), stateful_set["metadata"].get("generation", 1)
        if needs_write(stateful_set, broker.objects[-1]) or status.get("observedGeneration", 0) < generation:
            return ""  # the StatefulSet would create it again as it is
        return self._change(broker, pod) if is_old else "its node is drained"

    def _change(self, broker: DesiredBroker, pod: Object) -> str:
        """Which of the start parameters of a pod have changed."""
        template = broker.objects[-1]["spec"]["template"]
        found = changed_fields(annotation(pod, names.RESTART_FIELDS), annotation(template, names.RESTART_FIELDS))
        more = f" and {len(found) - 4} more" if len(found) > 4 else ""
        if not found and pod_restart_hash(pod) == broker.restart_hash:
            return "the key of its head has changed"
        return f"changed: {', '.join(found[:4])}{more}" if found else "its start parameters have changed"

    def _has_elsewhere(self, edge: DesiredBroker) -> bool:
        pod = edge.objects[-1]["spec"]["template"]["spec"]
        selector, affinity = pod.get("nodeSelector", {}), pod.get("affinity", {})
        nodes = (self.observed.nodes or {}).values()
        return any(accepts_pods(node, selector) and meets_node_affinity(node, affinity) for node in nodes)

    def _is_broken(self, head: DesiredBroker) -> bool:
        """Whether a head that has to be replaced is broken, so that its edges lose nothing."""
        pod = self.observed.pod(head.name)
        return pod is not None and bool(self._reason(head)) and is_broken(pod, self.context.now)


def _evictable_patch(pod: Object, since: str | None, reason: str) -> Patch:
    """Label this pod as evictable since a time, or remove the label; the uid keeps it off a successor of that name."""
    return Patch(pod, {"metadata": {"uid": uid(pod), "labels": {names.EVICTABLE: since}}}, reason)
