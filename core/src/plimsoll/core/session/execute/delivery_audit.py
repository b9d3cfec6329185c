"""The delivery audit of hand-overs: sums that heads send after a batch, and sometimes after its session.

Members count their deliveries while they move and report soon after; their head adds up the reports. The sums of a
batch only rise, so repeated, late or reordered ones change nothing. After `AUDIT_WAIT_SECONDS` missing members are
given up as not counted. No session ends later because of its audit (docs/sessions.md, Lost, duplicated, reordered).
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from plimsoll.core.protocol.messages import Outcome, SliceOutcome
from plimsoll.core.session.batch import AuditTotals, Batch
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.delivery_verdict import with_new_counts
from plimsoll.core.session.state import Session

AUDIT_WAIT_SECONDS = 10.0
"""How long after a batch its head is asked for the audit. Not scaled: clients count at the speed of real time."""

AUDIT_QUERY_SECONDS = 1.0


def receive_audit(context: EngineContext, head: str, told: Outcome | SliceOutcome) -> None:
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


def _with_audit(batch: Batch, head: str, told: Outcome | SliceOutcome) -> Batch:
    if (batch.id, batch.head, batch.head_epoch) != (told.session, head, told.head_epoch) or told.audit is None:
        return batch
    audit, known = told.audit, batch.audit.subscribers if batch.audit is not None else 0
    if audit.members <= known:
        return batch
    sums = AuditTotals(
        subscribers=audit.members, lost=audit.lost, duplicated=audit.duplicated, reordered=audit.reordered,
        suppressed=audit.suppressed,
    )  # fmt: skip
    return replace(batch, audit=sums)


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
                ask = context.outbox.slice_command if session.kind == "slices" else context.outbox.command
                ask(batch, "ask", AUDIT_QUERY_SECONDS)
        if not missing and session.batch is None:
            context.table.mark_audited(session)
            for batch in session.batches:
                context.outbox.forget(f"{batch.id}/")


def _unaudited_batches(context: EngineContext, session: Session) -> Iterator[Batch]:
    """Batches that ended lately, and for which not all moved members have reported. Publishers count no deliveries."""
    if session.kind == "publishers":
        return
    for batch in session.batches:
        if batch.ended_at is None or context.now >= batch.ended_at + AUDIT_WAIT_SECONDS:
            continue
        known = batch.audit.subscribers if batch.audit is not None else 0
        if known < sum(state == "moved" for state in batch.members.values()):
            yield batch
