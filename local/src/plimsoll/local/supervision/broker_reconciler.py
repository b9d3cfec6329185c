"""The brokers that run, made equal to those that the stored resources want.

A broker leaves the table only after its exit was reported; until then it keeps its key, its ports and its place among
the edges of its head.
"""

from __future__ import annotations

from dataclasses import replace

from plimsoll.core.config import BrokerConfig
from plimsoll.core.spec import (
    BrokerEndpoints,
    InvalidResourcesError,
    Resources,
    broker_configs,
    declared_brokers,
    edge_brokers,
    wanted_ports,
)
from plimsoll.core.spec.broker_config import WantedPorts, declared_groups, policy_text
from plimsoll.core.spec.brokers import head_name
from plimsoll.local import keys, ports
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.leadership_store import LeadershipStore
from plimsoll.local.storage.object_store import ObjectMissingError, ObjectStore
from plimsoll.local.storage.state_files import StateWriteError, remove
from plimsoll.local.supervision.child_process import BrokerCommand
from plimsoll.local.supervision.evacuations import Evacuations
from plimsoll.local.supervision.fleet_events import FleetEvents
from plimsoll.local.supervision.supervised_broker import SupervisedBroker
from plimsoll.local.supervision.supervised_head import HeadControl, SupervisedHead
from plimsoll.local.timestamps import rfc3339_now
from plimsoll.mediator import evacuation, fleet_resources
from plimsoll.mediator.control_plane import ClusterEdges
from plimsoll.mediator.head_cordons import NOT_CORDONED, HeadCordonView, head_cordons

KEYS_READ_SECONDS = 2.5
"""Brokers read the authorized keys every second. A peer that connects earlier is refused, and ZeroMQ never retries."""


class FleetStartError(RuntimeError):
    """The fleet did not come up; everything that had started was stopped again."""


class BrokerReconciler:
    """`brokers`: the table, which others read. `collectors`: names of collectors, which are authorized like brokers."""

    def __init__(
        self,
        folder: FleetFolder,
        store: ObjectStore,
        resources: Resources,
        brokers: dict[str, SupervisedBroker],
        control: HeadControl,
        events: FleetEvents,
        command: BrokerCommand,
        collectors: tuple[str, ...],
    ) -> None:
        self._folder, self._store, self._control, self._events = folder, store, control, events
        self._command, self._collectors = command, collectors
        self.brokers, self.resources = brokers, resources
        self._plain = resources.fleet.spec.security.plain
        self._evacuations = Evacuations(store, brokers, events)
        self._cordoned: set[str] = set()
        self._head_cordons: dict[str, HeadCordonView] = {}
        self._standby_controls: dict[str, tuple[str, str]] = {}
        self._fingerprint: object = None
        self._version = -1

    def is_due(self) -> bool:
        """Whether something stored has changed."""
        return self._store.version() != self._version

    def reconcile(self, now: float, *, is_ready: bool) -> bool:
        """Add and remove brokers; returns whether heads have to be sent their edges at once.

        `is_ready`: the fleet has come up, so its brokers must read the key of a new one before it connects.

        Raises:
            FleetStartError: the resources cannot be used, and no broker runs yet.
            StateWriteError: the next call starts again; what was done already is kept.

        """
        try:
            return self._reconcile(now, is_ready=is_ready)
        except StateWriteError:
            self._forget_seen()
            raise

    def _reconcile(self, now: float, *, is_ready: bool) -> bool:
        version, objects = self._store.objects(*fleet_resources.FLEET_KINDS)
        self._version = version
        cordoned, before = evacuation.cordoned_edges(objects), self._cordoned
        self._cordoned = cordoned
        self._head_cordons = head_cordons(objects, cordoned)
        self._evacuations.finish(now)
        known = fleet_resources.fingerprint(objects)
        if known == self._fingerprint:
            return cordoned != before
        self._fingerprint = known
        try:
            self.resources = fleet_resources.fleet_resources(objects)
            configs = self._configs()
        except (InvalidResourcesError, ports.PortError) as error:
            self._events.record_invalid_spec(error)
            if not self.brokers:
                raise FleetStartError(str(error)) from error
            return cordoned != before
        self._store_edges()
        self._apply(configs, now, is_ready=is_ready)
        return True

    def _apply(self, configs: tuple[BrokerConfig, ...], now: float, *, is_ready: bool) -> None:
        profiles = {place.name: place.profile for place in declared_brokers(self.resources)}
        for config in configs:
            broker = self.brokers.get(config.name)
            if broker is None:
                start_at = now + KEYS_READ_SECONDS if is_ready and not self._plain else None
                self._add(config, profiles[config.name], start_at)
            else:
                broker.config = config  # for its next start: its edges may have changed
                if isinstance(broker, SupervisedHead):
                    broker.controls = self._standby_controls.get(config.name, broker.controls)
        wanted = {config.name for config in configs}
        for broker in self.brokers.values():
            if broker.name not in wanted:
                self._evacuations.remove(broker, self.resources, now)

    def members_of(self, head: SupervisedBroker) -> ClusterEdges | None:
        """A head's edges, of which cordoned and leaving ones get no newcomers; and whether it takes new publishers."""
        if head.config.role != "head":
            return None
        here = [broker for broker in self.brokers.values() if broker.config.cluster == head.config.cluster]
        leaving = {broker.name for broker in here if broker.stopping or broker.name in self._evacuations}
        edges = {*head.config.edges, *leaving} - {head.name}
        policy = policy_text(self.resources, head.config.cluster)
        cordon = self._head_cordons.get(head.name, NOT_CORDONED)
        closed = tuple(sorted(edges & (self._cordoned | leaving)))
        return ClusterEdges(tuple(sorted(edges)), closed, policy, cordon, declared_groups(self.resources))

    # -- configurations and keys

    def _configs(self) -> tuple[BrokerConfig, ...]:
        taken = {
            name: ports.address_of(broker.config.data, broker.config.control) for name, broker in self.brokers.items()
        }
        taken |= {ports.standby_of(head): BrokerEndpoints(*both) for head, both in self._standby_controls.items()}
        addresses = ports.assign_addresses(str(self._folder.path), self._wanted_ports(), taken)
        for name in [name for name in addresses if ports.is_standby(name)]:
            address = addresses.pop(name)
            self._standby_controls[ports.head_of(name)] = address.data, address.control
        if not self._plain:
            self._authorize()
            addresses = {name: self._with_keys(name, address) for name, address in addresses.items()}
        addresses = {
            name: replace(
                address,
                log_directory=str(self._folder.head_log(name)),
                standby_control=self._standby_controls.get(name, ("",))[0],
            )
            for name, address in addresses.items()
        }
        return broker_configs(self.resources, addresses)

    def _wanted_ports(self) -> dict[str, WantedPorts]:
        """Those of brokers, and two for each head with a standby: one for each of its processes while it follows."""
        wanted = wanted_ports(self.resources)
        for cluster, resource in self.resources.clusters.items():
            if resource.spec.head.standby:
                wanted[ports.standby_of(head_name(cluster))] = WantedPorts("", 0, 0)
        return wanted

    def _authorize(self) -> None:
        """Authorize brokers that should run and those that still do: a leaving broker needs its head until it exits."""
        roles = {broker.name: broker.config.role for broker in self.brokers.values()}
        roles |= {place.name: place.role for place in declared_brokers(self.resources)}
        collecting = [*self._collectors, *([keys.PARAMETERS] if self.resources.channels else [])]
        clients = self.resources.fleet.spec.security.clients
        keys.write_authorized_keys(self._folder, roles.items(), collecting, clients)

    def _with_keys(self, name: str, address: BrokerEndpoints) -> BrokerEndpoints:
        pair = keys.key_pair(self._folder, name)
        return replace(
            address,
            public_key=pair.public,
            secret_key_file=str(pair.secret_file),
            authorized_keys_file=str(self._folder.authorized_keys),
        )

    # -- the table of brokers

    def _add(self, config: BrokerConfig, profile: str, start_at: float | None) -> None:
        public_key = "" if self._plain else keys.key_pair(self._folder, config.name).public
        broker = self._broker(config, profile, public_key)
        self.brokers[config.name] = broker
        try:
            if start_at is None:
                broker.start(self._command, self._events.record_broker_event)
            else:
                broker.start_at(start_at)
        except StateWriteError:
            del self.brokers[config.name]  # it is added by the next reconciliation
            raise
        self._control.dial(broker.peer, config.role)

    def _broker(self, config: BrokerConfig, profile: str, public_key: str) -> SupervisedBroker:
        if config.role != "head":
            return SupervisedBroker(config, profile, public_key, self._folder)
        return SupervisedHead(
            config, profile, public_key, self._folder, LeadershipStore(self._store, config.cluster), self._control,
            self._standby_controls.get(config.name, ("", "")),
        )  # fmt: skip

    def forget(self, broker: SupervisedBroker) -> None:
        """Forget a broker that has left, with its object and its configuration.

        Raises:
            StateWriteError: it is still in the table; call again.

        """
        remove(self._folder.config(broker.name))
        if broker.config.role == "edge":
            self._delete("EdgeBroker", broker.name)
        cluster = broker.config.cluster
        others = {other.config.cluster for other in self.brokers.values() if other is not broker}
        if cluster not in self.resources.clusters and cluster not in others:
            self._delete("BrokerCluster", cluster)
        del self.brokers[broker.name]
        self._control.hang_up(broker.name)
        self._forget_seen()  # reconcile again: its key must go, or it may be wanted again

    def _forget_seen(self) -> None:
        self._fingerprint, self._version = None, -1

    def _delete(self, kind: str, name: str) -> None:
        try:
            if "deletionTimestamp" in self._store.get(kind, name)["metadata"]:
                self._store.delete(kind, name)
        except ObjectMissingError:  # it has gone already
            return

    # -- the objects of edges

    def _store_edges(self) -> None:
        """Create the EdgeBrokers of clusters, and mark those that are no longer wanted."""
        wanted = {edge.name: edge for edge in edge_brokers(self.resources)}
        with self._store.transaction():
            stored = {item["metadata"]["name"]: item for item in self._store.objects("EdgeBroker")[1]}
            for edge in wanted.values():
                leaving = "deletionTimestamp" in stored.get(edge.name, {}).get("metadata", {})
                if edge.owner is not None and not leaving:
                    self._store.apply(
                        fleet_resources.with_cordon_of(edge.mapping(), stored.get(edge.name)), rfc3339_now()
                    )
            for item in self._store.objects("EdgeBroker")[1]:
                name = item["metadata"]["name"]
                if name not in wanted and fleet_resources.owning_cluster(item) is not None:
                    self._remove_object(name)
            self._fingerprint = fleet_resources.fingerprint(self._store.objects(*fleet_resources.FLEET_KINDS)[1])

    def _remove_object(self, edge: str) -> None:
        if edge in self.brokers:
            self._store.mark_deleted("EdgeBroker", edge, rfc3339_now())
        else:
            self._store.delete("EdgeBroker", edge)
