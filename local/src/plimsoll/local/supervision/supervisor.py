"""The process that runs a fleet: one loop over the store, the broker processes and the control sockets.

It decides nothing about load. `core.spec` defines which brokers should run, `restart_backoff` when an exited one is
restarted, and `mediator.resource_status` the statuses; the mediator, which it keeps running, assigns subscribers to
edges. All its state is in the store or is observed again after a restart.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from plimsoll.local import keys, ports
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import ObjectStore
from plimsoll.local.supervision.broker_reconciler import BrokerReconciler, FleetStartError
from plimsoll.local.supervision.channel_process import ChannelProcess
from plimsoll.local.supervision.child_process import BrokerCommand, broker_command
from plimsoll.local.supervision.collector_processes import CollectorProcesses
from plimsoll.local.supervision.feed_processes import FeedProcesses
from plimsoll.local.supervision.fleet_events import FleetEvents
from plimsoll.local.supervision.fleet_status_writer import FleetStatusWriter
from plimsoll.local.supervision.sidecar import Sidecar
from plimsoll.local.supervision.spark_process import SparkProcess
from plimsoll.local.supervision.supervised_broker import SupervisedBroker
from plimsoll.local.supervision.supervised_head import SupervisedHead
from plimsoll.local.supervision.write_faults import WriteFaults
from plimsoll.mediator import fleet_resources
from plimsoll.mediator.control_plane import (
    ControlEvent,
    ControlPlane,
    HeadMessageReceived,
    LeadershipReceived,
    LoadReportReceived,
    MalformedReply,
    StatusReceived,
)
from plimsoll.mediator.log_condition import LogEvents

START_SECONDS = 60.0
ASK_SECONDS = 1.0
ASK_EARLY_SECONDS = 0.1
STATUS_SECONDS = 1.0
RETRY_SECONDS = 1.0
ROUND_SECONDS = 0.1


if TYPE_CHECKING:
    from plimsoll.local.supervision.metrics_page import MetricsPage


class Supervisor:
    """Runs one fleet from its store until `stop`. `announce` gets a line about each notable event; `metrics` is told
    each second what recorders and channels have done.

    Its part is the order of things: within a round, and at the start and the end of the fleet. `BrokerReconciler`
    adds and removes brokers, and `FleetStatusWriter` stores what is seen of them.
    """

    def __init__(
        self,
        folder: FleetFolder,
        store: ObjectStore,
        pid: int,
        command: BrokerCommand = broker_command,
        announce: Callable[[str], None] = lambda line: None,
        metrics: MetricsPage | None = None,
    ) -> None:
        resources = fleet_resources.fleet_resources(store.objects(*fleet_resources.FLEET_KINDS)[1])
        self._fleet, spec = resources.fleet.name, resources.fleet.spec
        plain = spec.security.plain
        self._folder, self._store, self._command, self._announce = folder, store, command, announce
        self._metrics = metrics
        self._brokers: dict[str, SupervisedBroker] = {}
        self._events = FleetEvents(store, self._fleet, self._brokers, announce)
        self._faults = WriteFaults(self._events)
        self._log_events = LogEvents()
        curve = keys.control_keys(folder, keys.SUPERVISOR, plain=plain)
        self._control = ControlPlane(keys.SUPERVISOR, curve, 0)  # it commands nothing, so it needs no epoch
        self._mediator = Sidecar(folder)
        self._collectors = CollectorProcesses(folder, self._fleet, spec)
        self._spark = SparkProcess(folder, self._fleet, spec, self._collectors.data)
        self._feeds = FeedProcesses(folder, plain=plain)
        self._channels = ChannelProcess(folder, plain=plain)
        self._reconciler = BrokerReconciler(
            folder, store, resources, self._brokers, self._control, self._events, command, self._collectors.names
        )
        self._status = FleetStatusWriter(
            store,
            self._brokers,
            self._mediator,
            self._collectors,
            self._spark,
            self._feeds,
            self._channels,
            pid=pid,
            plain=plain,
            on_fault=self._faults.note_fault,
        )
        self._ask_at = self._status_at = self._reconcile_at = 0.0
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
            StateWriteError: something could not be written before all were ready. Later the fleet goes on without.

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
            self._channels.stop()
            self._feeds.stop()
            self._collectors.stop()
            self._faults.attempt("status", lambda: self._write_status(time.monotonic()))
            self._faults.settle()
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
                self._write_status(now)
                self._is_ready = True
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
        self._channels.stop()
        self._feeds.stop()
        for role in ("edge", "head"):
            wave = [broker for broker in self._brokers.values() if broker.config.role == role]
            for broker in wave:
                broker.begin_drain(time.monotonic())
            while any(broker.running for broker in wave) and not self._kill_now:
                self._round(0.02)

    def _round(self, seconds: float) -> None:
        now = time.monotonic()
        if now >= self._reconcile_at and not self._stop and not self._attempt("brokers", lambda: self._follow(now)):
            self._reconcile_at = now + RETRY_SECONDS
        for broker in list(self._brokers.values()):
            poll = partial(broker.poll, now, self._command, self._events.record_broker_event)
            self._attempt(f"the process of {broker.name}", poll)
            if broker.stopping and not broker.running and not self._stop:
                self._attempt(broker.name, partial(self._reconciler.forget, broker))
        note = self._events.record_fleet_event
        self._attempt("the mediator", lambda: self._mediator.poll(now, note))
        self._attempt("the collectors", lambda: self._collectors.poll(now, note))
        if self._is_ready:
            self._attempt("Spark", lambda: self._spark.poll(now, self._collectors.observed, note))
            if not self._stop:
                resources, record = self._reconciler.resources, self._events.record_fleet_event
                self._attempt("feeds", lambda: self._feeds.poll(now, resources, record))
                edges = [each.peer for each in self._brokers.values() if each.config.role == "edge" and each.running]
                self._attempt("channels", lambda: self._channels.poll(now, resources, edges, record))
        if now >= self._ask_at:
            for name, broker in self._brokers.items():
                self._control.ask(name, self._reconciler.members_of(broker))
            early = any(broker.observed(now).answer_age is None for broker in self._brokers.values())
            self._ask_at = now + (ASK_EARLY_SECONDS if early else ASK_SECONDS)
        for said in self._control.poll(seconds):
            sender = said.head if isinstance(said, HeadMessageReceived) else said.broker
            self._attempt(f"{type(said).__name__} of {sender}", partial(self._on_reply, said, time.monotonic()))
        if now >= self._status_at:
            if not self._stop:
                self._attempt("collectors", lambda: self._collectors.write_configs(self._brokers.values()))
            self._attempt("outcomes", lambda: self._collectors.send_ended_sessions(self._store))
            self._attempt("status", lambda: self._write_status(now))
        self._faults.settle()

    def _attempt(self, what: str, action: Callable[[], object]) -> bool:
        """Do what may have to write. A fleet that starts fails as a whole; one that runs goes on."""
        if self._is_ready or self._stop:
            return self._faults.attempt(what, action)
        action()
        return True

    def _follow(self, now: float) -> None:
        if self._reconciler.is_due():
            self._reconcile(now)

    def _on_reply(self, said: ControlEvent, now: float) -> None:
        if isinstance(said, MalformedReply) and said.times == 1:
            self._events.record_broker_event(said.broker, "Warning", "MalformedAnswer", said.message)
        if isinstance(said, StatusReceived) and ports.is_standby(said.broker):
            head = self._brokers.get(ports.head_of(said.broker))
            if isinstance(head, SupervisedHead):
                head.on_standby_status(said.status, now, self._events.record_broker_event)
            return
        if not isinstance(said, StatusReceived | LeadershipReceived | LoadReportReceived):
            return
        broker = self._brokers.get(said.broker)
        if broker is None or not broker.running:
            return
        if isinstance(said, StatusReceived):
            broker.on_status(said.status, now, self._events.record_broker_event)
        elif isinstance(said, LeadershipReceived) and isinstance(broker, SupervisedHead):
            broker.on_leadership(said.status, now)
        elif isinstance(said, LoadReportReceived):
            broker.on_load_report(said.report, now)

    def _reconcile(self, now: float) -> None:
        if self._reconciler.reconcile(now, is_ready=self._is_ready):
            self._ask_at = 0.0

    def _write_status(self, now: float) -> None:
        self._status_at = now + STATUS_SECONDS
        heads = [broker.observed(now) for broker in self._brokers.values() if broker.config.role == "head"]
        for event in self._log_events.since_last_look(heads):
            self._events.record_broker_event(*event)
        self._status.write(self._reconciler.resources, now)
        if self._metrics is not None:
            now_us = time.time_ns() // 1000
            self._metrics.update(self._feeds.figures(now_us), self._channels.figures(now_us))
        self._folder.mark_written()
