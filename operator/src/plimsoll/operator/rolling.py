"""How running brokers are replaced when what they were told at their start has changed, or their node is drained.

Edges go one at a time in each cluster, emptied by a session first; one that serves nobody goes at once. A head is
replaced when none of its edges is on the move, one head of the fleet at a time: its edges keep their subscribers, and
resume.

An edge whose node is drained is left to whoever drains it, once it is empty, and ended if nobody does. `kubectl drain`
asks by name, until it may or nothing of that name is there: a pod that the operator has ended is followed by one of the
same name on another node, which it would ask for, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from plimsoll.core.spec import head_name
from plimsoll.mediator import evacuation
from plimsoll.mediator.sessions import is_over
from plimsoll.operator import names
from plimsoll.operator.change import Change, Delete, Evacuate, Patch, Restart, Wait
from plimsoll.operator.desired import Desired, DesiredBroker
from plimsoll.operator.emptying import Moment, emptying, restart_sessions, restarting
from plimsoll.operator.leaving import kept, named
from plimsoll.operator.names import Object
from plimsoll.operator.objects import differs, is_leaving, uid
from plimsoll.operator.observed import (
    UNREACHED_SECONDS,
    Observed,
    condition,
    container,
    is_broken,
    is_drained,
    is_ready,
    is_stuck,
    label,
    restart_hash,
    seconds,
    serves_nobody,
    takes_pods,
)

EVICTION_SECONDS = 15.0
"""An edge that may be evicted is ended after so long; `kubectl drain` asks every 5 s."""


def changes(desired: Desired, observed: Observed, moment: Moment) -> Iterator[Change]:
    """The next step of each cluster in which something has to be replaced."""
    head_moves = any(
        broker.role == "head" and not is_ready(observed.pod(broker.name)) for broker in desired.brokers.values()
    )
    for cluster in sorted(desired.resources.clusters):
        rolling = _Rolling(desired, observed, moment, cluster)
        for change in rolling.steps(head_moves=head_moves):
            head_moves = head_moves or (isinstance(change, Restart) and change.broker == head_name(cluster))
            yield change


def cordoned(desired: Desired, observed: Observed) -> frozenset[str]:
    """Edges that take no newcomers because they are about to be replaced or to leave."""
    found = {
        broker.name
        for broker in desired.brokers.values()
        if broker.role == "edge" and restart_sessions(observed, broker.name)
    }
    return frozenset(found | {
        str(edge["metadata"]["name"]) for edge in observed.kind("EdgeBroker")
        if is_leaving(edge) or edge["spec"].get("cordoned", False)
    })  # fmt: skip


@dataclass(frozen=True)
class _Rolling:
    desired: Desired
    observed: Observed
    moment: Moment
    cluster: str

    def steps(self, *, head_moves: bool) -> Iterator[Change]:
        head = self.desired.brokers.get(head_name(self.cluster))
        edges = [
            broker
            for broker in self.desired.brokers.values()
            if broker.cluster == self.cluster and broker.role == "edge"
        ]
        yield from self._spared(edges)
        if head is None:
            return
        if self._is_broken(head):
            yield from self._head(head, waits="" if not head_moves else "another head is starting")
            return
        yield from self._stuck(edges, head)
        outdated = [edge for edge in edges if self._reason(edge)]
        for edge in outdated:
            if self._serves_nobody(edge, head):
                yield self._end(edge)
        rest = [edge for edge in outdated if not self._serves_nobody(edge, head)]
        rest.sort(key=lambda edge: not self._since(edge))  # one that may be evicted is not left so
        moving = [edge.name for edge in edges if edge not in rest and not is_ready(self.observed.pod(edge.name))]
        if rest:
            yield from self._edge(rest[0], head, moving)
        elif self._reason(head):
            waits = f"{moving[0]} is not ready" if moving else "another head is starting" if head_moves else ""
            yield from self._head(head, waits)

    def _spared(self, edges: list[DesiredBroker]) -> Iterator[Change]:
        """An edge that need not be replaced after all takes newcomers again, and is emptied again the next time."""
        for edge in edges:
            pod = self.observed.pod(edge.name)
            if pod is None or is_leaving(pod) or restart_hash(pod) != edge.restart_hash:
                continue
            if is_drained(self.observed.node_of(pod)):
                continue
            if label(pod, names.EVICTABLE):
                yield _evictable(pod, None, "its node is not drained")
            for session in restart_sessions(self.observed, edge.name):
                if is_over(session) and not is_leaving(session):
                    yield Delete(session, f"{edge.name} stays as it is")

    def _stuck(self, edges: list[DesiredBroker], head: DesiredBroker) -> Iterator[Change]:
        """An edge that has long been cut off from a head that serves begins anew: it serves nobody as it is."""
        over = self.observed.pod(head.name)
        if over is None or not is_ready(over) or not self._is_settled(over):
            return
        for edge in edges:
            pod = self.observed.pod(edge.name)
            if pod is None or is_leaving(pod) or self._reason(edge) or not is_stuck(pod, self.moment.now):
                continue
            if "running" in container(pod).get("state", {}):
                yield Restart(edge.name, pod, f"it does not reach {head.name}, which is ready")

    def _is_settled(self, head: Object) -> bool:
        """Whether a head has been ready long enough for its edges to have come back."""
        return self.moment.now - seconds(condition(head, "Ready")["lastTransitionTime"]) >= UNREACHED_SECONDS

    def _edge(self, edge: DesiredBroker, head: DesiredBroker, moving: list[str]) -> Iterator[Change]:
        """One edge after the other, while its head and the other edges are there to take what it has."""
        subject, pod = ("EdgeBroker", edge.name), self.observed.pod(edge.name)
        stored = self.observed.get("EdgeBroker", edge.name)
        if pod is None or stored is None:
            return
        if moving:
            yield Wait(subject, f"it is replaced ({self._reason(edge)}) when {moving[0]} is ready")
        elif not evacuation.has_refuge(self.desired.resources, edge.name, self.cluster):
            yield self._end(edge)
        elif not is_ready(self.observed.pod(head.name)):
            yield Wait(subject, f"it is replaced ({self._reason(edge)}) when {head.name} is ready")
        else:
            yield from self._empty(edge, stored)

    def _empty(self, edge: DesiredBroker, stored: Object) -> Iterator[Change]:
        name = restarting(self.observed, edge.name)
        found = emptying(self.observed, edge.name, name, self.moment)
        if found.over:
            yield self._end(edge)
            return
        if self._since(edge):
            yield _evictable(self.observed.pod(edge.name) or {}, None, "it has to be emptied again")
        if found.wanted:
            session = kept(evacuation.session(stored), self.observed, self.cluster)
            yield Evacuate(stored, named(session, found.wanted), found.reason or self._reason(edge))
        else:
            yield Wait(("EdgeBroker", edge.name), f"session {found.name} moves its subscribers ({self._reason(edge)})")

    def _head(self, head: DesiredBroker, waits: str) -> Iterator[Change]:
        pod = self.observed.pod(head.name)
        if pod is None or is_leaving(pod):
            return
        if waits and not is_broken(pod, self.moment.now):
            why = f"{head.name} is replaced ({self._reason(head)}) later: {waits}"
            yield Wait(("BrokerCluster", self.cluster), why)
        else:
            yield self._restart(head)

    def _end(self, edge: DesiredBroker) -> Change:
        """On a node that is drained it is left to whoever drains, for a while; on any other it is ended at once."""
        pod, now, since = self.observed.pod(edge.name) or {}, self.moment.now, self._since(edge)
        if not is_drained(self.observed.node_of(pod)):
            return self._restart(edge)
        if not since.isdigit() or int(since) > now:
            return _evictable(pod, str(int(now)), "its node is drained, and it may be evicted")
        if now - int(since) >= EVICTION_SECONDS:
            return self._restart(edge)
        return Wait(("EdgeBroker", edge.name), "whoever drains its node may evict its pod")

    def _since(self, edge: DesiredBroker) -> str:
        """Since when an edge may be evicted, as its pod says; empty if it may not."""
        return label(self.observed.pod(edge.name) or {}, names.EVICTABLE)

    def _restart(self, broker: DesiredBroker) -> Restart:
        pod = self.observed.pod(broker.name)
        return Restart(broker.name, pod or {}, self._reason(broker))

    def _serves_nobody(self, edge: DesiredBroker, head: DesiredBroker) -> bool:
        pod = self.observed.pod(edge.name)
        return pod is not None and serves_nobody(pod, self.observed.pod(head.name), self.moment.now)

    def _reason(self, broker: DesiredBroker) -> str:
        """Why a broker's present pod has to be replaced; empty if it has not, or if that cannot be done yet."""
        pod, stateful_set = self.observed.pod(broker.name), self.observed.get("StatefulSet", broker.name)
        if pod is None or is_leaving(pod) or not uid(pod) or stateful_set is None:
            return ""
        is_old = restart_hash(pod) != broker.restart_hash
        drained = broker.role == "edge" and is_drained(self.observed.node_of(pod)) and self._has_elsewhere(broker)
        if not is_old and not drained:
            return ""
        status, generation = stateful_set.get("status", {}), stateful_set["metadata"].get("generation", 1)
        if differs(stateful_set, broker.objects[-1]) or status.get("observedGeneration", 0) < generation:
            return ""  # it would be made anew as it was
        return "it was started with something else" if is_old else "its node is drained"

    def _has_elsewhere(self, edge: DesiredBroker) -> bool:
        selector = edge.objects[-1]["spec"]["template"]["spec"].get("nodeSelector", {})
        return any(takes_pods(node, selector) for node in (self.observed.nodes or {}).values())

    def _is_broken(self, head: DesiredBroker) -> bool:
        """Whether a head that has to be replaced is of no use to its edges as it is."""
        pod = self.observed.pod(head.name)
        return pod is not None and bool(self._reason(head)) and is_broken(pod, self.moment.now)


def _evictable(pod: Object, since: str | None, reason: str) -> Patch:
    """Say of this pod, and of no other that has taken its name, that it may be evicted, or no more."""
    return Patch(pod, {"metadata": {"uid": uid(pod), "labels": {names.EVICTABLE: since}}}, reason)
