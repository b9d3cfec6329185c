"""The results of a session over all its attempts: those before the current one are in its history."""

from __future__ import annotations

from collections.abc import Iterator

from plimsoll.core.session.batch import AuditTotals, sum_audits
from plimsoll.core.session.state import PastAttempt, Session


def past_attempt(session: Session) -> PastAttempt:
    """The current attempt as it goes into the history."""
    return PastAttempt(
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


def full_audit(session: Session) -> AuditTotals:
    """The audit of all attempts."""
    return sum_audits([*(one.audit for one in session.history), session.audit()])


def moved_since(session: Session, at: float) -> Iterator[str]:
    """Subscribers moved later than `at`, in this attempt or before."""
    for batch in session.batches:
        if batch.ended_at is not None and batch.ended_at > at:
            yield from (name for name, state in batch.members.items() if state == "moved")
    for attempt in session.history:
        if attempt.ended_at > at:
            yield from attempt.moved
