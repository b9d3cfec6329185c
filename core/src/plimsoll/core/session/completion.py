"""How an attempt ends, and whether another follows."""

from __future__ import annotations

from typing import Literal

from msgspec.structs import replace

from plimsoll.core.protocol.departures import UNKNOWN
from plimsoll.core.session.attempts import past_attempt
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.delivery_verdict import DELIVERY_FAULTS, final_verdict
from plimsoll.core.session.inputs import SessionRequest
from plimsoll.core.session.state import MOVING_PHASES, FinalPhase, Session, SessionVerdict

CLOSING_SHARE = 0.2
"""Share of the deadline, at most `Timings.cut`, in which no batch is cut any more and open ones are undone."""

LONGEST_PAUSE_FACTOR = 12
"""The longest pause between two attempts, as a multiple of the first; pauses double."""


def closing_seconds(context: EngineContext, session: Session) -> float:
    """How long before its deadline an attempt begins to close."""
    began = session.requested_at if session.started_at is None else session.started_at
    return min(context.timings.cut, CLOSING_SHARE * (session.deadline_at - began))


def end_attempt(
    context: EngineContext,
    request: SessionRequest | None,
    session: Session,
    phase: FinalPhase,
    verdict: SessionVerdict,
) -> Session:
    """The session at the end of an attempt: over, or waiting for the next one."""
    if phase == "Succeeded":
        verdict = final_verdict(session, verdict)
    session = session.entered(phase, context.now, verdict.reason, verdict.message)
    session = replace(session, ended_at=context.now, may_retry=verdict.again, holds_until=_held_until(context, session))
    context.forget_answers(session.uid)
    is_plain = phase == "Succeeded" and verdict.reason != DELIVERY_FAULTS
    type_: Literal["Normal", "Warning"] = "Normal" if is_plain else "Warning"
    context.outbox.emit(session, verdict.reason, f"{phase}: {verdict.message}", type_)
    return (
        schedule_retry(context, request, session)
        if request is not None and has_retry_left(request, session)
        else session
    )


def _held_until(context: EngineContext, session: Session) -> float | None:
    """Until when its brokers stay reserved: a batch with unknown outcomes may go on until its head gives it up."""
    batch = session.batches[-1] if session.batches else None
    if batch is None or batch.cut_at is None or UNKNOWN not in batch.members.values():
        return None  # without a cut its head only gives it up
    until = batch.begun_at + batch.prepare_seconds + batch.drain_seconds + context.timings.cut
    return until if until > context.now else None


def has_retry_left(request: SessionRequest, session: Session) -> bool:
    """Whether a session that is over may be tried again. A child is not: its parent plans another round."""
    wanted = not (request.spec.stop or request.deleting or session.parent)
    return wanted and session.may_retry and session.attempt <= request.spec.retries


def schedule_retry(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    """The session waiting for its next attempt, with this one in the history."""
    pause = context.timings.retry * min(2 ** (session.attempt - 1), LONGEST_PAUSE_FACTOR)
    at = context.now + pause
    moved = session.counts()["moved"]
    session = replace(
        session,
        history=[*session.history, past_attempt(session)],
        attempt=session.attempt + 1,
        wanted=None if session.wanted is None else max(0, session.wanted - moved),
        retry_at=at, queued_at=at, deadline_at=at + context.settings.seconds(request.spec.limits.queue_for),
        ended_at=None, started_at=None, moving_at=None, may_retry=False, verdict=None, plan=None, approved="",
        batches=[], children=[], round=0, sources=[], targets=[], asked="", offers=[],
    )  # fmt: skip
    message = f"attempt {session.attempt} of {request.spec.retries + 1} begins in {pause:.0f} s"
    context.outbox.emit(session, "Retrying", message)
    return session.entered("Requested", context.now, "Retrying", message)


def end_by_verdict(
    context: EngineContext, request: SessionRequest | None, session: Session, verdict: SessionVerdict
) -> Session:
    """End an attempt early: Rejected before it moved, RolledBack before a cut, Failed after one."""
    phase: FinalPhase = "Rejected"
    if session.phase in (*MOVING_PHASES, "Stabilizing"):
        phase = "Failed" if session.has_cut else "RolledBack"
    return end_attempt(context, request, session, phase, verdict)


def end_negotiation(
    context: EngineContext, request: SessionRequest, session: Session, why: SessionVerdict | None
) -> Session:
    """Go on to the sample; or, for the reason `why`, wait until the time for negotiations is over, and end then."""
    if why is None:
        return session.entered("Sampling", context.now)
    if context.now < min(context.waiting_since(session) + context.timings.negotiate, session.deadline_at):
        return session.because(why.reason, why.message)
    if why.reason == "NoView":  # the mediator is late, which is no fault of the session
        why = SessionVerdict(reason="DeadlineExceeded", message=why.message, again=True)
    return end_by_verdict(context, request, session, why)
