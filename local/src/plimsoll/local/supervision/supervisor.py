"""The process that runs a fleet: one loop over the store, the broker processes and the control sockets.

It decides nothing about load. `core.spec` defines which brokers should run, `restart_backoff` when an exited one is
restarted, and `mediator.resource_status` the statuses; the mediator, which it keeps running, assigns subscribers to
edges. All its state is in the store or is observed again after a restart.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from plimsoll.core.config import BrokerConfig
from plimsoll.core.printable import printable
from plimsoll.core.spec import (
    BrokerEndpoints,
    InvalidResourcesError,
    Resources,
    broker_configs,
    declared_brokers,
    edge_brokers,
    wanted_ports,
)
from plimsoll.core.spec.brokers import head_name
from plimsoll.local import keys, ports
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import Object, ObjectConflictError, ObjectMissingError, ObjectStore
from plimsoll.local.storage.session_cache import SessionBriefCache
from plimsoll.local.supervision.child_process import BrokerCommand, broker_command
from plimsoll.local.supervision.collector_processes import CollectorProcesses
from plimsoll.local.supervision.sidecar import Sidecar
from plimsoll.local.supervision.spark_process import SparkProcess
from plimsoll.local.supervision.supervised_broker import SupervisedBroker
from plimsoll.local.timestamps import rfc3339_now
from plimsoll.mediator import balance, evacuation, fleet_resources, resource_status
from plimsoll.mediator.calibration import profile_status
from plimsoll.mediator.control_plane import (
    ClusterEdges,
    ControlEvent,
    ControlPlane,
    LoadReportReceived,
    MalformedReply,
    MediatorKeyPair,
    StatusReceived,
)
from plimsoll.mediator.resource_status import ObservedBroker
from plimsoll.mediator.session_objects import SESSION_KIND as SESSION
from plimsoll.mediator.session_objects import is_over

START_SECONDS = 60.0
GRACE_SECONDS = 15.0
ASK_SECONDS = 1.0
ASK_EARLY_SECONDS = 0.1
STATUS_SECONDS = 1.0
ROUND_SECONDS = 0.1
KEYS_READ_SECONDS = 2.5
"""Brokers read the authorized keys every second. Who connects earlier is refused, and ZeroMQ never retries."""


class FleetStartError(RuntimeError):
    """The fleet did not come up; everything that had started was stopped again."""


class Supervisor:
    """Runs one fleet from its store until `stop`. `announce` gets a line about each notable event.

    It has more than 25 methods because reconciling, evacuating and reporting all read the same table of brokers, and
    their order within one round is what matters: a broker leaves the table only after its exit was reported.
    """

    def __init__(
        self,
        folder: FleetFolder,
        store: ObjectStore,
        pid: int,
        command: BrokerCommand = broker_command,
        announce: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._folder, self._store, self._pid = folder, store, pid
        self._command, self._announce = command, announce
        self._brokers: dict[str, SupervisedBroker] = {}
        self._resources = fleet_resources.fleet_resources(store.objects(*fleet_resources.FLEET_KINDS)[1])
        self._fleet = self._resources.fleet.name
        self._plain = self._resources.fleet.spec.security.plain
        self._control = ControlPlane(keys.SUPERVISOR, self._curve(), 0)  # it commands nothing, so it needs no epoch
        self._mediator = Sidecar(folder)
        self._session_cache = SessionBriefCache(store)
        self._collectors = CollectorProcesses(folder, self._fleet, self._resources.fleet.spec)
        self._spark = SparkProcess(folder, self._fleet, self._resources.fleet.spec, self._collectors.data)
        self._cordoned: set[str] = set()
        self._evacuating: dict[str, tuple[str, float]] = {}
        self._fingerprint: object = None
        self._version = -1
        self._ask_at = self._status_at = 0.0
        self._is_ready = False
        self._stop = False
        self._kill_now = False

    def stop(self) -> None:
        """Stop in order at the next round; a second call kills what is left. Safe in a signal handler."""
        self._kill_now = self._stop
        self._stop = True

    def run(self) -> None:
        """Start the fleet, keep it running until `stop`, and leave no process behind.

        Raises:
            FleetStartError: a broker exited, or did not answer, before all were ready.

        """
        try:
            self._reconcile(time.monotonic())
            self._await_ready()
            while not self._stop:
                self._round(ROUND_SECONDS)
            self._stop_in_order()
        finally:
            self._mediator.stop()
            for broker in self._brokers.values():
                broker.kill()
            self._spark.stop()
            self._collectors.stop()
            self._write_status(time.monotonic())
            self._control.close()

    # -- phases

    def _await_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self._stop:
            self._round(ROUND_SECONDS)
            now = time.monotonic()
            failed = [broker for broker in self._brokers.values() if broker.failed]
            if failed:
                raise FleetStartError(
                    f"broker {failed[0].name} {failed[0].failed} (log: {self._folder.log(failed[0].name)})"
                )
            waiting = [broker.name for broker in self._brokers.values() if not broker.observed(now).ready]
            if not waiting:
                self._is_ready = True
                self._write_status(now)
                self._announce(f"fleet {self._fleet} is ready: {len(self._brokers)} brokers")
                return
            if now > deadline:
                raise FleetStartError(
                    f"not ready after {START_SECONDS:g} s: {', '.join(waiting)}; see {self._folder.path}/logs"
                )

    def _stop_in_order(self) -> None:
        """Stop edges before heads: an edge needs its head to send its subscribers elsewhere."""
        self._announce(f"stopping fleet {self._fleet}")
        self._mediator.stop()
        for role in ("edge", "head"):
            wave = [broker for broker in self._brokers.values() if broker.config.role == role]
            for broker in wave:
                broker.begin_drain(time.monotonic(), GRACE_SECONDS)
            while any(broker.running for broker in wave) and not self._kill_now:
                self._round(0.02)

    def _round(self, seconds: float) -> None:
        now = time.monotonic()
        if self._store.version() != self._version and not self._stop:
            self._reconcile(now)
        for broker in list(self._brokers.values()):
            broker.poll(now, self._command, self._record_broker_event)
            if broker.stopping and not broker.running and not self._stop:
                self._forget_broker(broker)
        self._mediator.poll(now, self._record_fleet_event)
        self._collectors.poll(now, self._record_fleet_event)
        if self._is_ready:
            self._spark.poll(now, self._collectors.observed, self._record_fleet_event)
        if now >= self._ask_at:
            for name, broker in self._brokers.items():
                self._control.ask(name, self._members_of(broker))
            early = any(broker.observed(now).answer_age is None for broker in self._brokers.values())
            self._ask_at = now + (ASK_EARLY_SECONDS if early else ASK_SECONDS)
        for said in self._control.poll(seconds):
            self._on_reply(said, time.monotonic())
        if now >= self._status_at:
            if not self._stop:
                self._collectors.write_configs(self._brokers.values())
            self._collectors.send_ended_sessions(self._store)
            self._write_status(now)

    def _on_reply(self, said: ControlEvent, now: float) -> None:
        if isinstance(said, MalformedReply) and said.times == 1:
            self._record_broker_event(said.broker, "Warning", "MalformedAnswer", said.message)
        broker = self._brokers.get(said.broker) if isinstance(said, StatusReceived | LoadReportReceived) else None
        if broker is None or not broker.running:
            return
        if isinstance(said, StatusReceived):
            broker.on_status(said.status, now, self._record_broker_event)
        elif isinstance(said, LoadReportReceived):
            broker.on_load_report(said.report, now)

    # -- desired brokers

    def _reconcile(self, now: float) -> None:
        version, objects = self._store.objects(*fleet_resources.FLEET_KINDS)
        self._version = version
        if (cordoned := evacuation.cordoned_edges(objects)) != self._cordoned:
            self._cordoned, self._ask_at = cordoned, 0.0
        self._finish_evacuations(now)
        known = fleet_resources.fingerprint(objects)
        if known == self._fingerprint:
            return
        self._fingerprint = known
        try:
            self._resources = fleet_resources.fleet_resources(objects)
            configs = self._configs(self._resources)
        except (InvalidResourcesError, ports.PortError) as error:
            self._store.record("BrokerFleet", self._fleet, "Warning", "InvalidSpec", str(error), rfc3339_now())
            self._announce(f"invalid resources, the fleet keeps running unchanged: {error}")
            if not self._brokers:
                raise FleetStartError(str(error)) from error
            return
        self._store_edges(self._resources)
        profiles = {place.name: place.profile for place in declared_brokers(self._resources)}
        for config in configs:
            broker = self._brokers.get(config.name)
            if broker is None:
                self._add(config, profiles[config.name], now)
            else:
                broker.config = config  # for its next start: its edges may have changed
        self._ask_at = 0.0
        wanted = {config.name for config in configs}
        for broker in self._brokers.values():
            if broker.name not in wanted:
                self._remove_broker(broker, now)

    # -- removing brokers

    def _remove_broker(self, broker: SupervisedBroker, now: float) -> None:
        """Remove a broker that is no longer wanted; an edge that serves subscribers is evacuated first."""
        if broker.name in self._evacuating:
            return
        config = broker.config
        if not (
            config.role == "edge" and broker.observed(now).ready
            and evacuation.has_drain_target(self._resources, broker.name, config.cluster)
        ):  # fmt: skip
            broker.begin_drain(now, GRACE_SECONDS)
            return
        try:
            name = self._evacuate(self._store.mark_deleted("EdgeBroker", broker.name, rfc3339_now()))
        except ObjectMissingError:  # its object was deleted with its cluster
            broker.begin_drain(now, GRACE_SECONDS)
            return
        longest = evacuation.LONGEST_SECONDS * self._resources.fleet.spec.time_scale_percent / 100
        self._evacuating[broker.name] = (name, now + longest)
        self._record_broker_event(broker.name, "Normal", "Evacuating", f"session {name}")

    def _evacuate(self, edge: Object) -> str:
        """Create the session that empties an edge, unless it exists; its name."""
        session = evacuation.evacuation_session(edge)
        with contextlib.suppress(ObjectConflictError):
            self._store.create(session, rfc3339_now())
        return str(session["metadata"]["name"])

    def _finish_evacuations(self, now: float) -> None:
        """Stop edges whose evacuation has ended, successfully or not, or takes too long."""
        for name, (session, until) in list(self._evacuating.items()):
            broker = self._brokers[name]
            try:
                over = is_over(self._store.get(SESSION, session))
            except ObjectMissingError:
                over = True
            if over or now >= until or not broker.running:
                del self._evacuating[name]
                broker.begin_drain(now, GRACE_SECONDS)

    def _configs(self, resources: Resources) -> tuple[BrokerConfig, ...]:
        taken = {
            name: ports.address_of(broker.config.data, broker.config.control) for name, broker in self._brokers.items()
        }
        addresses = ports.assign_addresses(str(self._folder.path), wanted_ports(resources), taken)
        if not self._plain:
            self._authorize(resources)
            addresses = {name: self._with_keys(name, address) for name, address in addresses.items()}
        return broker_configs(resources, addresses)

    def _authorize(self, resources: Resources) -> None:
        """Authorize brokers that should run and those that still do: a leaving broker needs its head until it exits."""
        roles = {broker.name: broker.config.role for broker in self._brokers.values()}
        roles |= {place.name: place.role for place in declared_brokers(resources)}
        keys.write_authorized_keys(self._folder, sorted(roles.items()), self._collectors.names)

    def _with_keys(self, name: str, address: BrokerEndpoints) -> BrokerEndpoints:
        pair = keys.key_pair(self._folder, name)
        return replace(
            address,
            public_key=pair.public,
            secret_key_file=str(pair.secret_file),
            authorized_keys_file=str(self._folder.authorized_keys),
        )

    def _add(self, config: BrokerConfig, profile: str, now: float) -> None:
        public_key = "" if self._plain else keys.key_pair(self._folder, config.name).public
        broker = SupervisedBroker(config, profile, public_key, self._folder)
        self._brokers[config.name] = broker
        if self._is_ready and not self._plain:
            broker.start_at(now + KEYS_READ_SECONDS)
        else:
            broker.start(self._command, self._record_broker_event)
        self._control.dial(broker.peer, config.role)

    def _members_of(self, head: SupervisedBroker) -> ClusterEdges | None:
        """A head's edges; new subscribers are not placed on cordoned or leaving ones."""
        if head.config.role != "head":
            return None
        here = [broker for broker in self._brokers.values() if broker.config.cluster == head.config.cluster]
        leaving = {broker.name for broker in here if broker.stopping or broker.name in self._evacuating}
        edges = {*head.config.edges, *leaving} - {head.name}
        return ClusterEdges(tuple(sorted(edges)), tuple(sorted(edges & (self._cordoned | leaving))))

    def _forget_broker(self, broker: SupervisedBroker) -> None:
        """Forget a broker that has left, with its object and its configuration."""
        del self._brokers[broker.name]
        self._control.hang_up(broker.name)
        self._folder.config(broker.name).unlink(missing_ok=True)
        self._fingerprint, self._version = None, -1  # reconcile again: its key must go, or it may be wanted again
        if broker.config.role == "edge":
            self._delete("EdgeBroker", broker.name)
        cluster = broker.config.cluster
        if cluster not in self._resources.clusters and cluster not in {
            b.config.cluster for b in self._brokers.values()
        }:
            self._delete("BrokerCluster", cluster)

    def _delete(self, kind: str, name: str) -> None:
        try:
            if "deletionTimestamp" in self._store.get(kind, name)["metadata"]:
                self._store.delete(kind, name)
        except ObjectMissingError:
            return

    def _store_edges(self, resources: Resources) -> None:
        """Create the EdgeBrokers of clusters, and mark those that are no longer wanted."""
        wanted = {edge.name: edge for edge in edge_brokers(resources)}
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
                    self._remove(name)
            self._fingerprint = fleet_resources.fingerprint(self._store.objects(*fleet_resources.FLEET_KINDS)[1])

    def _remove(self, edge: str) -> None:
        if edge in self._brokers:
            self._store.mark_deleted("EdgeBroker", edge, rfc3339_now())
        else:
            self._store.delete("EdgeBroker", edge)

    # -- status and events

    def _write_status(self, now: float) -> None:
        self._status_at = now + STATUS_SECONDS
        fleet = self._resources.fleet.spec
        interval = fleet.telemetry.report_interval.seconds * fleet.time_scale_percent / 100
        seen = {name: broker.observed(now) for name, broker in sorted(self._brokers.items())}
        text = rfc3339_now()
        with self._store.transaction():
            for name, edge in seen.items():
                if edge.role == "edge":
                    change = partial(resource_status.edge_status, seen=edge, interval_seconds=interval, time=text)
                    self._set_status("EdgeBroker", name, change)
            for name in self._resources.clusters:
                head = seen.get(head_name(name))
                edges = [broker for broker in seen.values() if (broker.cluster, broker.role) == (name, "edge")]
                if head is not None:
                    self._set_status("BrokerCluster", name, self._cluster_status(name, head, edges, interval, text))
            for name in self._resources.profiles:
                self._set_status(
                    "HardwareProfile", name, partial(profile_status, brokers=list(seen.values()), time=text)
                )
            change = partial(
                resource_status.fleet_status,
                brokers=list(seen.values()),
                plain=self._plain,
                pid=self._pid,
                mediator=self._mediator.status(),
                interval_seconds=interval,
                time=text,
                telemetry=self._telemetry(),
                others=self._spark.conditions(),
            )
            self._set_status("BrokerFleet", self._fleet, change)

    def _cluster_status(
        self, name: str, head: ObservedBroker, edges: Sequence[ObservedBroker], interval: float, text: str
    ) -> Callable[[dict[str, Any]], Mapping[str, Any]]:
        known = (self._resources, name, edges, self._session_cache.refresh(), time.time())
        others = [balance.balanced_condition(*known)]
        summary = balance.cluster_summary(*known)

        def change(old: dict[str, Any]) -> Mapping[str, Any]:
            return {**resource_status.cluster_status(old, head, edges, interval, text, others), **summary}

        return change

    def _telemetry(self) -> dict[str, Any]:
        live = self._spark.status()
        found = self._collectors.status() if self._collectors.names else {}
        return {**found, **({"spark": live} if live else {})}

    def _set_status(self, kind: str, name: str, change: Callable[[dict[str, Any]], Mapping[str, Any]]) -> None:
        try:
            self._store.set_status(kind, name, change)
        except ObjectMissingError:  # deleted by a user meanwhile; the next round notices
            return

    def _record_broker_event(self, broker: str, type_: str, reason: str, message: str) -> None:
        known = self._brokers.get(broker)
        kind, name = "EdgeBroker", broker
        if known is not None and known.config.role == "head":
            kind, name, message = "BrokerCluster", known.config.cluster, f"{broker}: {message}"
        self._store.record(kind, name, type_, reason, message, rfc3339_now())
        if type_ == "Warning" or reason == "Ready":
            self._announce(printable(f"{broker}: {message.removeprefix(f'{broker}: ')}"))

    def _record_fleet_event(self, type_: str, reason: str, message: str) -> None:
        self._store.record("BrokerFleet", self._fleet, type_, reason, message, rfc3339_now())
        if type_ == "Warning":
            self._announce(printable(message))

    def _curve(self) -> MediatorKeyPair | None:
        if self._plain:
            return None
        pair = keys.key_pair(self._folder, keys.SUPERVISOR)
        return MediatorKeyPair(pair.public, pair.secret())
