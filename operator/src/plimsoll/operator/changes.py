"""What is to be done so that a fleet becomes what it should be: a pure function, in an order that harms nobody.

Every change says why. What is as it should be gives none, so a second look at a fleet that has settled writes nothing.
Objects that somebody else has made under a wanted name are left alone and said so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from plimsoll.core.spec import head_name
from plimsoll.operator import leaving, names, rolling
from plimsoll.operator.change import Apply, Change, Delete, Patch, Taken, Wait
from plimsoll.operator.desired import Desired, DesiredBroker
from plimsoll.operator.emptying import Moment
from plimsoll.operator.names import Object
from plimsoll.operator.objects import annotation, differs, is_leaving, is_ours, ref
from plimsoll.operator.observed import Observed, container, is_lost, label, rfc3339, seconds

CLEANED = (
    "StatefulSet", "Deployment", "CronJob", "Service", "ConfigMap", "Secret", "PodDisruptionBudget", "NetworkPolicy",
    "RoleBinding", "Role", "ServiceAccount",
)  # fmt: skip
"""Kinds of which a leftover of the operator's is deleted."""


KEYS_READ_SECONDS = 4.0
"""A broker has read the authorized keys so long after its pod was told: its kubelet writes, it looks every second."""


def changes(desired: Desired, observed: Observed, moment: Moment) -> list[Change]:
    """What is to be done now, in this order; what has to wait for something else says for what."""
    found = _Changes(desired, observed, moment)
    return [*found.all()]


def lost(observed: Observed, moment: Moment) -> Iterator[Change]:
    """Pods of nodes that have gone, whatever else should be."""
    for pod in observed.kind("Pod"):
        ours = label(pod, "app.kubernetes.io/managed-by") == names.MANAGER
        if ours and is_lost(pod, observed.node_of(pod), moment.now):
            yield Delete(pod, "its node has gone, and nobody else will say that it has ended", grace_seconds=0)


@dataclass(frozen=True)
class _Changes:
    desired: Desired
    observed: Observed
    moment: Moment
    written: set[str] = field(default_factory=set)

    def all(self) -> Iterator[Change]:
        edges = list(self._edges())
        yield from edges
        if any(isinstance(step, Apply) for step in edges) and not any(True for _ in self.observed.kind("EdgeBroker")):
            return  # at the very first: so that the first authorized keys that anybody reads name all of them
        for item in self.desired.shared:
            yield from self._write(item)
        yield from self._keys_read()
        yield from self._head_keys()
        for broker in self.desired.brokers.values():
            yield from self._broker(broker)
        yield from leaving.changes(self.desired, self.observed, self.moment)
        yield from rolling.changes(self.desired, self.observed, self.moment)
        yield from lost(self.observed, self.moment)
        yield from self._leftovers()

    def _broker(self, broker: DesiredBroker) -> Iterator[Change]:
        """A broker that is new starts when its head has read its key: libzmq does not try again who was refused."""
        is_new = self.observed.get("StatefulSet", broker.name) is None
        if is_new and broker.role == "edge" and not self._is_known(head_name(broker.cluster)):
            yield Wait(("EdgeBroker", broker.name), f"it starts when {head_name(broker.cluster)} has read its key")
            return
        for item in broker.objects:
            yield from self._write(item)

    def _is_known(self, head: str) -> bool:
        """Whether a running head has the authorized keys of now."""
        pod, wanted = self.observed.pod(head), self.desired.authorized_hash
        if pod is None or not wanted or "running" not in container(pod).get("state", {}):
            return True
        told = annotation(pod, names.KEYS_AT)
        current = annotation(pod, names.KEYS_HASH) == wanted and bool(told)
        return current and self.moment.now - seconds(told) >= KEYS_READ_SECONDS

    def _write(self, wanted: Object) -> Iterator[Change]:
        """Write an object if it does not say what it should."""
        live = self.observed.objects.get(ref(wanted))
        if live is None:
            yield Apply(wanted, "it is missing")
        elif is_leaving(live):
            yield Wait(ref(wanted), "it is being deleted, and is made anew after that")
        elif not is_ours(live, wanted) and label(live, "app.kubernetes.io/managed-by") == names.MANAGER:
            yield Wait(ref(wanted), "one of an earlier life goes first, as its owner has")
        elif not is_ours(live, wanted):
            yield Taken(ref(wanted), f"somebody else has made {wanted['kind']}/{wanted['metadata']['name']}")
        elif differs(live, wanted):
            old, new = annotation(live, names.DESIRED_HASH), annotation(wanted, names.DESIRED_HASH)
            yield Apply(wanted, "something else is asked for" if old != new else "somebody has changed it")

    def _edges(self) -> Iterator[Change]:
        """Clusters make EdgeBrokers, and ask for the deletion of those that they want no more."""
        for edge in self.desired.edges:
            yield from self._write(edge)
        wanted = self.desired.names
        for edge in self.observed.kind("EdgeBroker"):
            name = edge["metadata"]["name"]
            made = any(each.get("kind") == "BrokerCluster" for each in edge["metadata"].get("ownerReferences", []))
            if is_leaving(edge):
                continue
            if made and name not in wanted:
                yield Delete(edge, "its cluster does not ask for it any more")
            elif names.FINALIZER not in edge["metadata"].get("finalizers", []):
                finalizers = [*edge["metadata"].get("finalizers", []), names.FINALIZER]
                version = edge["metadata"]["resourceVersion"]
                patch = {"metadata": {"finalizers": finalizers, "resourceVersion": version}}
                yield Patch(edge, patch, "it is to be evacuated before it goes")

    def _keys_read(self) -> Iterator[Change]:
        """A change of a pod makes its kubelet bring mounted keys up to date at once."""
        wanted = self.desired.authorized_hash
        stored = self.observed.get("ConfigMap", names.AUTHORIZED_KEYS)
        if not wanted or stored is None:
            return
        told = [item for item in self.desired.shared if ref(item) == ("ConfigMap", names.AUTHORIZED_KEYS)]
        if any(differs(stored, item) for item in told):
            return
        for broker in self.observed.brokers():
            pod = self.observed.pod(broker)
            if pod is not None and not is_leaving(pod) and annotation(pod, names.KEYS_HASH) != wanted:
                now = {names.KEYS_HASH: wanted, names.KEYS_AT: rfc3339(self.moment.now)}
                patch = {"metadata": {"annotations": now}}
                yield Patch(pod, patch, "the authorized keys have changed")

    def _head_keys(self) -> Iterator[Change]:
        """A head takes a new key while it runs; the change of its pod makes its kubelet write the file at once."""
        for broker in self.desired.brokers.values():
            pod = self.observed.pod(broker.name)
            if broker.role != "head" or pod is None or is_leaving(pod):
                continue
            if broker.public_key and annotation(pod, names.KEY) != broker.public_key:
                yield Patch(pod, {"metadata": {"annotations": {names.KEY: broker.public_key}}}, "it has another key")

    def _leftovers(self) -> Iterator[Change]:
        """What the operator has made and nobody asks for; what belongs to a broker that leaves is needed until then."""
        asked = {ref(item) for item in self.desired.objects()} | self._secrets()
        staying = self._brokers()
        made = frozenset(self.desired.brokers)
        for kind in CLEANED:
            for item in self.observed.kind(kind):
                broker = label(item, names.BROKER)
                if ref(item) in asked or is_leaving(item) or label(item, names.FLEET) != self.desired.fleet:
                    continue
                if label(item, "app.kubernetes.io/managed-by") != names.MANAGER or broker in staying - made:
                    continue
                yield Delete(item, "nobody asks for it any more")

    def _brokers(self) -> frozenset[str]:
        """Brokers that are asked for, and edges that have not been let go."""
        return self.desired.names | {str(edge["metadata"]["name"]) for edge in self.observed.kind("EdgeBroker")}

    def _secrets(self) -> set[tuple[str, str]]:
        fleet = self.desired.resources.fleet.spec
        brokers = self._brokers()
        clients = (client.name for client in fleet.security.clients)
        return {
            ("Secret", name)
            for name in (
                names.MEDIATOR_KEYS,
                *([names.COLLECTOR_KEYS] if fleet.telemetry.collectors.replicas else []),
                *(names.keys_of(broker) for broker in brokers),
                *(names.client_keys(client) for client in clients),
            )
        }
