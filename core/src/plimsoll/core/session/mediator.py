"""The one door: an event comes in, the facts are taken from it, and every session goes as far as facts allow.

What a session does next follows from its record, its request, the view, and nothing else; so an event that is lost or
comes twice changes nothing, and a mediator that starts anew goes on where the last one stood.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from msgspec.structs import replace

from plimsoll.core.records import CoverTold, Outcome, ProfileReply, Served, Stated, Trigger
from plimsoll.core.session import (
    batches,
    counting,
    ending,
    family,
    joining,
    moving,
    overview,
    planned,
    states,
    triggers,
    windows,
)
from plimsoll.core.session.events import Asked, Deleted, Deposed, Effect, Event, Forget, Heard, Save, Viewed
from plimsoll.core.session.record import MOVING, Session, Verdict, earlier
from plimsoll.core.session.status import conditioned
from plimsoll.core.session.turn import Turn, enter, is_running, judged
from plimsoll.core.session.values import Request, Settings

STEPS_AT_MOST = 1000
"""A session that takes more steps at one event goes in circles, which is a fault of this machine."""

Step = Callable[[Turn, Request, Session], Session]
BEFORE: Final[dict[str, Step]] = {
    "Requested": planned.requested,
    "Negotiating": planned.negotiating,
    "Sampling": planned.sampling,
    "Planned": planned.planned,
}
AFTER: Final[dict[tuple[bool, bool], Step]] = {
    (False, False): moving.step,
    (False, True): moving.stabilizing,
    (True, False): family.step,
    (True, True): family.stabilizing,
}
JOINING: Final[dict[str, Step]] = {
    "Requested": joining.requested,
    "Negotiating": joining.negotiating,
    "Preparing": joining.step,
    "Draining": joining.step,
}


class Mediator:
    """One life of the mediator. `epoch` is higher than that of every mediator before it.

    `sessions` are those that were stored; each waits until its object has been `Asked` for. Times are in seconds since
    1970; one that goes back is taken as standing still.
    """

    def __init__(self, epoch: int, sessions: Iterable[Session] = (), settings: Settings | None = None) -> None:
        self.epoch, self.settings = epoch, settings or Settings()
        self.deposed_by = 0
        self._turn = Turn(epoch, self.settings)
        self._next_look = 0.0
        for session in sessions:
            self._heed_epochs(session)
            self._turn.book.put(session, stored_at=0.0)
            if session.batches:
                self._turn.book.count(session)

    def _set_back(self, now: float) -> None:
        """The clock may have been set back since the last life: nothing stored lies in the future."""
        for session in list(self._turn.book.sessions.values()):
            if not session.is_over and (ahead := session.phase_at - now) > 0:
                self._turn.book.put(earlier(session, ahead))

    def _heed_epochs(self, session: Session) -> None:
        for batch in session.batches:
            if batch.epoch > self.epoch:
                raise ValueError(f"{session.name} knows of mediator epoch {batch.epoch}: {self.epoch} is too low")
            if batch.epoch == self.epoch:
                raise ValueError(f"{session.name} was written in epoch {self.epoch}: start with a higher one")

    # -- to look at

    @property
    def sessions(self) -> dict[str, Session]:
        """All sessions by uid."""
        return dict(self._turn.book.sessions)

    @property
    def is_deposed(self) -> bool:
        """Whether another mediator has taken over."""
        return self.deposed_by > 0

    @property
    def cordoned(self) -> frozenset[str]:
        """Edges that take no newcomers as long as their drain goes on."""
        drains = (s for s in self._turn.book.open() if s.is_drain and not s.is_over)
        return frozenset(name for s in drains if s.phase in (*MOVING, "Stabilizing") for name in s.sources)

    # -- the door

    def handle(self, event: Event, now: float) -> list[Effect]:
        """Take an event in; returns what is to be done, in order. Nothing, once this mediator is deposed."""
        if self.is_deposed:
            return []
        turn = self._turn
        if not turn.now:
            self._set_back(now)
            turn.began_at = now
        turn.now = max(turn.now, now)
        turn.effects = []
        if self._take(event):
            return [Deposed(self.deposed_by)]
        self._go_on()
        triggers.grant(turn)
        overview.look(turn)
        self._speak()
        self._look_at_the_old()
        return [*self._saves(), *turn.effects]

    def _take(self, event: Event) -> bool:
        """Take the facts of an event; returns whether they depose this mediator."""
        turn = self._turn
        if isinstance(event, Asked):
            self._asked(event.request)
        elif isinstance(event, Deleted):
            self._deleted(event.uid)
        elif isinstance(event, Viewed):
            turn.view, turn.viewed_at = event.view, turn.now
        elif isinstance(event, Heard):
            self._heard(event.head, event.said)
        return self.is_deposed

    def _asked(self, request: Request) -> None:
        turn = self._turn
        turn.requests[request.uid] = request
        session = turn.book.get(request.uid)
        if session is None:
            turn.book.put(self._new(request))
            return
        if session.generation != request.generation:
            session = planned.changed(turn, request, replace(session, generation=request.generation))
            turn.book.put(session)
        if session.is_over and (again := _reopened(turn, request, session)) is not session:
            turn.book.put(again)

    def _new(self, request: Request) -> Session:
        now = self._turn.now
        return Session(
            uid=request.uid,
            name=request.name,
            parent=request.parent,
            generation=request.generation,
            requested_at=now,
            queued_at=now,
            phase_at=now,
            deadline_at=now + self.settings.seconds(request.spec.limits.queue_for),
            spent={"Requested": 0.0},
        )

    def _deleted(self, uid: str) -> None:
        """The object has gone, and with it the place where its intent was stored: nothing more can be commanded."""
        turn = self._turn
        turn.requests.pop(uid, None)
        turn.unlist(uid)
        session = turn.book.drop(uid)
        batch = session.batch if session is not None else None
        if batch is not None and batch.intent in ("prepare", "abort"):
            turn.command(batch, "abort", 0.0)

    def _heard(self, head: str, said: Outcome | Served | Stated | Trigger | ProfileReply | CoverTold) -> None:
        match said:
            case Outcome():
                self._told(head, said)
            case Served():
                self._turn.served(head, said)
            case Stated():
                states.heard(self._turn, said)
            case ProfileReply():
                self._turn.profiles.heard(self._turn, said)
            case CoverTold():
                self._turn.profiles.told(said)
            case Trigger():
                if windows.lets(self._turn, said.edge):
                    triggers.heed(self._turn, said)

    def _told(self, head: str, told: Outcome) -> None:
        if told.mediator > self.epoch:
            self.deposed_by = told.mediator
            return
        for session in list(self._turn.book.open()):
            batch = session.batch
            if batch is not None and batch.id == told.session and batch.head == head:
                after = batches.heard(self._turn, batch, told)
                if after is not batch:
                    self._turn.book.put(moving.with_batch(self._turn, session, after))
                break
        counting.heard(self._turn, head, told)

    # -- every session, as far as it goes

    def _go_on(self) -> None:
        turn = self._turn
        is_changed = True
        rounds = 0
        while is_changed:
            is_changed = False
            rounds += 1
            if rounds > STEPS_AT_MOST:
                raise RuntimeError(f"the sessions {[s.name for s in turn.book.open()]} go in circles")
            for session in list(turn.book.open()):
                request = turn.requests.get(session.uid)
                if request is not None and self._steps(request, turn.book.sessions[session.uid]):
                    is_changed = True

    def _steps(self, request: Request, session: Session) -> bool:
        """Take steps until nothing changes; returns whether anything did."""
        for taken in range(STEPS_AT_MOST):
            after = self._step(request, session)
            if after is session:
                return taken > 0
            session = after
            self._turn.book.put(session)
        raise RuntimeError(f"the session {session.name} goes in circles in {session.phase}: {session.reason}")

    def _step(self, request: Request, session: Session) -> Session:
        turn = self._turn
        if session.is_over:
            return session
        if (why := _stop(turn, request, session)) is not None:
            if session.phase in BEFORE:
                return ending.ended_by(turn, request, session, why)
            session = judged(session, why.reason, why.message)
        if session.between or (session.phase == "Requested" and joining.between(turn, request)):
            return JOINING[session.phase](turn, request, session)
        if (before := BEFORE.get(session.phase)) is not None:
            return before(turn, request, session)
        return AFTER[session.is_parent, session.phase == "Stabilizing"](turn, request, session)

    # -- what is said

    def _speak(self) -> None:
        turn = self._turn
        for session in turn.book.open():
            request = turn.requests.get(session.uid)
            if request is None or session.is_over:
                continue
            if session.between:
                if session.phase in MOVING:
                    joining.speak(turn, session)
            elif session.batch is not None:
                batches.speak(turn, session.batch)
            elif session.is_parent and session.phase in MOVING and session.verdict is None:
                family.speak(turn, request, session)
        counting.speak(turn)
        states.speak(turn)

    def _look_at_the_old(self) -> None:
        """Objects whose time is over, or whose deletion waits for nothing any more: now and then, as there are many."""
        turn = self._turn
        if turn.now < self._next_look:
            return
        self._next_look = turn.now + turn.timings.ask
        for session in turn.book.sessions.values():
            request = turn.requests.get(session.uid)
            if session.ended_at is None:
                continue
            if session.holds_until is not None and turn.now >= session.holds_until:
                turn.book.close(session)
            if request is None:
                continue
            if request.deleting or turn.now >= session.ended_at + self.settings.seconds(request.spec.ttl):
                turn.effects.append(Forget(session.uid, session.name))
        turn.effects.extend(Forget(session.uid, session.name) for session in triggers.superseded(turn))

    def _saves(self) -> list[Effect]:
        """What has changed. Progress alone is stored now and then; an intent always.

        Who leaves its brokers comes before who takes them, and a child before the parent that knows it, so that what is
        stored makes sense wherever the shell stops.
        """
        turn = self._turn
        saves: list[Effect] = []
        for session, stored, stored_at in sorted(turn.book.unstored(), key=lambda each: _in_storing_order(each[0])):
            is_intent = stored is None or _intent(stored) != _intent(session)
            if is_intent or turn.now - stored_at >= turn.timings.save:
                told = conditioned(session, turn.now)
                turn.book.put(told, stored_at=turn.now)
                saves.append(Save(told))
        return saves


def _intent(session: Session) -> tuple[Any, ...]:
    """All of a session but its progress, and its words for people."""
    batch = session.batches[-1] if session.batches else None
    return (
        session.generation, session.phase, session.queued_at, session.deadline_at, session.ended_at, session.approved,
        session.plan.hash if session.plan is not None else "", session.sources, session.targets, session.verdict,
        session.attempt, session.offers, len(session.batches), batch and (batch.intent, batch.since, batch.ended_at),
        [(child.name, child.uid, child.phase) for child in session.children],
    )  # fmt: skip


def _in_storing_order(session: Session) -> tuple[bool, bool, float, str]:
    return is_running(session), session.parent == "", session.queued_at, session.name


def _stop(turn: Turn, request: Request, session: Session) -> Verdict | None:
    """Why a session should begin nothing more."""
    if request.deleting:
        return Verdict(reason="Deleted", message="its deletion was asked for")
    if request.spec.stop:
        return Verdict(reason="Stopped", message="stopped as asked for")
    if session.parent:
        parent = turn.book.get(session.parent)
        if parent is None or parent.is_over or parent.verdict is not None:
            return Verdict(reason="ParentStopped", message="its parent has ended, or begins nothing more")
    return windows.outside(turn, request, session)


def _reopened(turn: Turn, request: Request, session: Session) -> Session:
    """A plan that was dry may be carried out; a failure may be tried again, if there are more attempts by now."""
    if session.phase == "Planned" and request.spec.mode == "Execute" and not (request.spec.stop or request.deleting):
        if session.between:  # there is no plan that could be old: it waits for its clusters, and begins
            return joining.queued(turn, request, session)
        within = turn.settings.seconds(request.spec.approval.within)
        session = enter(session, "Planned", turn.now, "AwaitingApproval", "")
        return replace(session, ended_at=None, deadline_at=turn.now + within)
    if session.phase != "Planned" and ending.may_try_again(request, session):
        return ending.again(turn, request, session)
    return session
