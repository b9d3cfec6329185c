"""The delivery audit of hand-overs: sums that heads send after a batch, and sometimes after its session.

Members count their deliveries while they move and report soon after; their head adds up the reports. Of publishers,
some of those count that take from them. The sums of a batch only rise, so repeated, late or reordered ones change
nothing. After `AUDIT_WAIT_SECONDS` missing subscribers are given up as not counted. A session of publishers waits a
little for its audit: nothing else settles, and the head may be replaced as soon as it ends. No other session ends later
because of its audit (docs/sessions.md, Lost, duplicated, reordered).
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from plimsoll.core.protocol.messages import (
    AUDITED_PUBLISHERS_AT_MOST,
    AuditItem,
    Outcome,
    PublisherOutcome,
    SliceOutcome,
)
from plimsoll.core.session.batch import AuditTotals, Batch
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.delivery_verdict import with_new_counts
from plimsoll.core.session.state import Session

AUDIT_WAIT_SECONDS = 10.0
"""How long after a batch its head is asked for the audit. Not scaled: clients count at the speed of real time."""

AUDIT_QUERY_SECONDS = 1.0

SETTLE_SECONDS = 3.0
"""How long a session of publishers waits for its audit after their last move, at most."""

AuditedOutcome = Outcome | PublisherOutcome | SliceOutcome


def receive_audit(context: EngineContext, head: str, told: AuditedOutcome) -> None:
    """Add a head's sums to the batch, its session, and that session's parent."""
    if told.audit is None:
        return
    for session in context.table.unaudited():
        batches = [_with_audit(batch, head, told) for batch in session.batches]
        if batches != session.batches:
            session = with_new_counts(context.outbox, session, replace(session, batches=batches))
            context.table.put(session)
            _update_parent(context, session)
            return


def _with_audit(batch: Batch, head: str, told: AuditedOutcome) -> Batch:
    if (batch.id, batch.head, batch.head_epoch) != (told.session, head, told.head_epoch) or told.audit is None:
        return batch
    audit, known = told.audit, batch.audit or AuditTotals()
    publishers = _moved(batch) if isinstance(told, PublisherOutcome) else 0
    sums = _totals(audit, min(publishers, AUDITED_PUBLISHERS_AT_MOST))
    has_news = (sums.subscribers, sums.asked, sums.publishers) > (known.subscribers, known.asked, known.publishers)
    return replace(batch, audit=sums) if has_news else batch


def _totals(audit: AuditItem, publishers: int) -> AuditTotals:
    return AuditTotals(
        subscribers=audit.members, lost=audit.lost, duplicated=audit.duplicated, reordered=audit.reordered,
        suppressed=audit.suppressed, publishers=publishers, asked=audit.asked, before=audit.before, after=audit.after,
    )  # fmt: skip


def _moved(batch: Batch) -> int:
    return sum(state == "moved" for state in batch.members.values())


def _update_parent(context: EngineContext, session: Session) -> None:
    """Add the audit of a child to its parent, which may have ended and takes no more steps."""
    parent = context.table.get(session.parent) if session.parent else None
    if parent is not None:
        children = [
            replace(child, audit=session.audit(), reason=session.reason) if child.uid == session.uid else child
            for child in parent.children
        ]
        if children != parent.children:
            context.table.put(with_new_counts(context.outbox, parent, replace(parent, children=children)))


def send_audit_queries(context: EngineContext) -> None:
    """Ask for the audit again while members are missing: its message may have been lost."""
    for session in context.table.unaudited():
        missing = list(_unaudited_batches(context, session))
        for batch in missing:
            if context.now >= (batch.ended_at or 0.0) + AUDIT_QUERY_SECONDS:
                context.outbox.end_or_ask(session.kind, batch, "ask", AUDIT_QUERY_SECONDS)
        if not missing and session.batch is None:
            context.table.mark_audited(session)
            for batch in session.batches:
                context.outbox.forget(f"{batch.id}/")


def _unaudited_batches(context: EngineContext, session: Session) -> Iterator[Batch]:
    """Batches that ended lately, and for which not all moved members, or not all that were asked, have reported."""
    for batch in session.batches:
        if batch.ended_at is None or context.now >= batch.ended_at + AUDIT_WAIT_SECONDS:
            continue
        if _is_missing(session, batch):
            yield batch


def _is_missing(session: Session, batch: Batch) -> bool:
    audit = batch.audit
    if session.kind == "publishers":
        return bool(_moved(batch)) and (audit is None or audit.subscribers < audit.asked)
    return (audit.subscribers if audit is not None else 0) < _moved(batch)


def is_awaited(context: EngineContext, session: Session) -> bool:
    """Whether a session of publishers should wait a little longer for what their subscribers have counted."""
    if context.now >= min(session.phase_at + SETTLE_SECONDS, session.deadline_at):
        return False
    return any(batch.ended_at is not None and _is_missing(session, batch) for batch in session.batches)
