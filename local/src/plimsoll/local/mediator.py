"""The process that owns a fleet's sessions: `python -m plimsoll.local.mediator FOLDER PARENT-PID`.

One loop around `core.session.Mediator`: objects of the store, answers and reports of heads, and time go in; what comes
out is stored, sent or noted, in order. It decides nothing, and holds no state that is not in the store or heard again.
So it may be killed at any time: the supervisor starts another one, which speaks with a higher epoch.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from plimsoll.core.session import (
    Asked,
    Create,
    Deleted,
    Deposed,
    Effect,
    Event,
    Forget,
    Heard,
    Mediator,
    Save,
    Send,
    Settings,
    Tell,
    Ticked,
    Viewed,
)
from plimsoll.core.spec import InvalidResourcesError
from plimsoll.core.spec.kinds import BrokerFleetSpec
from plimsoll.core.spec.parsing import read
from plimsoll.core.spec.problems import Document
from plimsoll.local import epochs, keys
from plimsoll.local.home import FleetFolder
from plimsoll.local.store import Change, ConflictError, ExpiredError, MissingError, Object, Store
from plimsoll.local.times import now_text
from plimsoll.mediator import sessions, views
from plimsoll.mediator.control import Answered, ControlPlane, Curve, Malformed, Reported, Said

ROUND_SECONDS = 0.05
ASK_SECONDS = 0.5
VIEW_SECONDS = 1.0


class Shell:
    """One life of a mediator. Times are in seconds since 1970 for sessions, and of a monotonic clock for the rest."""

    def __init__(self, folder: FleetFolder, store: Store, parent: int) -> None:
        self._folder, self._store, self._parent = folder, store, parent
        self._fleet = folder.fleet
        spec = _fleet_spec(store, self._fleet)
        factor = spec.time_scale_percent / 100
        self._known = views.Known(spec.telemetry.report_interval.seconds * factor)
        self.epoch = epochs.raise_epoch(store, self._fleet)
        self._version, items = store.objects(sessions.KIND)
        stored = [record for item in items if (record := sessions.record(item)) is not None]
        self._mediator = Mediator(self.epoch, stored, Settings(time_factor=factor))
        self._control = ControlPlane(keys.MEDIATOR, None if spec.security.plain else _curve(folder), self.epoch)
        self._asked: dict[str, tuple[str, int, bool]] = {}
        self._cordoned: frozenset[str] | None = None
        self._ask_at = self._view_at = 0.0
        self._stop = False
        for item in items:
            self._ask_for(item)

    def stop(self) -> None:
        """End at the next round. Safe in a signal handler."""
        self._stop = True

    def run(self) -> None:
        """Work until `stop`, or until the supervisor is gone.

        Raises:
            DeposedError: another mediator has taken over.
            MissingError: an object went away while its session was being stored.

        """
        try:
            while not self._stop and os.getppid() == self._parent:
                self.run_once()
        finally:
            self.close()

    def close(self) -> None:
        self._control.close()

    def run_once(self) -> None:
        """One round; raises as `run` does."""
        now = time.monotonic()
        if self._store.version() != self._version:
            self._watch()
        if now >= self._ask_at:
            self._ask_at = now + ASK_SECONDS
            for peer in views.heads(self._store.objects("BrokerCluster")[1]):
                self._control.dial(peer, "head")
                self._control.ask(peer.name)
        for said in self._control.poll(ROUND_SECONDS):
            self._heard(said, time.monotonic())
        if now >= self._view_at:
            self._view_at = now + VIEW_SECONDS
            self._handle(Viewed(views.view(self._store.objects(*views.KINDS)[1], self._known, now)))
        self._handle(Ticked())

    def _heard(self, said: Said, now: float) -> None:
        if isinstance(said, Answered):
            if self._known.answered(said.broker, said.status, now):
                self._view_at = 0.0
        elif isinstance(said, Reported):
            self._known.reported(said.broker, said.report, now)
        elif isinstance(said, Malformed):
            return  # the supervisor, which hears the same, says so
        else:
            self._handle(Heard(said.head, said.said))

    # -- what the store says

    def _watch(self) -> None:
        try:
            version = self._store.version()
            changes = self._store.changes(self._version, sessions.KIND)
            self._version = max([version, *(change.version for change in changes)])
        except ExpiredError:
            changes = self._missed()
        for change in changes:
            if change.type == "DELETED":
                self._gone(change.object["metadata"]["uid"])
            else:
                self._ask_for(change.object)

    def _missed(self) -> list[Change]:
        """More has changed than the store keeps: all that is there, after all that is not."""
        self._version, items = self._store.objects(sessions.KIND)
        for uid in self._asked.keys() - {item["metadata"]["uid"] for item in items}:
            self._gone(uid)
        return [Change(self._version, "MODIFIED", item["kind"], item["metadata"]["name"], item) for item in items]

    def _gone(self, uid: str) -> None:
        self._asked.pop(uid, None)
        self._handle(Deleted(uid))

    def _ask_for(self, item: Object) -> None:
        """Take notice of an object, unless only its status has changed, which is our own doing."""
        metadata = item["metadata"]
        asked = (metadata["name"], int(metadata["generation"]), "deletionTimestamp" in metadata)
        if self._asked.get(metadata["uid"]) == asked:
            return
        self._asked[metadata["uid"]] = asked
        try:
            request = sessions.request(item)
        except InvalidResourcesError as error:
            self._store.record(sessions.KIND, metadata["name"], "Warning", "InvalidSpec", str(error), now_text())
            return
        self._handle(Asked(request))

    # -- what is to be done

    def _handle(self, event: Event) -> None:
        now = time.time()
        effects = self._mediator.handle(event, now)
        saves = [effect for effect in effects if isinstance(effect, Save)]
        if saves or self._cordoned != self._mediator.cordoned:
            self._save(saves, now)
        for effect in effects:
            self._carry_out(effect)

    def _save(self, saves: Sequence[Save], now: float) -> None:
        """All in one step, and only as the present mediator: what follows rests on it."""
        with self._store.transaction():
            epochs.check(self._store, self._fleet, self.epoch)
            for save in saves:
                status = partial(_always, sessions.stored(save.session, now))
                stored = self._store.set_status(sessions.KIND, save.session.name, status)
                if stored["metadata"]["uid"] != save.session.uid:
                    raise MissingError(f"the object of session {save.session.name} has been made anew")
            self._keep_out(self._mediator.cordoned)

    def _keep_out(self, cordoned: frozenset[str]) -> None:
        """Say which edges take no newcomers: the supervisor tells the heads."""
        if cordoned != self._cordoned:
            self._cordoned = cordoned

            def change(item: dict[str, Any]) -> dict[str, Any]:
                return {**item.get("status", {}), "draining": sorted(cordoned)}

            self._store.set_status("BrokerFleet", self._fleet, change)

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Send(head, record):
                self._control.send(head, record)
            case Tell(_, name, type_, reason, message):
                self._store.record(sessions.KIND, name, type_, reason, message, now_text())
            case Create():
                self._create(effect)
            case Forget(uid, name):
                self._forget(uid, name)
            case Deposed(epoch):
                epochs.raise_to(self._store, self._fleet, epoch)
                raise epochs.DeposedError(f"mediator epoch {self.epoch} is over: a head obeys {epoch}")

    def _create(self, effect: Create) -> None:
        try:
            self._store.create(sessions.child(effect), now_text())
        except ConflictError:  # it is there: it will be asked for
            return

    def _forget(self, uid: str, name: str) -> None:
        """Delete an object, and ask for the deletion of those that it owns."""
        with self._store.transaction():
            items = self._store.objects(sessions.KIND)[1]
            for item in items:
                if item["metadata"]["uid"] == uid:
                    self._store.delete(sessions.KIND, name)
                elif sessions.parent(item) == uid:
                    self._store.mark_deleted(sessions.KIND, item["metadata"]["name"], now_text())


def _always(status: dict[str, Any], item: Object) -> dict[str, Any]:
    """A session's status is the mediator's alone: it does not follow from what it was."""
    return status


def _fleet_spec(store: Store, fleet: str) -> BrokerFleetSpec:
    resources, problems = read([Document(store.get("BrokerFleet", fleet), "<store>")])
    if problems:
        raise InvalidResourcesError(problems)
    spec = resources[0].spec
    if not isinstance(spec, BrokerFleetSpec):
        raise TypeError("a BrokerFleet has the specification of one")
    return spec


def _curve(folder: FleetFolder) -> Curve:
    pair = keys.pair(folder, keys.MEDIATOR)
    return Curve(pair.public, pair.secret())


def main(arguments: Sequence[str]) -> int:
    """Run one life; the exit code. It ends with the process that started it."""
    folder, parent = FleetFolder(Path(arguments[0])), int(arguments[1])
    with Store(folder.store) as store:
        shell = Shell(folder, store, parent)

        def stop(number: int, frame: FrameType | None) -> None:
            shell.stop()

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, stop)
        sys.stdout.write(f"mediator of {folder.fleet}: epoch {shell.epoch}\n")
        sys.stdout.flush()
        try:
            shell.run()
        except (epochs.DeposedError, MissingError) as error:
            sys.stdout.write(f"{error}\n")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
