"""One fleet's mediator on Kubernetes: an asyncio shell around `core.session.MediatorEngine`.

It feeds the engine with objects, messages of heads and time, and carries out the effects in order: a status is stored
before any command that depends on it is sent. It decides nothing, and all its state is stored or can be queried again,
so it may be killed at any time. While the API server is away no session proceeds; brokers are still polled.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import assert_never

from plimsoll.core import session as core
from plimsoll.core.session.context.cluster_memories import stored_memory
from plimsoll.core.spec import InvalidResourcesError
from plimsoll.core.spec.kinds import BrokerFleetSpec
from plimsoll.mediator import fleet_view, session_objects
from plimsoll.mediator.control_plane import HeadMessageReceived, MalformedReply, MediatorKeyPair
from plimsoll.mediator.steady_clock import SteadyClock
from plimsoll.operator.api import Api, ApiConflictError, ApiNotFoundError, Object
from plimsoll.operator.mediator import epochs
from plimsoll.operator.mediator.broker_poller import BrokerPoller
from plimsoll.operator.mediator.epochs import OperatorDeposedError
from plimsoll.operator.mediator.event_queue import KubernetesEventQueue
from plimsoll.operator.mediator.lease import Lease, LeaseLostError, lease_name
from plimsoll.operator.mediator.session_changes import SessionChanges
from plimsoll.operator.mediator.session_store import ApiSessionStore, LoadedSessions, SessionOverwrittenError
from plimsoll.operator.names import MEDIATOR
from plimsoll.operator.objects.manifest import object_of_broker, owner
from plimsoll.operator.session_metrics import SessionMetrics
from plimsoll.operator.tasks import cancel_tasks

LEASE_SECONDS = 15.0
TICK_SECONDS = 0.05
IDLE_TICK_SECONDS = 0.25
INBOX_LIMIT = 5000
TURN_SECONDS = 0.5
"""Time for new and changed sessions in one turn. The rest waits: messages of heads and the view come in between."""

log = logging.getLogger(__name__)


class FleetMediator:
    """One fleet's mediator: `run` is one asyncio task, all else may be called at any time on the same loop.

    `spec` is read once: after a change of the fleet's clock or report interval a new mediator is made. A Lease lets
    only one operator mediate at a time; with `lease_seconds` 0 there is none, and epochs alone keep two apart.
    `brokers` holds the connections to the brokers, and their last messages.
    """

    def __init__(
        self,
        api: Api,
        namespace: str,
        fleet: str,
        curve: MediatorKeyPair | None,
        spec: BrokerFleetSpec,
        *,
        lease_seconds: float = LEASE_SECONDS,
        metrics: SessionMetrics | None = None,
        release: str = "",
    ) -> None:
        self._api, self._namespace, self._fleet, self._curve, self._spec = api, namespace, fleet, curve, spec
        self._lease_seconds, self._metrics, self._release = lease_seconds, metrics, release
        self._objects: Sequence[Object] = ()
        self._loads: Callable[[], fleet_view.TelemetryLoads | None] = lambda: None
        self._inbox: deque[HeadMessageReceived] = deque()
        self._changes = SessionChanges(self._known_session)
        self._wake = asyncio.Event()
        self._events = KubernetesEventQueue(api)
        self.brokers = BrokerPoller(self._receive_head_message, self._receive_malformed, self._renew_view)
        self._view_at, self._clock = 0.0, SteadyClock()
        self._store = ApiSessionStore(api, namespace)
        self._mediator: core.MediatorEngine | None = None
        self._lease: Lease | None = None
        self.epoch = 0
        self.epochs_begun = 0

    # -- input of the reconciler

    def update_objects(self, objects: Sequence[Object]) -> None:
        """Show it the fleet, its clusters, edges and profiles as they are now."""
        self._objects = tuple(item for item in objects if item["kind"] in fleet_view.VIEWED_KINDS)
        self._renew_view()

    def session_changed(self, type_: str, item: Object) -> None:
        """Queue a LoadBalancingSession that a watch has shown."""
        self._changes.put(type_, item)
        self._wake.set()

    def use_telemetry_loads(self, loads: Callable[[], fleet_view.TelemetryLoads | None]) -> None:
        """Compare clusters by these averages; while `loads` returns None, by the reports of their heads."""
        self._loads = loads

    # -- state

    @property
    def may_be_deposed(self) -> bool:
        """Whether it has mediated, and has not reached the API server for longer than its lease lasts."""
        return self.epochs_begun > 0 and self._lease is not None and not self._lease.is_fresh

    @property
    def sessions(self) -> Mapping[str, core.Session]:
        """All sessions of the present epoch, by uid."""
        return self._mediator.sessions if self._mediator is not None else {}

    # -- one epoch after the other

    async def run(self) -> None:
        """Mediate until cancelled.

        Raises:
            OperatorDeposedError: another mediator has taken over; nothing more is written or sent.
            ApiNotFoundError: there is no such fleet.
            ApiError: the API server refuses what the mediator has to write.

        """
        if not self._lease_seconds:
            await self._mediate()
        name = lease_name(self._fleet)
        fleet = await self._api.get(epochs.FLEET_KIND, self._namespace, self._fleet, retry=True)
        lease = Lease(
            self._api, self._namespace, name, self._api.instance, self._lease_seconds, owner=owner(fleet),
            release=self._release,
        )  # fmt: skip
        self._lease = lease
        try:
            await lease.run_while_held(self._mediate())
        except LeaseLostError as error:
            raise OperatorDeposedError(str(error)) from error

    async def _mediate(self) -> None:
        writing = asyncio.create_task(self._events.run())
        try:
            while True:
                try:
                    await self._run_epoch(writing)
                except SessionOverwrittenError as error:
                    log.warning(
                        "fleet %s/%s: %s; starting a new epoch with what is stored", self._namespace, self._fleet, error
                    )
        finally:
            await cancel_tasks(writing)

    async def _run_epoch(self, writing: asyncio.Task[None]) -> None:
        loaded = await self._start_epoch()
        self.brokers.open(MEDIATOR, self._curve, self.epoch)
        polling = asyncio.create_task(self.brokers.run())
        try:
            for item, why in loaded.lost:
                self._events.emit(item, "Warning", "PlanLost", f"the session is planned again from the start: {why}")
            await self._adopt(loaded.items)
            while True:
                await self._process_inbox()
                for task in (polling, writing):
                    if task.done():
                        task.result()
        finally:
            await cancel_tasks(polling)
            self.brokers.close()

    async def _start_epoch(self) -> LoadedSessions:
        """Begin a new epoch; all sessions that lower ones have stored."""
        above = 0
        while True:
            self.epoch = await epochs.raise_epoch(self._api, self._namespace, self._fleet, above)
            self._store = ApiSessionStore(self._api, self._namespace, self.epoch)
            loaded = await self._store.load()
            batches = [batch.epoch for session in loaded.sessions for batch in session.batches]
            above = max([*(epochs.epoch_of(item) for item in loaded.items), *batches], default=0)
            if above < self.epoch:  # else the fleet was deleted and created again, or another mediator has begun
                break
        fleet = await self._api.get(epochs.FLEET_KIND, self._namespace, self._fleet, retry=True)
        factor = self._spec.time_scale_percent / 100
        self.brokers.known.report_seconds = self._spec.telemetry.report_interval.seconds * factor
        self._mediator = core.MediatorEngine(self.epoch, loaded.sessions, core.EngineSettings(time_factor=factor))
        self._view_at = 0.0
        self.brokers.draining = frozenset(fleet.get("status", {}).get("draining", []))
        self._changes.restart()
        self.epochs_begun += 1
        log.info("fleet %s/%s: mediator epoch %d", self._namespace, self._fleet, self.epoch)
        return loaded

    async def _adopt(self, items: Sequence[Object]) -> None:
        """Take over the open sessions: once they bear this epoch, no earlier mediator can write them."""
        now = self._clock.now(is_busy=True)
        sessions = self.sessions
        for item in items:
            session = sessions.get(item["metadata"]["uid"])
            if session is not None and not session.is_over:
                with contextlib.suppress(ApiNotFoundError):  # deleted meanwhile: its watch event follows
                    await self._store.save(session, now)
        for item in items:  # those that wait come one by one, so that they keep no others waiting
            session = sessions.get(item["metadata"]["uid"])
            if session is not None and session.is_running:
                await self._upsert_session(item)
            else:
                self.session_changed("MODIFIED", item)

    # -- messages of brokers

    def _renew_view(self) -> None:
        """Have the next turn show the engine the fleet again."""
        self._view_at = 0.0
        self._wake.set()

    def _receive_head_message(self, message: HeadMessageReceived) -> None:
        if len(self._inbox) < INBOX_LIMIT:  # full while nothing can be stored; heads repeat what is dropped here
            self._inbox.append(message)
            self._wake.set()

    def _receive_malformed(self, reply: MalformedReply) -> None:
        """Count each malformed reply, and report the first of a kind: brokers repeat themselves twice a second."""
        if self._metrics is not None:
            self._metrics.malformed.labels(reply.field).inc()
        if reply.times > 1:
            return
        log.warning("fleet %s/%s: %s", self._namespace, self._fleet, reply.message)
        unknown = {
            "metadata": {"namespace": self._namespace, "name": self._fleet, "uid": ""},
            "kind": epochs.FLEET_KIND,
        }
        about = object_of_broker(self._objects, reply.broker) or unknown
        self._events.emit(about, "Warning", "MalformedAnswer", reply.message)

    # -- acting

    async def _process_inbox(self) -> None:
        """Wait for input or the next tick, then hand everything received to the engine."""
        is_busy = self._mediator is not None and self._mediator.is_busy
        with contextlib.suppress(TimeoutError):  # nothing has come: the engine still wants its tick
            async with asyncio.timeout(TICK_SECONDS if is_busy else IDLE_TICK_SECONDS):
                await self._wake.wait()
        self._wake.clear()
        for item in self._objects:
            if item["kind"] == epochs.FLEET_KIND:
                epochs.check_epoch(item, self.epoch)
                if epochs.is_out_of_bounds(item):
                    await epochs.raise_epoch_to(self._api, self._namespace, self._fleet, self.epoch)
        for _ in range(len(self._inbox)):
            await self._observe_fleet()
            message = self._inbox.popleft()
            await self._handle(core.HeadMessage(message.head, message.said))
        await self._take_changes()
        await self._observe_fleet()
        await self._handle(core.Tick())

    async def _observe_fleet(self) -> None:
        """Show the engine the fleet if it is due. Events wait for the API server, so it is asked often."""
        now = time.monotonic()
        if now >= self._view_at and self._objects:
            self._view_at = now + self.brokers.known.view_seconds
            await self._handle(
                core.FleetObserved(fleet_view.build_view(self._objects, self.brokers.known, now, self._loads()))
            )

    async def _take_changes(self) -> None:
        """Take changed sessions in the order of their turns, as many as there is time for."""
        until = time.monotonic() + TURN_SECONDS
        for uid in self._changes.in_turn():
            await self._observe_fleet()
            change = self._changes.waiting.pop(uid)
            if change.type == "DELETED":
                await self._session_deleted(uid)
            else:
                await self._upsert_session(change.item)
            if time.monotonic() >= until:
                break
        if self._changes.waiting:
            self._wake.set()

    def _known_session(self, uid: str) -> core.Session | None:
        return self._mediator.session(uid) if self._mediator is not None else None

    async def _upsert_session(self, item: Object) -> None:
        """Hand a session's spec to the engine, unless only the status changed or the watch is behind."""
        if not self._changes.is_news(item):
            return
        leaves = "deletionTimestamp" in item["metadata"] and session_objects.is_over(item)
        if leaves and self._known_session(item["metadata"]["uid"]) is None:
            return  # it was dropped when it was deleted; another's finalizer keeps the object, and its outcome stays
        try:
            request = session_objects.session_request(item)
        except InvalidResourcesError as error:
            message = " ".join(problem.sentence for problem in error.problems[:3])
            self._events.emit(item, "Warning", "InvalidSpec", message)
            await self._store.note_invalid(item, message, time.time())
            return
        self._store.note(item)
        await self._handle(core.SessionUpserted(request))

    async def _session_deleted(self, uid: str) -> None:
        self._changes.forget(uid)
        self._store.forget(uid)
        if self._metrics is not None:
            self._metrics.forget(uid)
        await self._handle(core.SessionDeleted(uid))

    async def _handle(self, event: core.Event) -> None:
        """Give the engine an event and carry out its effects, those that store before those that send."""
        mediator = self._mediator
        if mediator is None:
            raise AssertionError("events are handled within an epoch")
        now = self._clock.now(is_busy=mediator.is_busy)
        effects = await asyncio.to_thread(mediator.handle, event, now)
        missing = [save.session.uid for save in _saves(effects) if not await self._save(save, now)]
        if self.brokers.draining != mediator.cordoned:
            await epochs.write_draining(self._api, self._namespace, self._fleet, self.epoch, mediator.cordoned)
            self.brokers.draining = mediator.cordoned
        for effect in effects:
            # Later commands depend on the state to be stored: without it, a successor would not know of them.
            if not (missing and isinstance(effect, core.SendMessage)):
                await self._perform(effect)
        for uid in missing:
            await self._session_deleted(uid)

    async def _save(self, save: core.SaveSession, now: float) -> bool:
        """Store a session; False if its object has gone."""
        try:
            item = await self._store.save(save.session, now)
        except ApiNotFoundError:
            return False
        if self._metrics is not None:
            self._metrics.observe(save.session, now)
        if int(item["metadata"]["generation"]) > save.session.generation:
            self.session_changed("MODIFIED", item)
        return True

    async def _perform(self, effect: core.Effect) -> None:
        match effect:
            case core.SendMessage(head, record):
                self.brokers.send(head, record)
            case core.EmitEvent(uid, name):
                self._events.put(
                    self._store.item(uid) or _reference(session_objects.SESSION_KIND, self._namespace, name, uid),
                    effect,
                )
            case core.CreateSession():
                with contextlib.suppress(ApiConflictError):  # an earlier epoch created it; its watch event follows
                    await self._api.create(self._child(effect), retry=True)
            case core.DeleteSession(uid, name):
                await self._delete_session(uid, name)
            case core.SaveMemory(cluster, policy, memory):
                with contextlib.suppress(ApiNotFoundError):  # the cluster is gone, and there is nothing to remember
                    value = stored_memory(policy, memory)
                    await epochs.write_memory(self._api, self._namespace, cluster, self.epoch, value)
            case core.SaveSession():
                pass  # stored before everything else
            case core.Deposed(epoch):
                # Recorded before giving up: the next epoch must be higher than the one that the head obeys.
                await epochs.raise_epoch_to(self._api, self._namespace, self._fleet, epoch)
                raise OperatorDeposedError(f"mediator epoch {self.epoch} is over: a head obeys epoch {epoch}")
            case _:
                assert_never(effect)

    def _child(self, effect: core.CreateSession) -> Object:
        item = session_objects.child_object(effect)
        return {**item, "metadata": {**item["metadata"], "namespace": self._namespace}}

    async def _delete_session(self, uid: str, name: str) -> None:
        """Delete a session's object; the garbage collector deletes what it owns."""
        with contextlib.suppress(ApiNotFoundError, ApiConflictError):  # it is gone, or another object has its name
            await self._api.delete(session_objects.SESSION_KIND, self._namespace, name, uid=uid, retry=True)
        await self._session_deleted(uid)


def _saves(effects: Sequence[core.Effect]) -> Iterator[core.SaveSession]:
    return (effect for effect in effects if isinstance(effect, core.SaveSession))


def _reference(kind: str, namespace: str, name: str, uid: str = "") -> Object:
    """The object of an Event, by reference, when the object itself is not at hand."""
    return {"kind": kind, "metadata": {"namespace": namespace, "name": name, "uid": uid}}
