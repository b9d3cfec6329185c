"""What members have counted of a hand-over: heard from heads after a batch, and sometimes after its session.

Members count while they move and tell when they know, which is soon after; their head sums it up. The sums of a batch
only rise, so what is repeated, late or out of order changes nothing. Who has not told when `HOPED_SECONDS` are over is
not waited for: of that member nothing is known. No session ends later for any of this.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from plimsoll.core.records import Outcome
from plimsoll.core.session.record import Audit, Batch, Session
from plimsoll.core.session.turn import Turn

HOPED_SECONDS = 10.0
"""For so long after a batch its head is asked what its members have counted. What they do takes its time, whatever the
clock of the fleet is."""

ASK_SECONDS = 1.0


def heard(turn: Turn, head: str, told: Outcome) -> None:
    """Take the sums that a head tells, into the batch, its session, and the session that owns that."""
    if told.audit is None:
        return
    for session in turn.book.counting():
        batches = [_with(batch, head, told) for batch in session.batches]
        if batches != session.batches:
            session = replace(session, batches=batches)
            turn.book.put(session)
            _tell_parent(turn, session)
            return


def _with(batch: Batch, head: str, told: Outcome) -> Batch:
    if (batch.id, batch.head, batch.head_epoch) != (told.session, head, told.head_epoch) or told.audit is None:
        return batch
    audit, known = told.audit, batch.audit.subscribers if batch.audit is not None else 0
    if audit.members <= known:
        return batch
    sums = Audit(
        subscribers=audit.members, lost=audit.lost, duplicated=audit.duplicated, reordered=audit.reordered,
        suppressed=audit.suppressed,
    )  # fmt: skip
    return replace(batch, audit=sums)


def _tell_parent(turn: Turn, session: Session) -> None:
    """A child may be counted for after its parent has looked after it for the last time."""
    parent = turn.book.get(session.parent) if session.parent else None
    if parent is not None:
        children = [
            replace(child, audit=session.audit()) if child.uid == session.uid else child for child in parent.children
        ]
        if children != parent.children:
            turn.book.put(replace(parent, children=children))


def speak(turn: Turn) -> None:
    """What a head told may have been lost on its way: ask again, as long as somebody is missing."""
    for session in turn.book.counting():
        missing = list(_missing(turn, session))
        for batch in missing:
            if turn.now >= (batch.ended_at or 0.0) + ASK_SECONDS:
                turn.command(batch, "ask", ASK_SECONDS)
        if not missing and session.batch is None:
            turn.book.counted(session)
            for batch in session.batches:
                turn.hush(f"{batch.id}/")


def _missing(turn: Turn, session: Session) -> Iterator[Batch]:
    """Batches that have ended lately, and of whose members some have not counted."""
    for batch in session.batches:
        if batch.ended_at is None or turn.now >= batch.ended_at + HOPED_SECONDS:
            continue
        known = batch.audit.subscribers if batch.audit is not None else 0
        if known < sum(state == "moved" for state in batch.members.values()):
            yield batch
