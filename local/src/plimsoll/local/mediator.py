"""The process that owns a fleet's sessions: `python -m plimsoll.local.mediator FOLDER PARENT-PID`.

One loop around `core.session.MediatorEngine`: stored objects, messages of heads and time go in; effects are stored,
sent or recorded, in order. It decides nothing, and all its state is in the store or is sent again by brokers. So it may
be killed at any time: the supervisor starts another one, with a higher epoch. While the store cannot be written, the
engine and its effects wait at the step that is to be stored.

An input that cannot be read for a fault of the program is left out, and said. A fault inside the engine ends this life,
since its state may be wrong: what is stored is right, and the next life begins with that.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from plimsoll.core.config import PeerBroker
from plimsoll.core.printable import is_told_again, printable
from plimsoll.core.session import (
    CreateSession,
    DeleteSession,
    Deposed,
    Effect,
    EmitEvent,
    EngineSettings,
    Event,
    FleetObserved,
    HeadMessage,
    MediatorEngine,
    SaveMemory,
    SaveSession,
    SendMessage,
    SessionDeleted,
    SessionUpserted,
    Tick,
)
from plimsoll.core.session.context.cluster_memories import stored_memory
from plimsoll.core.spec import InvalidResourcesError
from plimsoll.core.spec.kinds import BrokerFleetSpec
from plimsoll.core.spec.parser import parse_each
from plimsoll.core.spec.problems import SourceDocument
from plimsoll.local import keys
from plimsoll.local.storage import mediator_epoch
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import (
    ChangesExpiredError,
    Object,
    ObjectChange,
    ObjectConflictError,
    ObjectMissingError,
    ObjectStore,
    UnwritableObjectError,
)
from plimsoll.local.storage.state_files import StateWriteError, is_write_fault
from plimsoll.local.timestamps import rfc3339_now
from plimsoll.mediator import fleet_view, session_objects
from plimsoll.mediator.control_plane import (
    ControlEvent,
    ControlPlane,
    HeadMessageReceived,
    LeadershipReceived,
    ListingReceived,
    LoadReportReceived,
    MalformedReply,
    StatusReceived,
)
from plimsoll.mediator.steady_clock import SteadyClock

ROUND_SECONDS = 0.05
ASK_SECONDS = 0.5
TEXT_AT_MOST = 500
"""Of what an event says about a fault of the program."""
RETRY_SECONDS = 0.5
"""How long the mediator waits when the store could not be written."""


class LocalMediatorRunner:
    """One life of a mediator. Times of sessions are in seconds since 1970, all others of a monotonic clock."""

    def __init__(self, folder: FleetFolder, store: ObjectStore, parent: int) -> None:
        self._folder, self._store, self._parent = folder, store, parent
        self._fleet = folder.fleet
        spec = _fleet_spec(store, self._fleet)
        factor = spec.time_scale_percent / 100
        self._fleet_view = fleet_view.FleetReadings(spec.telemetry.report_interval.seconds * factor)
        self.epoch = mediator_epoch.claim_next_epoch(store, self._fleet)
        self._version, items = store.objects(session_objects.SESSION_KIND)
        stored = [record for item in items if (record := session_objects.stored_session(item)) is not None]
        self._mediator = MediatorEngine(self.epoch, stored, EngineSettings(time_factor=factor))
        curve = keys.control_keys(folder, keys.MEDIATOR, plain=spec.security.plain)
        self._control = ControlPlane(keys.MEDIATOR, curve, self.epoch)
        self._seen_generations: dict[str, tuple[str, int, bool]] = {}
        self._cordoned: frozenset[str] | None = None
        self._events: deque[Event | EmitEvent] = deque()
        self._effects: deque[Effect] = deque()
        self._saves: tuple[list[SaveSession], float] | None = None
        self._fault, self._clock = "", SteadyClock()
        self._broken: Counter[str] = Counter()
        self._ask_at = self._view_at = 0.0
        self._stop = False
        for item in items:
            self._attempt("an object of a session", partial(self._on_object, item))

    def stop(self) -> None:
        """End at the next round. Safe in a signal handler."""
        self._stop = True

    def run(self) -> None:
        """Work until `stop`, or until the supervisor is gone.

        Raises:
            LocalMediatorDeposedError: another mediator has taken over.
            ObjectMissingError: an object went away while its session was being stored.

        """
        try:
            while not self._stop and os.getppid() == self._parent:
                self._run_round()
        finally:
            self.close()

    def _run_round(self) -> None:
        """One round, or a pause if the store cannot be written; each change of that is logged once."""
        try:
            self.run_once()
        except StateWriteError as error:
            if not self._fault:
                write_log(f"{error}; sessions wait until that is done")
            self._fault = str(error)
            time.sleep(RETRY_SECONDS)
        else:
            if self._fault:
                self._fault = ""
                write_log("the store is written again; sessions go on")

    def close(self) -> None:
        self._control.close()

    def run_once(self) -> None:
        """One round; raises as `run` does, and `StateWriteError`: then the next round starts where this one waits."""
        self._advance()
        now = time.monotonic()
        if self._store.version() != self._version:
            self._watch()
            self._advance()
        if now >= self._ask_at:
            self._ask_at = now + ASK_SECONDS
            for peer in fleet_view.head_peers(self._store.objects("BrokerCluster")[1]):
                self._attempt(f"the connection to {peer.name}", partial(self._ask, peer))
        for said in self._control.poll(ROUND_SECONDS):
            sender = said.head if isinstance(said, HeadMessageReceived) else said.broker
            self._attempt(f"{type(said).__name__} of {sender}", partial(self._on_reply, said, time.monotonic()))
        self._advance()
        if now >= self._view_at:
            self._view_at = now + self._fleet_view.view_seconds
            self._attempt("the view of the fleet", partial(self._observe_fleet, now))
        self._handle(Tick())
        self._advance()

    def _attempt(self, what: str, action: Callable[[], object]) -> None:
        """Take an input; one that cannot be read for a fault of the program is left out, and ever more rarely said."""
        try:
            action()
        except StateWriteError:
            raise  # the round waits
        except Exception as error:  # noqa: BLE001  # sessions outlive an input that cannot be read
            self._broken[what] += 1
            if is_told_again(times := self._broken[what]):
                text = f"{what} failed ({times} times so far), and sessions go on: {type(error).__name__}: {error}"
                text = printable(text[:TEXT_AT_MOST])
                write_log(text)
                self._store.record("BrokerFleet", self._fleet, "Warning", "PartFailed", text, rfc3339_now())

    def _ask(self, peer: PeerBroker) -> None:
        self._control.dial(peer, "head")
        self._control.ask(peer.name)

    def _observe_fleet(self, now: float) -> None:
        items = self._store.objects(*fleet_view.VIEWED_KINDS)[1]
        self._handle(FleetObserved(fleet_view.build_view(items, self._fleet_view, now)))

    def _on_reply(self, said: ControlEvent, now: float) -> None:
        if isinstance(said, StatusReceived):
            if self._fleet_view.note_answer(said.broker, said.status, now):
                self._view_at = 0.0
        elif isinstance(said, LoadReportReceived):
            self._fleet_view.note_report(said.broker, said.report, now)
        elif isinstance(said, MalformedReply | ListingReceived | LeadershipReceived):
            return  # the supervisor gets the same reply, and reports it; listings and leaders are not asked for here
        else:
            self._handle(HeadMessage(said.head, said.said))

    # -- changes of the store

    def _watch(self) -> None:
        try:
            version = self._store.version()
            changes = self._store.changes(self._version, session_objects.SESSION_KIND)
            self._version = max([version, *(change.version for change in changes)])
        except ChangesExpiredError:
            changes = self._relist()
        for change in changes:
            take = self._on_object if change.type != "DELETED" else self._on_deleted_object
            self._attempt("an object of a session", partial(take, change.object))

    def _relist(self) -> list[ObjectChange]:
        """All objects as changes, deletions first: the store no longer keeps the changes that were missed."""
        self._version, items = self._store.objects(session_objects.SESSION_KIND)
        for uid in self._seen_generations.keys() - {item["metadata"]["uid"] for item in items}:
            self._on_deleted(uid)
        return [ObjectChange(self._version, "MODIFIED", item["kind"], item["metadata"]["name"], item) for item in items]

    def _on_deleted_object(self, item: Object) -> None:
        self._on_deleted(item["metadata"]["uid"])

    def _on_deleted(self, uid: str) -> None:
        self._seen_generations.pop(uid, None)
        self._handle(SessionDeleted(uid))

    def _on_object(self, item: Object) -> None:
        """Hand an object to the engine, unless only its status has changed, which this process writes itself."""
        metadata = item["metadata"]
        asked = (metadata["name"], int(metadata["generation"]), "deletionTimestamp" in metadata)
        if self._seen_generations.get(metadata["uid"]) == asked:
            return
        self._seen_generations[metadata["uid"]] = asked
        try:
            request = session_objects.session_request(item)
        except InvalidResourcesError as error:
            self._events.append(EmitEvent(metadata["uid"], metadata["name"], "Warning", "InvalidSpec", str(error)))
            return
        self._handle(SessionUpserted(request))

    # -- effects

    def _handle(self, event: Event) -> None:
        """Queue an event for `_advance`; a round queues what it has read, and nothing while an earlier one waits."""
        self._events.append(event)

    def _advance(self) -> None:
        """Handle the queued events in order: of each, first store the sessions, then carry out the other effects.

        Raises:
            StateWriteError: what could not be stored, and all behind it, is still queued.

        """
        while self._finish_effects() and self._events:
            event = self._events.popleft()
            now = self._clock.now(is_busy=self._mediator.is_busy)
            effects = [event] if isinstance(event, EmitEvent) else self._ask_engine(event, now)
            self._effects.extend(effects)
            saves = [effect for effect in effects if isinstance(effect, SaveSession)]
            if saves or self._cordoned != self._mediator.cordoned:
                self._saves = saves, now

    def _ask_engine(self, event: Event, now: float) -> list[Effect]:
        try:
            return self._mediator.handle(event, now)
        except Exception as error:
            what = f"{type(event.message).__name__} of {event.head}" if isinstance(event, HeadMessage) else "an input"
            text = printable(f"{type(error).__name__}: {error}")[:TEXT_AT_MOST]
            error.add_note(f"{text}, at {what} ({type(event).__name__}); the next life begins with what is stored")
            raise

    def _finish_effects(self) -> bool:
        """Carry out what the last event asked for; always true, or raises."""
        if self._saves is not None:
            self._save(*self._saves)
            self._saves = None
        while self._effects:
            self._execute(self._effects[0])
            self._effects.popleft()
        return True

    def _save(self, saves: Sequence[SaveSession], now: float) -> None:
        """Save in one transaction, and only as the present mediator, since later effects depend on it."""
        cordoned = self._mediator.cordoned
        with self._store.transaction():
            mediator_epoch.check_epoch(self._store, self._fleet, self.epoch)
            for save in saves:
                status = partial(_with_status, session_objects.stored_status(save.session, now))
                stored = self._store.set_status(session_objects.SESSION_KIND, save.session.name, status)
                if stored["metadata"]["uid"] != save.session.uid:
                    raise ObjectMissingError(f"session {save.session.name} was deleted and created again")
            self._save_cordoned(cordoned)
        self._cordoned = cordoned

    def _save_cordoned(self, cordoned: frozenset[str]) -> None:
        """Store which edges take no new subscribers; the supervisor sends that to the heads."""
        if cordoned != self._cordoned:

            def change(item: dict[str, Any]) -> dict[str, Any]:
                return {**item.get("status", {}), "draining": sorted(cordoned)}

            self._store.set_status("BrokerFleet", self._fleet, change)

    def _execute(self, effect: Effect) -> None:
        match effect:
            case SendMessage(head, record):
                self._control.send(head, record)
            case EmitEvent(_, name, type_, reason, message):
                self._store.record(session_objects.SESSION_KIND, name, type_, reason, message, rfc3339_now())
            case CreateSession():
                self._create(effect)
            case SaveMemory(cluster, policy, memory):
                self._remember(cluster, stored_memory(policy, memory))
            case DeleteSession(uid, name):
                self._delete_with_children(uid, name)
            case Deposed(epoch):
                mediator_epoch.record_higher_epoch(self._store, self._fleet, epoch)
                raise mediator_epoch.LocalMediatorDeposedError(
                    f"mediator epoch {self.epoch} is over: a head obeys {epoch}"
                )

    def _remember(self, cluster: str, value: dict[str, Any]) -> None:
        def change(item: dict[str, Any]) -> dict[str, Any]:
            return {**item.get("status", {}), "policyMemory": value}

        with self._store.transaction():
            mediator_epoch.check_epoch(self._store, self._fleet, self.epoch)
            with contextlib.suppress(ObjectMissingError):  # the cluster is gone, and there is nothing to remember
                try:
                    self._store.set_status("BrokerCluster", cluster, change)
                except UnwritableObjectError as error:  # what was remembered before stays
                    self._store.record("BrokerCluster", cluster, "Warning", "PartFailed", str(error), rfc3339_now())

    def _create(self, effect: CreateSession) -> None:
        try:
            self._store.create(session_objects.child_object(effect), rfc3339_now())
        except ObjectConflictError:  # it exists: the store's changes will show it
            return

    def _delete_with_children(self, uid: str, name: str) -> None:
        """Delete an object, and request the deletion of those that it owns."""
        with self._store.transaction():
            items = self._store.objects(session_objects.SESSION_KIND)[1]
            for item in items:
                if item["metadata"]["uid"] == uid:
                    self._store.delete(session_objects.SESSION_KIND, name)
                elif session_objects.parent_uid(item) == uid:
                    self._store.mark_deleted(session_objects.SESSION_KIND, item["metadata"]["name"], rfc3339_now())


def _with_status(status: dict[str, Any], item: Object) -> dict[str, Any]:
    """Replace a session's status whole: only the mediator writes it."""
    return status


def _fleet_spec(store: ObjectStore, fleet: str) -> BrokerFleetSpec:
    resources, problems = parse_each([SourceDocument(store.get("BrokerFleet", fleet), "<store>")])
    if problems:
        raise InvalidResourcesError(problems)
    spec = resources[0].spec
    if not isinstance(spec, BrokerFleetSpec):
        raise TypeError("a BrokerFleet has the specification of one")
    return spec


def main(arguments: Sequence[str]) -> int:
    """Run one life; the exit code. It ends with the process that started it."""
    folder, parent = FleetFolder(Path(arguments[0])), int(arguments[1])
    try:
        _run(folder, parent)
    except (mediator_epoch.LocalMediatorDeposedError, ObjectMissingError, StateWriteError) as error:
        write_log(str(error))
        return 1
    return 0


def _run(folder: FleetFolder, parent: int) -> None:
    with ObjectStore(folder.store) as store:
        shell = _begin_life(folder, store, parent)

        def stop(number: int, frame: FrameType | None) -> None:
            shell.stop()

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, stop)
        write_log(f"mediator of {folder.fleet}: epoch {shell.epoch}")
        shell.run()


def _begin_life(folder: FleetFolder, store: ObjectStore, parent: int) -> LocalMediatorRunner:
    """A mediator with an epoch of its own; waits while that cannot be stored. Signals end the process meanwhile."""
    fault = ""
    while True:
        try:
            return LocalMediatorRunner(folder, store, parent)
        except StateWriteError as error:
            if os.getppid() != parent:
                raise
            if not fault:
                write_log(f"{error}; the mediator starts as soon as that is done")
            fault = str(error)
            time.sleep(RETRY_SECONDS)


def write_log(line: str) -> None:
    """Write one line to standard output, which is the log; if its disk is full, the line is dropped."""
    try:
        sys.stdout.write(printable(line) + "\n")
        sys.stdout.flush()
    except OSError as error:
        if not is_write_fault(error):
            raise


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
