"""How an attempt ends, and whether another follows."""

from __future__ import annotations

from typing import Literal

from msgspec.structs import replace

from plimsoll.core.session.record import MOVING, Attempt, End, Session, Verdict
from plimsoll.core.session.turn import Turn, enter
from plimsoll.core.session.values import Request

CLOSING_SHARE = 0.2
"""Part of the deadline, but at most `Timings.cut`, in which nothing is cut any more and what is open is undone."""

LONGEST_PAUSE = 12
"""Pauses between attempts double up to so many times the first."""


def closing_seconds(turn: Turn, session: Session) -> float:
    """How long before its deadline an attempt begins to close."""
    began = session.requested_at if session.started_at is None else session.started_at
    return min(turn.timings.cut, CLOSING_SHARE * (session.deadline_at - began))


def end(
    turn: Turn,
    request: Request | None,
    session: Session,
    phase: End,
    verdict: Verdict,
) -> Session:
    """The session at the end of an attempt: over, or waiting for the next one."""
    session = enter(session, phase, turn.now, verdict.reason, verdict.message)
    session = replace(session, ended_at=turn.now, may_retry=verdict.again, holds_until=_kept_until(turn, session))
    turn.unlist(session.uid)
    type_: Literal["Normal", "Warning"] = "Normal" if phase == "Succeeded" else "Warning"
    turn.tell(session, verdict.reason, f"{phase}: {verdict.message}", type_)
    return again(turn, request, session) if request is not None and may_try_again(request, session) else session


def _kept_until(turn: Turn, session: Session) -> float | None:
    """A batch of which nothing is known may go on for as long as its head lets it."""
    if not session.batches or "unknown" not in session.batches[-1].members.values():
        return None
    batch = session.batches[-1]
    until = batch.begun_at + batch.prepare_seconds + batch.drain_seconds + turn.timings.cut
    return until if until > turn.now else None


def may_try_again(request: Request, session: Session) -> bool:
    """Whether a session that is over has an attempt left that may go better."""
    wanted = not (request.spec.stop or request.deleting or session.parent)
    return wanted and session.may_retry and session.attempt <= request.spec.retries


def again(turn: Turn, request: Request, session: Session) -> Session:
    """The session, with its attempt in the history, waiting to be tried again."""
    pause = turn.timings.retry * min(2 ** (session.attempt - 1), LONGEST_PAUSE)
    at = turn.now + pause
    moved = session.counts()["moved"]
    session = replace(
        session,
        history=[*session.history, attempt_of(session)],
        attempt=session.attempt + 1,
        wanted=None if session.wanted is None else max(0, session.wanted - moved),
        retry_at=at, queued_at=at, deadline_at=at + turn.settings.seconds(request.spec.limits.queue_for),
        ended_at=None, started_at=None, moving_at=None, may_retry=False, verdict=None, plan=None, approved="",
        batches=[], children=[], round=0, sources=[], targets=[], asked="", offers=[],
    )  # fmt: skip
    message = f"attempt {session.attempt} of {request.spec.retries + 1} begins in {pause:.0f} s"
    turn.tell(session, "Retrying", message)
    return enter(session, "Requested", turn.now, "Retrying", message)


def attempt_of(session: Session) -> Attempt:
    return Attempt(
        number=session.attempt,
        phase=session.phase,
        reason=session.reason,
        message=session.message,
        started_at=session.requested_at if session.started_at is None else session.started_at,
        ended_at=session.phase_at if session.ended_at is None else session.ended_at,
        planned=session.plan.members if session.plan is not None else 0,
        counts={state: number for state, number in session.counts().items() if number},
        moved=[name for name, state in session.outcomes().items() if state == "moved"],
        audit=session.audit() if session.counts()["moved"] else None,
    )


def has_cut(session: Session) -> bool:
    """Whether somebody may have been moved: from then on there is no way back."""
    counts = session.counts()
    return any(number for state, number in counts.items() if state != "stayed")


def ended_by(turn: Turn, request: Request | None, session: Session, verdict: Verdict) -> Session:
    """End an attempt that did not come to its own end: rejected, rolled back, or failed behind a cut."""
    phase: End = "Rejected"
    if session.phase in (*MOVING, "Stabilizing"):
        phase = "Failed" if has_cut(session) else "RolledBack"
    return end(turn, request, session, phase, verdict)
