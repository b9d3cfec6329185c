"""The process that runs a fleet: one loop that looks at the store, the processes and the control sockets in turn.

It decides nothing about the fleet. What should run is `desired`; when an ended process starts again is `restarts`; what
status says is `reports`; who serves whom is for the mediator, which it keeps running. It holds no state that is not in
the store or observed again after a restart.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from plimsoll.core.config import BrokerConfig
from plimsoll.core.spec import Address, InvalidResourcesError, Resources, edge_brokers, places, plan, wanted_ports
from plimsoll.core.spec.brokers import head_name
from plimsoll.local import keys, ports
from plimsoll.local.briefs import Briefs
from plimsoll.local.brokers import Broker
from plimsoll.local.collecting import Collectors
from plimsoll.local.home import FleetFolder
from plimsoll.local.keeper import Keeper
from plimsoll.local.processes import Command, broker_command
from plimsoll.local.sparking import Sparking
from plimsoll.local.store import ConflictError, MissingError, Object, Store
from plimsoll.local.times import now_text
from plimsoll.mediator import balance, desired, evacuation, reports
from plimsoll.mediator.control import Answered, ControlPlane, Curve, Malformed, Members, Reported, Said
from plimsoll.mediator.profiles import profile_status
from plimsoll.mediator.reports import Seen
from plimsoll.mediator.sessions import KIND as SESSION
from plimsoll.mediator.sessions import is_over

START_SECONDS = 60.0
GRACE_SECONDS = 15.0
ASK_SECONDS = 1.0
ASK_EARLY_SECONDS = 0.1
STATUS_SECONDS = 1.0
ROUND_SECONDS = 0.1
KEYS_READ_SECONDS = 2.5
"""Brokers look at the authorized keys every second. Who connects before is refused, and ZeroMQ does not try again."""


class StartError(RuntimeError):
    """The fleet did not come up; everything that had started was stopped again."""


class Supervisor:
    """Runs one fleet from its store, until told to stop. `announce` is given a line about each thing of note."""

    def __init__(
        self,
        folder: FleetFolder,
        store: Store,
        pid: int,
        command: Command = broker_command,
        announce: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._folder, self._store, self._pid = folder, store, pid
        self._command, self._announce = command, announce
        self._brokers: dict[str, Broker] = {}
        self._resources = desired.resources(store.objects(*desired.KINDS)[1])
        self._fleet = self._resources.fleet.name
        self._plain = self._resources.fleet.spec.security.plain
        self._control = ControlPlane(keys.SUPERVISOR, self._curve(), 0)  # it commands nothing, so it needs no epoch
        self._keeper = Keeper(folder)
        self._briefs = Briefs(store)
        self._collectors = Collectors(folder, self._fleet, self._resources.fleet.spec)
        self._sparking = Sparking(folder, self._fleet, self._resources.fleet.spec, self._collectors.data)
        self._cordoned: set[str] = set()
        self._evacuating: dict[str, tuple[str, float]] = {}
        self._known: object = None
        self._version = -1
        self._ask_at = self._status_at = 0.0
        self._up = False
        self._stop = False
        self._hurry = False

    def stop(self) -> None:
        """Stop in order at the next round; a second call ends everything at once. Safe in a signal handler."""
        self._hurry = self._stop
        self._stop = True

    def run(self) -> None:
        """Start the fleet, keep it running until `stop`, and leave no process behind.

        Raises:
            StartError: a broker ended, or did not answer, before all were ready.

        """
        try:
            self._reconcile(time.monotonic())
            self._await_ready()
            while not self._stop:
                self._round(ROUND_SECONDS)
            self._leave_in_order()
        finally:
            self._keeper.end()
            for broker in self._brokers.values():
                broker.kill()
            self._sparking.end()
            self._collectors.end()
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
                raise StartError(
                    f"broker {failed[0].name} {failed[0].failed} (log: {self._folder.log(failed[0].name)})"
                )
            waiting = [broker.name for broker in self._brokers.values() if not broker.seen(now).ready]
            if not waiting:
                self._up = True
                self._write_status(now)
                self._announce(f"fleet {self._fleet} is ready: {len(self._brokers)} brokers")
                return
            if now > deadline:
                raise StartError(
                    f"not ready after {START_SECONDS:g} s: {', '.join(waiting)}; see {self._folder.path}/logs"
                )

    def _leave_in_order(self) -> None:
        """Edges first, so that they let their subscribers go while their heads are there; then heads."""
        self._announce(f"stopping fleet {self._fleet}")
        self._keeper.end()
        for role in ("edge", "head"):
            wave = [broker for broker in self._brokers.values() if broker.config.role == role]
            for broker in wave:
                broker.leave(time.monotonic(), GRACE_SECONDS)
            while any(broker.running for broker in wave) and not self._hurry:
                self._round(0.02)

    def _round(self, seconds: float) -> None:
        now = time.monotonic()
        if self._store.version() != self._version and not self._stop:
            self._reconcile(now)
        for broker in list(self._brokers.values()):
            broker.step(now, self._command, self._record)
            if broker.stopping and not broker.running and not self._stop:
                self._forget(broker)
        self._keeper.step(now, self._record_fleet)
        self._collectors.step(now, self._record_fleet)
        if self._up:
            self._sparking.step(now, self._collectors.known, self._record_fleet)
        if now >= self._ask_at:
            for name, broker in self._brokers.items():
                self._control.ask(name, self._members_of(broker))
            early = any(broker.seen(now).answer_age is None for broker in self._brokers.values())
            self._ask_at = now + (ASK_EARLY_SECONDS if early else ASK_SECONDS)
        for said in self._control.poll(seconds):
            self._heard(said, time.monotonic())
        if now >= self._status_at:
            if not self._stop:
                self._collectors.show(self._brokers.values())
            self._collectors.tell_sessions(self._store)
            self._write_status(now)

    def _heard(self, said: Said, now: float) -> None:
        if isinstance(said, Malformed) and said.times == 1:
            self._record(said.broker, "Warning", "MalformedAnswer", said.message)
        broker = self._brokers.get(said.broker) if isinstance(said, Answered | Reported) else None
        if broker is None or not broker.running:
            return
        if isinstance(said, Answered):
            broker.answered(said.status, now, self._record)
        elif isinstance(said, Reported):
            broker.reported(said.report, now)

    # -- what should run

    def _reconcile(self, now: float) -> None:
        version, objects = self._store.objects(*desired.KINDS)
        self._version = version
        if (cordoned := evacuation.cordoned(objects)) != self._cordoned:
            self._cordoned, self._ask_at = cordoned, 0.0
        self._leave_if_empty(now)
        known = desired.fingerprint(objects)
        if known == self._known:
            return
        self._known = known
        try:
            self._resources = desired.resources(objects)
            configs = self._configs(self._resources)
        except (InvalidResourcesError, ports.PortError) as error:
            self._store.record("BrokerFleet", self._fleet, "Warning", "InvalidSpec", str(error), now_text())
            self._announce(f"what the store asks for cannot be run, so everything stays as it is: {error}")
            if not self._brokers:
                raise StartError(str(error)) from error
            return
        self._store_edges(self._resources)
        profiles = {place.name: place.profile for place in places(self._resources)}
        for config in configs:
            broker = self._brokers.get(config.name)
            if broker is None:
                self._add(config, profiles[config.name], now)
            else:
                broker.config = config  # what it is told if it has to be started again: its edges may have changed
        self._ask_at = 0.0
        wanted = {config.name for config in configs}
        for broker in self._brokers.values():
            if broker.name not in wanted:
                self._let_go(broker, now)

    # -- who goes

    def _let_go(self, broker: Broker, now: float) -> None:
        """A broker that is not wanted any more leaves; an edge that serves subscribers is evacuated first."""
        if broker.name in self._evacuating:
            return
        config = broker.config
        if not (
            config.role == "edge" and broker.seen(now).ready
            and evacuation.has_refuge(self._resources, broker.name, config.cluster)
        ):  # fmt: skip
            broker.leave(now, GRACE_SECONDS)
            return
        try:
            name = self._evacuate(self._store.mark_deleted("EdgeBroker", broker.name, now_text()))
        except MissingError:  # its object has gone with the cluster that made it
            broker.leave(now, GRACE_SECONDS)
            return
        longest = evacuation.LONGEST_SECONDS * self._resources.fleet.spec.time_scale_percent / 100
        self._evacuating[broker.name] = (name, now + longest)
        self._record(broker.name, "Normal", "Evacuating", f"session {name}")

    def _evacuate(self, edge: Object) -> str:
        """Ask for the session that empties an edge, unless that has been done; its name."""
        session = evacuation.session(edge)
        with contextlib.suppress(ConflictError):
            self._store.create(session, now_text())
        return str(session["metadata"]["name"])

    def _leave_if_empty(self, now: float) -> None:
        """Those whose evacuation has ended, in whatever way, or takes too long."""
        for name, (session, until) in list(self._evacuating.items()):
            broker = self._brokers[name]
            try:
                over = is_over(self._store.get(SESSION, session))
            except MissingError:
                over = True
            if over or now >= until or not broker.running:
                del self._evacuating[name]
                broker.leave(now, GRACE_SECONDS)

    def _configs(self, resources: Resources) -> tuple[BrokerConfig, ...]:
        taken = {
            name: ports.address_of(broker.config.data, broker.config.control) for name, broker in self._brokers.items()
        }
        addresses = ports.choose(str(self._folder.path), wanted_ports(resources), taken)
        if not self._plain:
            self._authorize(resources)
            addresses = {name: self._with_keys(name, address) for name, address in addresses.items()}
        return plan(resources, addresses)

    def _authorize(self, resources: Resources) -> None:
        """Keys of what should run, and of what still does: a broker on its way out talks to its head until the end."""
        roles = {broker.name: broker.config.role for broker in self._brokers.values()}
        roles |= {place.name: place.role for place in places(resources)}
        keys.authorize(self._folder, sorted(roles.items()), self._collectors.names)

    def _with_keys(self, name: str, address: Address) -> Address:
        pair = keys.pair(self._folder, name)
        return replace(
            address,
            public_key=pair.public,
            secret_key_file=str(pair.secret_file),
            authorized_keys_file=str(self._folder.authorized_keys),
        )

    def _add(self, config: BrokerConfig, profile: str, now: float) -> None:
        public_key = "" if self._plain else keys.pair(self._folder, config.name).public
        broker = Broker(config, profile, public_key, self._folder)
        self._brokers[config.name] = broker
        if self._up and not self._plain:
            broker.start_at(now + KEYS_READ_SECONDS)
        else:
            broker.start(self._command, self._record)
        self._control.dial(broker.peer, config.role)

    def _members_of(self, head: Broker) -> Members | None:
        """A head's edges; those that are cordoned or leave take no newcomers."""
        if head.config.role != "head":
            return None
        here = [broker for broker in self._brokers.values() if broker.config.cluster == head.config.cluster]
        leaving = {broker.name for broker in here if broker.stopping or broker.name in self._evacuating}
        edges = {*head.config.edges, *leaving} - {head.name}
        return Members(tuple(sorted(edges)), tuple(sorted(edges & (self._cordoned | leaving))))

    def _forget(self, broker: Broker) -> None:
        """A broker that was to go has gone: so do its object and its configuration."""
        del self._brokers[broker.name]
        self._control.hang_up(broker.name)
        self._folder.config(broker.name).unlink(missing_ok=True)
        self._known, self._version = None, -1  # its key goes; or it is wanted again by now
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
        except MissingError:
            return

    def _store_edges(self, resources: Resources) -> None:
        """Clusters make EdgeBrokers, and mark those that they no longer ask for."""
        wanted = {edge.name: edge for edge in edge_brokers(resources)}
        with self._store.transaction():
            stored = {item["metadata"]["name"]: item for item in self._store.objects("EdgeBroker")[1]}
            for edge in wanted.values():
                leaving = "deletionTimestamp" in stored.get(edge.name, {}).get("metadata", {})
                if edge.owner is not None and not leaving:
                    self._store.apply(desired.cordoned_as(edge.mapping(), stored.get(edge.name)), now_text())
            for item in self._store.objects("EdgeBroker")[1]:
                name = item["metadata"]["name"]
                if name not in wanted and desired.made_by_cluster(item) is not None:
                    self._remove(name)
            self._known = desired.fingerprint(self._store.objects(*desired.KINDS)[1])

    def _remove(self, edge: str) -> None:
        if edge in self._brokers:
            self._store.mark_deleted("EdgeBroker", edge, now_text())
        else:
            self._store.delete("EdgeBroker", edge)

    # -- what is said

    def _write_status(self, now: float) -> None:
        self._status_at = now + STATUS_SECONDS
        fleet = self._resources.fleet.spec
        interval = fleet.telemetry.report_interval.seconds * fleet.time_scale_percent / 100
        seen = {name: broker.seen(now) for name, broker in sorted(self._brokers.items())}
        text = now_text()
        with self._store.transaction():
            for name, edge in seen.items():
                if edge.role == "edge":
                    change = partial(reports.edge_status, seen=edge, interval_seconds=interval, time=text)
                    self._set("EdgeBroker", name, change)
            for name in self._resources.clusters:
                head = seen.get(head_name(name))
                edges = [broker for broker in seen.values() if (broker.cluster, broker.role) == (name, "edge")]
                if head is not None:
                    self._set("BrokerCluster", name, self._of_cluster(name, head, edges, interval, text))
            for name in self._resources.profiles:
                self._set("HardwareProfile", name, partial(profile_status, brokers=list(seen.values()), time=text))
            change = partial(
                reports.fleet_status,
                brokers=list(seen.values()),
                plain=self._plain,
                pid=self._pid,
                mediator=self._keeper.status(),
                interval_seconds=interval,
                time=text,
                telemetry=self._telemetry(),
                others=self._sparking.conditions(),
            )
            self._set("BrokerFleet", self._fleet, change)

    def _of_cluster(
        self, name: str, head: Seen, edges: Sequence[Seen], interval: float, text: str
    ) -> Callable[[dict[str, Any]], Mapping[str, Any]]:
        known = (self._resources, name, edges, self._briefs.look(), time.time())
        others = [balance.balanced(*known)]
        summary = balance.summary(*known)

        def change(old: dict[str, Any]) -> Mapping[str, Any]:
            return {**reports.cluster_status(old, head, edges, interval, text, others), **summary}

        return change

    def _telemetry(self) -> dict[str, Any]:
        live = self._sparking.status()
        found = self._collectors.status() if self._collectors.names else {}
        return {**found, **({"spark": live} if live else {})}

    def _set(self, kind: str, name: str, change: Callable[[dict[str, Any]], Mapping[str, Any]]) -> None:
        try:
            self._store.set_status(kind, name, change)
        except MissingError:  # deleted by a user meanwhile; the next round takes notice of that
            return

    def _record(self, broker: str, type_: str, reason: str, message: str) -> None:
        known = self._brokers.get(broker)
        kind, name = "EdgeBroker", broker
        if known is not None and known.config.role == "head":
            kind, name, message = "BrokerCluster", known.config.cluster, f"{broker}: {message}"
        self._store.record(kind, name, type_, reason, message, now_text())
        if type_ == "Warning" or reason == "Ready":
            self._announce(f"{broker}: {message.removeprefix(f'{broker}: ')}")

    def _record_fleet(self, type_: str, reason: str, message: str) -> None:
        self._store.record("BrokerFleet", self._fleet, type_, reason, message, now_text())
        if type_ == "Warning":
            self._announce(message)

    def _curve(self) -> Curve | None:
        if self._plain:
            return None
        pair = keys.pair(self._folder, keys.SUPERVISOR)
        return Curve(pair.public, pair.secret())
