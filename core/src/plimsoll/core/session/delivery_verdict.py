"""What the delivery audit means for a session: its reason, its event and its condition `Delivered`.

Counts may come after the end of a session, so its end is said again when they show a fault.
"""

from __future__ import annotations

from typing import Final, Literal, Protocol

from msgspec.structs import replace

from plimsoll.core.session.attempts import full_audit
from plimsoll.core.session.batch import AuditTotals
from plimsoll.core.session.state import Session, SessionVerdict
from plimsoll.core.spec.status.conditions import Condition

DELIVERY_FAULTS: Final = "DeliveryFaults"
NOTHING_TO_AUDIT: Final = "NothingToAudit"


class EventOutbox(Protocol):
    def emit(self, session: Session, reason: str, message: str, type_: Literal["Normal", "Warning"] = "Normal") -> None:
        """Add an event about a session, for people."""


def counts_text(audit: AuditTotals, what: str) -> str:
    """The numbers of faults, and how many subscribers have counted, in words."""
    who = f"{audit.subscribers} moved {what}"
    if audit.publishers:
        who = f"{audit.subscribers} of {audit.asked} subscribers asked, about {audit.publishers} moved publishers"
    return (
        f"{audit.lost} deliveries lost, {audit.duplicated} duplicated, {audit.reordered} reordered, as counted by {who}"
    )


def final_verdict(session: Session, verdict: SessionVerdict) -> SessionVerdict:
    """Why a session has succeeded: a counted fault comes before the other reasons."""
    audit = full_audit(session)
    if not audit.has_faults:
        return verdict
    return replace(
        verdict, reason=DELIVERY_FAULTS, message=f"{verdict.message}; {counts_text(audit, session.member_noun)}"
    )


def with_new_counts(outbox: EventOutbox, before: Session, after: Session) -> Session:
    """The session after counts have come: new faults are told in an event, and as the reason if it has succeeded."""
    was, audit = full_audit(before), full_audit(after)
    if audit.faults == was.faults:
        return after
    outbox.emit(after, DELIVERY_FAULTS, counts_text(audit, after.member_noun), "Warning")
    if after.phase != "Succeeded":
        return after
    base = after.message.removesuffix(f"; {counts_text(was, after.member_noun)}")
    return after.because(DELIVERY_FAULTS, f"{base}; {counts_text(audit, after.member_noun)}")


def delivered_condition(session: Session) -> Condition:
    """Whether all due deliveries reached the moved subscribers; Unknown until the end, and where none has counted."""
    audit = full_audit(session)
    if audit.has_faults:
        return Condition("Delivered", "False", DELIVERY_FAULTS, counts_text(audit, session.member_noun))
    if audit.subscribers and session.is_over:
        return Condition("Delivered", "True", "Delivered", counts_text(audit, session.member_noun))
    if session.is_over and audit.publishers and not audit.asked:
        return Condition("Delivered", "Unknown", NOTHING_TO_AUDIT, nothing_text(audit))
    return Condition("Delivered", "Unknown", "NotAudited", _unaudited_text(session, audit))


def nothing_text(audit: AuditTotals) -> str:
    """Why no subscriber was asked about publishers that have moved."""
    return f"no subscriber takes what the {audit.publishers} moved publishers have published lately"


def _unaudited_text(session: Session, audit: AuditTotals) -> str:
    if not session.is_over:
        return "deliveries are counted at its end"
    if audit.asked:
        return f"none of the {audit.asked} subscribers that were asked has said what it was given"
    if session.kind == "publishers":
        return "no publisher has moved, or their head has not said what subscribers were given"
    return f"none of its {session.member_noun} has moved and counted"
