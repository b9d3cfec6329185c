"""The steps from the observed fleet to the desired one: a pure function, in an order that loses no subscriber.

Every step has a reason. An object that is as desired needs no step, so reconciling a settled fleet writes nothing. An
object that is not the operator's is never touched: its name is reported as taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from plimsoll.core.spec import head_name
from plimsoll.mediator.fleet_resources import owning_cluster
from plimsoll.operator import names
from plimsoll.operator.names import Object
from plimsoll.operator.objects import dataset_pods
from plimsoll.operator.objects.channel_launch import driver_name
from plimsoll.operator.objects.manifest import annotation, is_leaving, is_ours, needs_write, owner, ref, uid
from plimsoll.operator.objects.pods import standby_key
from plimsoll.operator.objects.recorders import recorder_name
from plimsoll.operator.reconcile import edge_removal, rollout
from plimsoll.operator.reconcile.desired import DesiredBroker, DesiredFleet
from plimsoll.operator.reconcile.drain import ReconcileContext
from plimsoll.operator.reconcile.observed import (
    ObservedObjects,
    broker_container,
    is_lost,
    label,
    rfc3339,
    unix_seconds,
)
from plimsoll.operator.reconcile.steps import Apply, Delete, NameTaken, Patch, ReconcileStep, StepBlocked

GARBAGE_KINDS = (
    "StatefulSet", "Deployment", "CronJob", "Service", "ConfigMap", "Secret", "PodDisruptionBudget", "NetworkPolicy",
    "RoleBinding", "Role", "ServiceAccount",
)  # fmt: skip
"""Kinds of which the operator deletes its own objects when they are no longer desired."""


KEYS_MOUNT_SECONDS = 4.0
"""Time from the annotation of a pod until its broker has read new authorized keys: the kubelet writes the file first,
then the broker, which checks it every second, reads it."""


def plan_steps(desired: DesiredFleet, observed: ObservedObjects, context: ReconcileContext) -> list[ReconcileStep]:
    """The steps to execute now, in this order, and what the blocked ones wait for."""
    found = _FleetPlan(desired, observed, context)
    return [*found.all()]


def lost_pod_steps(observed: ObservedObjects, context: ReconcileContext) -> Iterator[ReconcileStep]:
    """Deletes pods of lost nodes; needs no desired state."""
    for pod in observed.kind("Pod"):
        ours = label(pod, "app.kubernetes.io/managed-by") == names.MANAGER
        is_asked = pod["metadata"].get("deletionGracePeriodSeconds") == 0  # again changes nothing: a finalizer keeps it
        if ours and not is_asked and is_lost(pod, observed.node_of(pod), context.now):
            yield Delete(pod, "its node is lost, so no kubelet will confirm its end", grace_seconds=0)


def _is_controlled_by(item: Object, owned_by: Object) -> bool:
    controllers = [each["uid"] for each in item["metadata"].get("ownerReferences", []) if each.get("controller")]
    return controllers == [uid(owned_by)]


def _handed_over(item: Object, owners: Sequence[Object]) -> Patch:
    """Another owner in place of the EdgeBroker, which had the objects of its edge in earlier versions."""
    patch = {"metadata": {"ownerReferences": list(owners), "resourceVersion": item["metadata"]["resourceVersion"]}}
    return Patch(item, patch, "its cluster owns it now, as its pod may outlive the EdgeBroker")


@dataclass(frozen=True)
class _FleetPlan:
    desired: DesiredFleet
    observed: ObservedObjects
    context: ReconcileContext
    written: set[str] = field(default_factory=set)

    def all(self) -> Iterator[ReconcileStep]:
        edges = list(self._edges())
        yield from edges
        if any(isinstance(step, Apply) for step in edges) and not any(True for _ in self.observed.kind("EdgeBroker")):
            return  # the EdgeBrokers come first: they own keys, and the first authorized keys should name all edges
        for item in self.desired.shared:
            yield from self._write(item)
        yield from self._driver_config()
        yield from self._edge_keys()
        yield from self._keys_read()
        yield from self._head_keys()
        yield from self._standby_settings()
        for broker in self.desired.brokers.values():
            yield from self._broker(broker)
        yield from edge_removal.removal_steps(self.desired, self.observed, self.context)
        yield from rollout.rollout_steps(self.desired, self.observed, self.context)
        yield from lost_pod_steps(self.observed, self.context)
        yield from self._leftovers()

    def _broker(self, broker: DesiredBroker) -> Iterator[ReconcileStep]:
        """Write a broker's objects. A new edge waits until its head has its key: libzmq gives up after one refusal."""
        is_new = self.observed.get("StatefulSet", broker.name) is None
        if is_new and broker.role == "edge" and not self._is_known(head_name(broker.cluster)):
            yield StepBlocked(("EdgeBroker", broker.name), f"waiting for {head_name(broker.cluster)} to read its key")
            return
        for item in broker.objects:
            yield from self._write(item)

    def _is_known(self, head: str) -> bool:
        """Whether a running head has read the present authorized keys."""
        pod, wanted = self.observed.pod(head), self.desired.authorized_hash
        if pod is None or not wanted or "running" not in broker_container(pod).get("state", {}):
            return True
        told = annotation(pod, names.KEYS_AT)
        current = annotation(pod, names.KEYS_HASH) == wanted and bool(told)
        return current and self.context.now - unix_seconds(told) >= KEYS_MOUNT_SECONDS

    def _write(self, wanted: Object) -> Iterator[ReconcileStep]:
        """Write an object that differs from the desired one."""
        live = self.observed.objects.get(ref(wanted))
        if live is None:
            yield Apply(wanted, "it does not exist")
        elif is_leaving(live):
            yield StepBlocked(ref(wanted), "waiting for its deletion, to create it again")
        elif not self._is_ours(live, wanted) and label(live, "app.kubernetes.io/managed-by") == names.MANAGER:
            yield StepBlocked(ref(wanted), "waiting for the garbage collector: its former owner is deleted")
        elif not self._is_ours(live, wanted):
            yield NameTaken(
                ref(wanted), f"{wanted['kind']}/{wanted['metadata']['name']} exists and is not managed by the operator"
            )
        elif not is_ours(live, wanted):
            # Two controllers are refused; an object restored from a backup has its owners by another field manager.
            yield _handed_over(live, wanted["metadata"]["ownerReferences"])
        elif needs_write(live, wanted):
            old, new = annotation(live, names.DESIRED_HASH), annotation(wanted, names.DESIRED_HASH)
            yield Apply(wanted, "its spec has changed" if old != new else "it was changed by another client")

    def _is_ours(self, live: Object, wanted: Object) -> bool:
        """Whether a stored object may be written; earlier versions had the EdgeBroker own the objects of an edge."""
        if is_ours(live, wanted):
            return True
        edge = self.observed.get("EdgeBroker", label(live, names.BROKER))
        return edge is not None and _is_controlled_by(live, edge)

    def _edge_keys(self) -> Iterator[ReconcileStep]:
        """Give the keys of an edge to its cluster: the pod, which needs them, may outlive the EdgeBroker."""
        for edge in self.observed.kind("EdgeBroker"):
            cluster = self.observed.get("BrokerCluster", edge["spec"]["clusterRef"]["name"])
            secret = self.observed.get("Secret", names.keys_of(edge["metadata"]["name"]))
            if cluster is not None and secret is not None and _is_controlled_by(secret, edge):
                yield _handed_over(secret, [owner(cluster)])

    def _edges(self) -> Iterator[ReconcileStep]:
        """Create the EdgeBrokers of clusters, and delete those that their clusters no longer have."""
        for edge in self.desired.edges:
            yield from self._write(edge)
        wanted = self.desired.names
        for edge in self.observed.kind("EdgeBroker"):
            name = edge["metadata"]["name"]
            cluster = owning_cluster(edge)
            if is_leaving(edge) or ("BrokerCluster", cluster) in self.desired.usable.dropped:
                continue  # a cluster that cannot be read may still want it
            if cluster is not None and name not in wanted:
                yield Delete(edge, "its cluster no longer has it")
            elif names.FINALIZER in edge["metadata"].get("finalizers", []):
                yield edge_removal.released(edge)

    def _keys_read(self) -> Iterator[ReconcileStep]:
        """Annotate pods after a change of the authorized keys: that makes the kubelet update mounted files at once."""
        wanted = self.desired.authorized_hash
        stored = self.observed.get("ConfigMap", names.AUTHORIZED_KEYS)
        if not wanted or stored is None:
            return
        told = [item for item in self.desired.shared if ref(item) == ("ConfigMap", names.AUTHORIZED_KEYS)]
        if any(needs_write(stored, item) for item in told):
            return
        for pod, known in self._key_readers(wanted):
            if not is_leaving(pod) and annotation(pod, names.KEYS_HASH) != known:
                now = {names.KEYS_HASH: known, names.KEYS_AT: rfc3339(self.context.now)}
                patch = {"metadata": {"annotations": now}}
                yield Patch(pod, patch, "the authorized keys have changed")

    def _key_readers(self, wanted: str) -> Iterator[tuple[Object, str]]:
        """The pods that have a file of authorized keys, each with the hash of its own."""
        for broker in self.observed.brokers():
            yield from ((pod, wanted) for pod in self.observed.pods(broker))
        for feed in sorted(self.desired.resources.feeds) if self.desired.readers_hash else ():
            pod = self.observed.get("Pod", names.pod_of(recorder_name(self.desired.fleet, feed)))
            if pod is not None:
                yield pod, self.desired.readers_hash

    def _driver_config(self) -> Iterator[ReconcileStep]:
        """Annotate the driver of channels after a change of its configuration, which it reads again while it runs."""
        name = driver_name(self.desired.fleet)
        wanted = next((each for each in self.desired.shared if ref(each) == ("ConfigMap", names.config_of(name))), None)
        stored, pod = self.observed.get("ConfigMap", names.config_of(name)), self.observed.dataset_pod(name)
        if wanted is None or stored is None or pod is None or is_leaving(pod) or needs_write(stored, wanted):
            return
        told = annotation(wanted, names.DESIRED_HASH)
        if annotation(pod, names.CONFIG_HASH) != told:
            yield Patch(pod, {"metadata": {"annotations": {names.CONFIG_HASH: told}}}, "its configuration has changed")

    def _head_keys(self) -> Iterator[ReconcileStep]:
        """Annotate heads with their new key, which they take while they run: the kubelet then updates the file."""
        for broker in self.desired.brokers.values():
            for pod in self.observed.pods(broker.name) if broker.role == "head" and broker.public_key else ():
                if not is_leaving(pod) and annotation(pod, names.KEY) != broker.public_key:
                    annotated = {names.KEY: broker.public_key}
                    yield Patch(pod, {"metadata": {"annotations": annotated}}, "its key was replaced")

    def _standby_settings(self) -> Iterator[ReconcileStep]:
        """Annotate pods of heads that are to have a standby, or no more: the kubelet then updates the file."""
        for broker in self.desired.brokers.values():
            wanted = standby_key(broker.config)
            for pod in self.observed.pods(broker.name) if broker.role == "head" else ():
                told = annotation(pod, names.STANDBY_KEY)
                if bool(wanted) == bool(told) or is_leaving(pod) or self._is_unwritten(names.config_of(broker.name)):
                    continue
                patch = {"metadata": {"annotations": {names.STANDBY_KEY: wanted or None}}}
                yield Patch(pod, patch, "it gets a standby" if wanted else "its standby is removed")

    def _is_unwritten(self, config_map: str) -> bool:
        """Whether a ConfigMap of a broker is not as it should be yet."""
        stored = self.observed.get("ConfigMap", config_map)
        wanted = next((each for each in self.desired.objects() if ref(each) == ("ConfigMap", config_map)), None)
        return stored is None or wanted is None or needs_write(stored, wanted)

    def _leftovers(self) -> Iterator[ReconcileStep]:
        """Delete the operator's objects that are no longer desired, but for those of brokers that are still leaving."""
        asked = {ref(item) for item in self.desired.objects()} | self._secrets()
        staying = self._brokers()
        made = frozenset(self.desired.brokers)
        for kind in GARBAGE_KINDS:
            for item in self.observed.kind(kind):
                broker = label(item, names.BROKER)
                if ref(item) in asked or is_leaving(item) or label(item, names.FLEET) != self.desired.fleet:
                    continue
                if label(item, "app.kubernetes.io/managed-by") != names.MANAGER or broker in staying - made:
                    continue
                if ("BrokerCluster", label(item, names.CLUSTER)) in self.desired.usable.dropped:
                    continue
                yield Delete(item, "it is no longer desired")

    def _brokers(self) -> frozenset[str]:
        """The desired brokers, and edges that still exist."""
        return self.desired.names | {str(edge["metadata"]["name"]) for edge in self.observed.kind("EdgeBroker")}

    def _secrets(self) -> set[tuple[str, str]]:
        fleet = self.desired.resources.fleet.spec
        brokers = self._brokers()
        dataset = [secret for secret, _ in dataset_pods.identities(self.desired.resources)]
        clients = (client.name for client in fleet.security.clients)
        return {
            ("Secret", name)
            for name in (
                names.MEDIATOR_KEYS,
                *([names.COLLECTOR_KEYS] if fleet.telemetry.collectors.replicas else []),
                *dataset,
                *([names.PARAMETER_KEYS] if names.CHANNEL_KEYS in dataset else []),
                *(names.keys_of(broker) for broker in brokers),
                *(names.client_keys(client) for client in clients),
            )
        }
