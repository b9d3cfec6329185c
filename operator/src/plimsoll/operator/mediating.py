"""One fleet's mediator on Kubernetes: an asyncio shell around `core.session.Mediator`, as thin as that of local mode.

Objects, what heads say, and time go in; what comes out is stored, sent or noted, in order: a status is written before
anything is sent that rests on it. It decides nothing, and holds no state that is not stored or heard again, so it may
be killed at any time. While the API server is away nothing new begins; brokers are still asked and told whom they know.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from plimsoll.core import session as core
from plimsoll.core.config import Peer, Role
from plimsoll.core.spec import InvalidResourcesError, head_name
from plimsoll.core.spec.kinds import BrokerFleetSpec
from plimsoll.mediator import sessions, views
from plimsoll.mediator.control import Answered, ControlPlane, Curve, Malformed, Members, Reported, Said, Told
from plimsoll.operator import epochs
from plimsoll.operator.api import Api, ApiError, ConflictError, MissingError, Object
from plimsoll.operator.epochs import DeposedError
from plimsoll.operator.lease import Lease, LostError
from plimsoll.operator.names import MEDIATOR
from plimsoll.operator.objects import owner
from plimsoll.operator.session_metrics import SessionMetrics
from plimsoll.operator.storing import Loaded, OvertakenError, Storing

__all__ = ["DeposedError", "Heard", "Mediating"]

LEASE_SECONDS = 15.0
POLL_SECONDS = 0.02
ASK_SECONDS = 0.5
EDGES_EVERY = 3
"""Edges are asked at each so many rounds of asking heads: they report by themselves, too."""

TICK_SECONDS = 0.05
IDLE_TICK_SECONDS = 0.25
VIEW_SECONDS = 1.0
INBOX_AT_MOST = 5000
EVENTS_WAITING = 500
EVENT_PAUSE_SECONDS = 1.0

Change = Literal["ADDED", "MODIFIED", "DELETED"]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Heard:
    """What one broker has said last; ages in seconds, None if it never did."""

    answer: Mapping[str, Any] = field(default_factory=dict)
    answer_age: float | None = None
    report: Mapping[str, Any] = field(default_factory=dict)
    report_age: float | None = None


@dataclass(frozen=True)
class _Watched:
    """A session as a watch has told of it."""

    type: Change
    item: Object


class Mediating:
    """One fleet's mediator; `run` is one asyncio task, everything else may be called at any time from the same loop.

    `spec` is the fleet's: where its clock or the interval of reports changes, another mediator takes over. Only one
    operator at a time mediates, by a Lease; with `lease_seconds` 0 there is none, and epochs alone keep two apart.
    """

    def __init__(
        self,
        api: Api,
        namespace: str,
        fleet: str,
        curve: Curve | None,
        spec: BrokerFleetSpec,
        *,
        lease_seconds: float = LEASE_SECONDS,
        metrics: SessionMetrics | None = None,
    ) -> None:
        self._api, self._namespace, self._fleet, self._curve, self._spec = api, namespace, fleet, curve, spec
        self._lease_seconds, self._metrics = lease_seconds, metrics
        self._objects: Sequence[Object] = ()
        self._peers: Mapping[str, tuple[Peer, Role]] = {}
        self._members: Mapping[str, Members] = {}
        self._known = views.Known()
        self._loads: Callable[[], views.Loads | None] = lambda: None
        self._statuses: dict[str, tuple[Mapping[str, Any], float]] = {}
        self._inbox: deque[_Watched | Told] = deque()
        self._wake = asyncio.Event()
        self._tells: deque[tuple[Object, core.Tell]] = deque(maxlen=EVENTS_WAITING)
        self._told = asyncio.Event()
        self._asked: dict[str, tuple[str, int, bool]] = {}
        self._view_at = 0.0
        self._control: ControlPlane | None = None
        self._storing = Storing(api, namespace)
        self._mediator: core.Mediator | None = None
        self._lease: Lease | None = None
        self.epoch = 0
        self.draining: frozenset[str] = frozenset()
        self.lives = 0

    # -- what the reconciler says

    def show(self, objects: Sequence[Object]) -> None:
        """The fleet, its clusters, edges and profiles as they are now."""
        self._objects = tuple(item for item in objects if item["kind"] in views.KINDS)
        self._view_at = 0.0
        self._wake.set()

    def dial(self, peers: Mapping[str, tuple[Peer, Role]], members: Mapping[str, Members]) -> None:
        """Whom to speak to, by name; and by head what it is told of its edges."""
        self._peers, self._members = dict(peers), dict(members)
        self._redial()

    def session(self, type_: str, item: Object) -> None:
        """A LoadBalancingSession that a watch has told of."""
        change: Change = "DELETED" if type_ == "DELETED" else "MODIFIED"
        self._inbox.append(_Watched(change, item))
        self._wake.set()

    def aggregate(self, loads: Callable[[], views.Loads | None]) -> None:
        """Who knows what clusters carry, where somebody adds it up for the whole fleet; None: what heads say counts."""
        self._loads = loads

    # -- what it says

    @property
    def may_be_deposed(self) -> bool:
        """Whether it has mediated, and has not reached the API server for so long that another one may do so by now."""
        return self.lives > 0 and self._lease is not None and not self._lease.is_fresh

    @property
    def heard(self) -> Mapping[str, Heard]:
        """By broker: its last answer and report."""
        now = time.monotonic()
        return {name: self._heard_of(name, now) for name in self._statuses.keys() | self._known.reports.keys()}

    def _heard_of(self, name: str, now: float) -> Heard:
        answer, answered_at = self._statuses.get(name, ({}, None))
        report = self._known.reports.get(name)
        return Heard(
            answer, None if answered_at is None else now - answered_at,
            {} if report is None else report.content, None if report is None else now - report.at,
        )  # fmt: skip

    @property
    def sessions(self) -> Mapping[str, core.Session]:
        """All sessions by uid, as this life knows them."""
        return self._mediator.sessions if self._mediator is not None else {}

    # -- one life after the other

    async def run(self) -> None:
        """Mediate until cancelled.

        Raises:
            DeposedError: another mediator has taken over; nothing more is written or sent.
            MissingError: there is no such fleet.
            ApiError: the API server refuses what the mediator has to write.

        """
        if not self._lease_seconds:
            await self._mediate()
        name = f"plimsoll-mediator-{self._fleet}"
        fleet = await self._api.get(epochs.KIND, self._namespace, self._fleet, retry=True)
        lease = Lease(self._api, self._namespace, name, self._api.instance, self._lease_seconds, owner=owner(fleet))
        self._lease = lease
        try:
            await lease.held(self._mediate())
        except LostError as error:
            raise DeposedError(str(error)) from error

    async def _mediate(self) -> None:
        telling = asyncio.create_task(self._tell())
        try:
            while True:
                try:
                    await self._live(telling)
                except OvertakenError as error:
                    log.warning("fleet %s/%s: %s; reading again", self._namespace, self._fleet, error)
        finally:
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)

    async def _live(self, telling: asyncio.Task[None]) -> None:
        loaded = await self._begin()
        control = self._control = ControlPlane(MEDIATOR, self._curve, self.epoch)
        hearing = asyncio.create_task(self._hear(control))
        try:
            self._redial()
            for item, why in loaded.lost:
                self._note(item, "Warning", "PlanLost", f"it begins anew: {why}")
            await self._adopt(loaded.items)
            while True:
                await self._turn()
                for task in (hearing, telling):
                    if task.done():
                        task.result()
        finally:
            hearing.cancel()
            await asyncio.gather(hearing, return_exceptions=True)
            self._control = None
            control.close()

    async def _begin(self) -> Loaded:
        """A new epoch, and all that is stored under lower ones."""
        above = 0
        while True:
            self.epoch = await epochs.raise_epoch(self._api, self._namespace, self._fleet, above)
            self._storing = Storing(self._api, self._namespace, self.epoch)
            loaded = await self._storing.load()
            batches = [batch.epoch for session in loaded.sessions for batch in session.batches]
            above = max([*(epochs.of(item) for item in loaded.items), *batches], default=0)
            if above < self.epoch:  # else the fleet's object was made anew, or somebody is quicker
                break
        fleet = await self._api.get(epochs.KIND, self._namespace, self._fleet, retry=True)
        factor = self._spec.time_scale_percent / 100
        self._known.report_seconds = self._spec.telemetry.report_interval.seconds * factor
        self._mediator = core.Mediator(self.epoch, loaded.sessions, core.Settings(time_factor=factor))
        self._view_at = 0.0
        self.draining = frozenset(fleet.get("status", {}).get("draining", []))
        self._asked.clear()
        self.lives += 1
        log.info("fleet %s/%s: mediator epoch %d", self._namespace, self._fleet, self.epoch)
        return loaded

    async def _adopt(self, items: Sequence[Object]) -> None:
        """Take over what is open: once it bears this epoch, no earlier mediator can write it."""
        now = time.time()
        for item in items:
            session = self.sessions.get(item["metadata"]["uid"])
            if session is not None and not session.is_over:
                with contextlib.suppress(MissingError):
                    await self._storing.save(session, now)
        for item in items:
            await self._ask_for(item)

    # -- hearing: goes on whatever the API server does

    async def _hear(self, control: ControlPlane) -> None:
        asked_at, rounds = float("-inf"), 0
        while True:
            now = time.monotonic()
            if now - asked_at >= ASK_SECONDS:
                asked_at, rounds = now, rounds + 1
                for name, (_, role) in self._peers.items():
                    if role == "head" or rounds % EDGES_EVERY == 1:
                        control.ask(name, self._members_of(name))
            for said in control.poll(0):
                self._take(said, time.monotonic())
            await asyncio.sleep(POLL_SECONDS)

    def _members_of(self, head: str) -> Members | None:
        """Its edges, with those among them that are being drained now."""
        members = self._members.get(head)
        if members is None:
            return None
        drained = self.draining.intersection(members.edges)
        return Members(members.edges, tuple(sorted(drained.union(members.cordoned))))

    def _take(self, said: Said, now: float) -> None:
        if isinstance(said, Answered):
            self._statuses[said.broker] = said.status, now
            if self._known.answered(said.broker, said.status, now):
                self._view_at = 0.0
                self._wake.set()
        elif isinstance(said, Reported):
            self._known.reported(said.broker, said.report, now)
        elif isinstance(said, Malformed):
            self._take_malformed(said)
        elif len(self._inbox) < INBOX_AT_MOST:  # while nothing can be stored; whatever is lost here is said again
            self._inbox.append(said)
            self._wake.set()

    def _take_malformed(self, said: Malformed) -> None:
        """Say it once, and count it each time."""
        if self._metrics is not None:
            self._metrics.malformed.labels(said.field).inc()
        if said.times == 1:
            log.warning("fleet %s/%s: %s", self._namespace, self._fleet, said.message)
            self._note(self._about(said.broker), "Warning", "MalformedAnswer", said.message)

    def _about(self, broker: str) -> Object:
        """The object that stands for a broker, or else the fleet's."""
        for item in self._objects:
            name = item["metadata"]["name"]
            if (item["kind"], name) == ("EdgeBroker", broker):
                return item
            if item["kind"] == "BrokerCluster" and head_name(name) == broker:
                return item
        known = (item for item in self._objects if item["kind"] == epochs.KIND)
        reference = {"kind": epochs.KIND, "metadata": {"namespace": self._namespace, "name": self._fleet, "uid": ""}}
        return next(known, reference)

    def _redial(self) -> None:
        if self._control is None:
            return
        for gone in self._control.dialled - self._peers.keys():
            self._control.hang_up(gone)
            self._statuses.pop(gone, None)
            self._known.reports.pop(gone, None)
            self._known.answers.pop(gone, None)
        for peer, role in self._peers.values():
            self._control.dial(peer, role)

    # -- acting

    async def _turn(self) -> None:
        """Take in what has come, and let time pass."""
        is_busy = any(not session.is_over for session in self.sessions.values())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TICK_SECONDS if is_busy else IDLE_TICK_SECONDS):
                await self._wake.wait()
        self._wake.clear()
        for item in self._objects:
            if item["kind"] == epochs.KIND:
                epochs.check(item, self.epoch)
        now = time.monotonic()
        if now >= self._view_at and self._objects:
            self._view_at = now + VIEW_SECONDS
            await self._handle(core.Viewed(views.view(self._objects, self._known, now, self._loads())))
        for _ in range(len(self._inbox)):
            await self._receive(self._inbox.popleft())
        await self._handle(core.Ticked())

    async def _receive(self, what: _Watched | Told) -> None:
        if isinstance(what, Told):
            await self._handle(core.Heard(what.head, what.said))
        elif what.type == "DELETED":
            await self._gone(what.item["metadata"]["uid"])
        else:
            await self._ask_for(what.item)

    async def _ask_for(self, item: Object) -> None:
        """Take notice of an object, unless this is nothing new: only its status has changed, or a watch is late."""
        metadata = item["metadata"]
        uid, asked = metadata["uid"], (metadata["name"], int(metadata["generation"]), "deletionTimestamp" in metadata)
        known = self._asked.get(uid)
        if known is not None and (asked[1:] <= known[1:]):
            return
        self._asked[uid] = asked
        try:
            request = sessions.request(item)
        except InvalidResourcesError as error:
            self._note(item, "Warning", "InvalidSpec", str(error))
            return
        await self._handle(core.Asked(request))

    async def _gone(self, uid: str) -> None:
        self._asked.pop(uid, None)
        self._storing.forget(uid)
        if self._metrics is not None:
            self._metrics.forget(uid)
        await self._handle(core.Deleted(uid))

    async def _handle(self, event: core.Event) -> None:
        """One event, and all that follows: stored first, then said."""
        mediator = self._mediator
        if mediator is None:
            raise AssertionError("a life has begun")
        now = time.time()
        effects = await asyncio.to_thread(mediator.handle, event, now)
        missing = [save.session.uid for save in _saves(effects) if not await self._save(save, now)]
        if self.draining != mediator.cordoned:
            await epochs.set_draining(self._api, self._namespace, self._fleet, self.epoch, mediator.cordoned)
            self.draining = mediator.cordoned
        for effect in effects:
            if not (
                missing and isinstance(effect, core.Send)
            ):  # what rests on what is not stored is said again, or not
                await self._carry_out(effect)
        for uid in missing:
            await self._gone(uid)

    async def _save(self, save: core.Save, now: float) -> bool:
        """Store a session; False if its object has gone."""
        try:
            item = await self._storing.save(save.session, now)
        except MissingError:
            return False
        if self._metrics is not None:
            self._metrics.stored(save.session, now)
        if int(item["metadata"]["generation"]) > save.session.generation:
            self.session("MODIFIED", item)
        return True

    async def _carry_out(self, effect: core.Effect) -> None:
        match effect:
            case core.Send(head, record):
                if self._control is not None:
                    self._control.send(head, record)
            case core.Tell(uid, name):
                self._tells.append((self._storing.item(uid) or _reference(self._namespace, uid, name), effect))
                self._told.set()
            case core.Create():
                with contextlib.suppress(ConflictError):  # it is there: it will be asked for
                    await self._api.create(self._child(effect), retry=True)
            case core.Forget(uid, name):
                await self._forget(uid, name)
            case core.Deposed(epoch):
                await epochs.raise_to(self._api, self._namespace, self._fleet, epoch)
                raise DeposedError(f"mediator epoch {self.epoch} is over: a head obeys {epoch}")

    def _child(self, effect: core.Create) -> Object:
        item = sessions.child(effect)
        return {**item, "metadata": {**item["metadata"], "namespace": self._namespace}}

    async def _forget(self, uid: str, name: str) -> None:
        """Delete an object; what it owns goes with it."""
        with contextlib.suppress(MissingError, ConflictError):
            await self._api.delete(sessions.KIND, self._namespace, name, uid=uid, retry=True)
        await self._gone(uid)

    # -- events for people: late rather than never, and never in the way

    def _note(self, item: Object, type_: Literal["Normal", "Warning"], reason: str, message: str) -> None:
        metadata = item["metadata"]
        self._tells.append((item, core.Tell(metadata["uid"], metadata["name"], type_, reason, message)))
        self._told.set()

    async def _tell(self) -> None:
        while True:
            await self._told.wait()
            self._told.clear()
            while self._tells:
                item, tell = self._tells[0]
                try:
                    await self._api.event(item, tell.type, tell.reason, tell.message)
                except (ApiError, ConflictError, MissingError) as error:
                    if isinstance(error, ApiError) and error.code in _WAIT:
                        await asyncio.sleep(EVENT_PAUSE_SECONDS)
                        continue
                    log.warning("no event about %s: %s", tell.name, error)
                with contextlib.suppress(ValueError):  # so many have come meanwhile that it made room for them
                    self._tells.remove((item, tell))


_WAIT = frozenset({0, 429, 500, 502, 503, 504})


def _saves(effects: Sequence[core.Effect]) -> Iterator[core.Save]:
    return (effect for effect in effects if isinstance(effect, core.Save))


def _reference(namespace: str, uid: str, name: str) -> Object:
    return {"kind": sessions.KIND, "metadata": {"namespace": namespace, "name": name, "uid": uid}}
