"""The engine: it takes in the facts of an event, steps every session as far as these allow, and sends commands.

The next step of a session follows from its state, its request, the fleet and replies, never from the event itself. So a
lost or repeated event changes nothing, and a restarted mediator goes on where the last one stopped.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, assert_never

from msgspec.structs import replace

from plimsoll.core.protocol.messages import (
    CoverReply,
    GroupTrigger,
    Outcome,
    ProfileReply,
    PublisherListPage,
    PublisherOutcome,
    ReservationReply,
    SliceOutcome,
    SlicePage,
    SubscriberPage,
    Trigger,
)
from plimsoll.core.session import completion, kind_steps, maintenance_windows
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.events import (
    DeleteSession,
    Deposed,
    Effect,
    Event,
    FleetObserved,
    HeadMessage,
    HeadReply,
    SessionDeleted,
    SessionUpserted,
    Tick,
)
from plimsoll.core.session.execute import delivery_audit
from plimsoll.core.session.inputs import EngineSettings, SessionRequest
from plimsoll.core.session.kinds import (
    cluster_session,
    publisher_session,
)
from plimsoll.core.session.queue_order import Origin, Turn
from plimsoll.core.session.request import lifecycle, session_kind
from plimsoll.core.session.saving import SessionSaving
from plimsoll.core.session.state import MOVING_PHASES, Session, SessionVerdict
from plimsoll.core.session.stored_session import shift_back
from plimsoll.core.session.triggers import (
    bundle_tables,
    edge_triggers,
    fleet_policies,
    global_detection,
    group_triggers,
    head_overload,
    publisher_follow,
)

STEPS_AT_MOST = 1000
"""A session that takes more steps at one event goes in circles, which is a fault of this engine."""

PLANNING_PHASES: Final = ("Requested", "Negotiating", "Sampling", "Planned")
"""Phases that a session leaves without a trace if it stops: no batch has begun."""


class MediatorEngine:
    """One life of the mediator. `epoch` is higher than that of every mediator before it.

    `sessions` are the stored ones; each takes its first step after its object has come as `SessionUpserted`. Times are
    in seconds since 1970; a clock that goes back stands still.
    """

    def __init__(self, epoch: int, sessions: Iterable[Session] = (), settings: EngineSettings | None = None) -> None:
        self.epoch, self.settings = epoch, settings or EngineSettings()
        self.deposed_by = 0
        self._context = EngineContext(epoch, self.settings)
        self._next_expiry = 0.0
        self._last_look: Turn = (0, 0.0, "")
        self._saving = SessionSaving(self._context)
        for session in sessions:
            self._check_epochs(session)
            self._context.table.put(session, saved_at=0.0)
            if session.batches:
                self._context.table.mark_unaudited(session)

    def _shift_future_times(self, now: float) -> None:
        """The clock may have been set back since the last life: no stored time may lie in the future."""
        for session in list(self._context.table.sessions.values()):
            if not session.is_over and (ahead := session.phase_at - now) > 0:
                self._context.table.put(shift_back(session, ahead))

    def _check_epochs(self, session: Session) -> None:
        for batch in session.batches:
            if batch.epoch > self.epoch:
                raise ValueError(f"{session.name} knows of mediator epoch {batch.epoch}: {self.epoch} is too low")
            if batch.epoch == self.epoch:
                raise ValueError(f"{session.name} was written in epoch {self.epoch}: start with a higher one")

    # -- state

    @property
    def sessions(self) -> dict[str, Session]:
        """All sessions by uid."""
        return dict(self._context.table.sessions)

    def session(self, uid: str) -> Session | None:
        """The session of this uid."""
        return self._context.table.get(uid)

    @property
    def is_busy(self) -> bool:
        """Whether a session is open."""
        return any(not session.is_over for session in self._context.table.open_sessions())

    @property
    def is_deposed(self) -> bool:
        """Whether another mediator has taken over."""
        return self.deposed_by > 0

    @property
    def cordoned(self) -> frozenset[str]:
        """Edges that admit no new subscribers, and heads that take no new publishers, while they are drained."""
        drains = (s for s in self._context.table.holding() if self._is_drain(s) and not s.is_over)
        return frozenset(name for s in drains if s.phase in (*MOVING_PHASES, "Stabilizing") for name in s.sources)

    def _is_drain(self, session: Session) -> bool:
        """Whether a session empties an edge of its subscribers, or a head of its publishers."""
        request = self._context.requests.get(session.uid)
        is_of_head = session.kind == "publishers" and request is not None and publisher_session.is_drain(request)
        return session.kind == "drain" or is_of_head

    # -- one event

    def handle(self, event: Event, now: float) -> list[Effect]:
        """Take an event in; returns the effects, in order. None once this mediator is deposed."""
        if self.is_deposed:
            return []
        self._begin(now)
        self._receive(event)
        if self.deposed_by:
            return [Deposed(self.deposed_by)]
        self._settle(self._sessions_due(event))
        edge_triggers.create_due_sessions(self._context)
        global_detection.detect_imbalance(self._context)
        fleet_policies.look_at_clusters(self._context)
        publisher_follow.follow_subscribers(self._context)
        head_overload.relieve_heads(self._context)
        bundle_tables.send_bundle_tables(self._context)
        self._send()
        self._expire_sessions()
        return [*self._saving.effects(), *self._context.outbox.effects]

    def _begin(self, now: float) -> None:
        if not self._context.now:
            self._shift_future_times(now)
            self._context.started_at = now
        self._context.outbox.begin(now)

    # -- facts

    def _receive(self, event: Event) -> None:
        match event:
            case SessionUpserted():
                self._upsert(event.request)
            case SessionDeleted():
                self._remove(event.uid)
            case FleetObserved():
                self._context.observe(event.view)
            case HeadMessage():
                self._receive_message(event.head, event.message)
            case Tick():
                pass
            case _:
                assert_never(event)

    def _upsert(self, request: SessionRequest) -> None:
        context = self._context
        context.requests[request.uid] = request
        session = context.table.get(request.uid)
        if session is None:
            context.table.put(self._new(request))
            return
        if session.origin != (origin := self._origin(request)):
            session = replace(session, origin=origin)
            context.table.put(session)
        if session.generation != request.generation:
            session = lifecycle.apply_request_change(context, request, replace(session, generation=request.generation))
            context.table.put(session)
        if session.is_over and (again := _reopen(context, request, session)) is not session:
            context.table.put(again)

    def _new(self, request: SessionRequest) -> Session:
        now = self._context.now
        return Session(
            uid=request.uid,
            name=request.name,
            parent=request.parent,
            generation=request.generation,
            origin=self._origin(request),
            requested_at=now,
            queued_at=now,
            phase_at=now,
            deadline_at=now + self.settings.seconds(request.spec.limits.queue_for),
            spent={"Requested": 0.0},
        )

    def _origin(self, request: SessionRequest) -> Origin:
        parent = self._context.table.get(request.parent)
        return request.origin if parent is None else parent.origin

    def _remove(self, uid: str) -> None:
        """Drop a session with its object: without a place to store an intent, only an abort may still be sent."""
        context = self._context
        context.requests.pop(uid, None)
        context.forget_answers(uid)
        session = context.table.drop(uid)
        if session is None or (batch := session.batch) is None:
            return
        context.forget_answers(batch.id)
        if batch.intent in ("prepare", "abort"):
            context.outbox.end_or_ask(session.kind, batch, "abort", 0.0)

    def _receive_message(self, head: str, message: HeadReply) -> None:
        context = self._context
        match message:
            case Outcome() | PublisherOutcome() | SliceOutcome():
                self._receive_outcome(head, message)
            case SubscriberPage():
                context.listings.receive(head, message)
            case PublisherListPage():
                context.publisher_listings.receive(head, message)
            case SlicePage():
                context.group_samples.receive(head, message)
            case GroupTrigger():
                group_triggers.receive_trigger(context, head, message)
            case ReservationReply():
                context.reservations.receive(message)
            case ProfileReply():
                context.profile_queries.receive_profile(message)
            case CoverReply():
                context.profile_queries.receive_cover(message)
            case Trigger():  # outside of a window it is dropped: its edge triggers again in time
                if maintenance_windows.is_balancing_allowed(context, message.edge):
                    edge_triggers.receive_trigger(context, message)
            case _:
                assert_never(message)

    def _receive_outcome(self, head: str, outcome: Outcome | PublisherOutcome | SliceOutcome) -> None:
        """Take over how a batch stands; one that a newer mediator has been told ends this one."""
        if outcome.mediator > self.epoch:
            self.deposed_by = outcome.mediator
            return
        context = self._context
        for session in context.table.holding():
            batch = session.batch
            if batch is not None and (batch.id, batch.head) == (outcome.session, head):
                after = kind_steps.batch_after(context, batch, outcome)
                if after is not batch:
                    context.table.put(session.with_batch(after, context.now))
                break
        delivery_audit.receive_audit(context, head, outcome)

    # -- steps

    def _sessions_due(self, event: Event) -> list[str]:
        """The sessions to step at this event, in the order of the queue.

        Those that run, the one that the event is about, the front of the queue, and with time some of the others in
        turn: however many wait, an event takes bounded work, and each of them is looked at before long.
        """
        table, looks = self._context.table, self.settings.queue_looks
        others = table.next_resting(self._last_look, looks) if isinstance(event, Tick | FleetObserved) else []
        if others:
            self._last_look = others[-1].turn
        due = {session.uid: session for session in (*table.holding(), *table.first_waiting(looks), *others)}
        if isinstance(event, SessionUpserted) and (session := table.get(event.request.uid)) is not None:
            due[session.uid] = session
        return [session.uid for session in sorted(due.values(), key=lambda session: session.turn)]

    def _settle(self, due: list[str]) -> None:
        context = self._context
        is_changed = True
        rounds = 0
        while is_changed:
            is_changed = False
            rounds += 1
            if rounds > STEPS_AT_MOST:
                raise RuntimeError(f"the sessions {[context.table.sessions[uid].name for uid in due]} go in circles")
            for uid in due:
                request = context.requests.get(uid)
                if request is not None and self._settle_session(request, context.table.sessions[uid]):
                    is_changed = True

    def _settle_session(self, request: SessionRequest, session: Session) -> bool:
        """Take steps until nothing changes; returns whether anything did."""
        for taken in range(STEPS_AT_MOST):
            after = self._next_step(request, session)
            if after is session:
                return taken > 0
            session = after
            self._context.table.put(session)
        raise RuntimeError(f"the session {session.name} goes in circles in {session.phase}: {session.reason}")

    def _next_step(self, request: SessionRequest, session: Session) -> Session:
        context = self._context
        if session.is_over:
            return session
        if (why := _stop_verdict(context, request, session)) is not None:
            if session.phase in PLANNING_PHASES:
                return completion.end_by_verdict(context, request, session, why)
            session = session.stopped(why.reason, why.message)
        kind = session.kind
        if session.phase == "Requested" and kind != "clusters":  # while it is queued the fleet may change, and the kind
            kind = session_kind.kind_of(request, context.fleet)
        return kind_steps.step(context, request, session, kind)

    # -- effects

    def _send(self) -> None:
        context = self._context
        for session in list(context.table.holding()):
            request = context.requests.get(session.uid)
            if request is not None and not session.is_over:
                kind_steps.send(context, request, session)
        delivery_audit.send_audit_queries(context)
        context.reservations.send(context.fleet, context.table)

    def _expire_sessions(self) -> None:
        """Delete expired objects, and those whose deletion waited for its session; rarely, as there are many."""
        context = self._context
        if context.now < self._next_expiry:
            return
        self._next_expiry = context.now + context.timings.ask
        for session in context.table.sessions.values():
            request = context.requests.get(session.uid)
            if session.ended_at is None:
                continue
            if session.holds_until is not None and context.now >= session.holds_until:
                context.table.release(session)
            if request is None:
                continue
            if request.deleting or context.now >= session.ended_at + self.settings.seconds(request.spec.ttl):
                context.outbox.effects.append(DeleteSession(session.uid, session.name))
        context.outbox.effects.extend(
            DeleteSession(session.uid, session.name) for session in edge_triggers.surplus_sessions(context)
        )


def _stop_verdict(context: EngineContext, request: SessionRequest, session: Session) -> SessionVerdict | None:
    """Why a session should begin no further batch."""
    if request.deleting:
        return SessionVerdict(reason="Deleted", message="its deletion was requested")
    if request.spec.stop:
        return SessionVerdict(reason="Stopped", message="stopped as requested")
    if session.parent:
        parent = context.table.get(session.parent)
        if parent is None or parent.is_over or parent.verdict is not None:
            return SessionVerdict(reason="ParentStopped", message="its parent has ended or is stopping")
    return maintenance_windows.outside_window(context, request, session)


def _reopen(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    """Go on with a session that is over: a dry run that is to be executed, or a failure with more retries by now."""
    if session.phase == "Planned" and request.spec.mode == "Execute" and not (request.spec.stop or request.deleting):
        if session.kind == "clusters":  # it has no plan that could be out of date: it queues and begins
            return cluster_session.requeue(context, request, session)
        within = context.settings.seconds(request.spec.approval.within)
        session = session.entered("Planned", context.now, "AwaitingApproval", "")
        return replace(session, ended_at=None, deadline_at=context.now + within)
    if session.phase != "Planned" and completion.has_retry_left(request, session):
        return completion.schedule_retry(context, request, session)
    return session
