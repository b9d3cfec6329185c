"""What counted deliveries mean for a session: reason, event and condition, before its end and after it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.core.session import made
from tests.core.session.alone import batch_of, context_at

from plimsoll.core.session import EmitEvent, Session
from plimsoll.core.session.batch import AuditTotals
from plimsoll.core.session.completion import end_attempt
from plimsoll.core.session.delivery_verdict import counts_text, delivered_condition, with_new_counts
from plimsoll.core.session.state import PastAttempt, SessionVerdict
from plimsoll.core.session.status import with_conditions

MOVED = SessionVerdict(reason="Moved", message="2 moved")
BAD = AuditTotals(subscribers=2, lost=3, reordered=1)
TEXT = "3 deliveries lost, 0 duplicated, 1 reordered, as counted by 2 moved subscribers"


def session(audit: AuditTotals | None = None, **fields: Any) -> Session:
    batch = batch_of(members={"x": "moved", "y": "moved"}, ended_at=102.0, cut_at=101.0, state="done", audit=audit)
    return made.session("s", batches=[batch], **{"phase": "Stabilizing", **fields})


def over(audit: AuditTotals | None = None, **fields: Any) -> Session:
    return session(audit, **{"phase": "Succeeded", "reason": "Moved", "message": "2 moved", "ended_at": 9.0, **fields})


def events(context: Any) -> list[tuple[str, str, str]]:
    return [(one.type, one.reason, one.message) for one in context.outbox.effects if isinstance(one, EmitEvent)]


@pytest.mark.parametrize("fault", ["lost", "duplicated", "reordered"])
def test_each_fault_is_the_reason_of_a_session_that_has_moved_all(fault: str):
    context = context_at(104.0)
    ended = end_attempt(context, None, session(AuditTotals(subscribers=2, **{fault: 1})), "Succeeded", MOVED)
    assert (ended.phase, ended.reason) == ("Succeeded", "DeliveryFaults")
    assert ended.message.startswith("2 moved; ")
    assert [(kind, reason) for kind, reason, _ in events(context)] == [("Warning", "DeliveryFaults")]


@pytest.mark.parametrize("audit", [None, AuditTotals(subscribers=2), AuditTotals(subscribers=2, suppressed=4)])
def test_without_a_fault_the_reason_is_the_usual_one(audit: AuditTotals | None):
    context = context_at(104.0)
    ended = end_attempt(context, None, session(audit), "Succeeded", MOVED)
    assert (ended.reason, ended.message) == ("Moved", "2 moved")
    assert events(context) == [("Normal", "Moved", "Succeeded: 2 moved")]


def test_a_session_that_fails_keeps_its_reason():
    verdict = SessionVerdict(reason="DeadlineExceeded", message="too late")
    ended = end_attempt(context_at(104.0), None, session(BAD), "Failed", verdict)
    assert (ended.reason, ended.message) == ("DeadlineExceeded", "too late")
    assert delivered_condition(ended).status == "False"


def test_a_fault_of_an_earlier_attempt_counts():
    past = PastAttempt(
        number=1, phase="Failed", reason="x", message="y", started_at=1.0, ended_at=2.0, planned=2, audit=BAD
    )
    ended = end_attempt(context_at(104.0), None, session(history=[past], attempt=2), "Succeeded", MOVED)
    assert ended.reason == "DeliveryFaults"
    assert delivered_condition(ended).status == "False"


def test_counts_that_come_after_the_end_change_what_is_said_of_it():
    context = context_at(104.0)
    told = with_new_counts(context.outbox, over(), over(BAD))
    assert (told.phase, told.reason, told.message) == ("Succeeded", "DeliveryFaults", f"2 moved; {TEXT}")
    assert events(context) == [("Warning", "DeliveryFaults", TEXT)]
    worse = AuditTotals(subscribers=3, lost=4)
    again = with_new_counts(context.outbox, told, replace(told, batches=over(worse).batches))
    assert again.message == f"2 moved; {counts_text(worse, 'subscribers')}"
    assert len(events(context)) == 2


def test_counts_without_new_faults_are_not_passed_on():
    context = context_at(104.0)
    good = over(AuditTotals(subscribers=2, suppressed=1))
    assert with_new_counts(context.outbox, over(), good) is good
    assert events(context) == []


def test_faults_before_the_end_are_an_event_and_not_yet_a_reason():
    context = context_at(104.0)
    found = with_new_counts(context.outbox, session(), session(BAD))
    assert (found.phase, found.reason) == ("Stabilizing", "")
    assert events(context) == [("Warning", "DeliveryFaults", TEXT)]


@pytest.mark.parametrize(
    ("found", "status", "reason"),
    [
        (session(), "Unknown", "NotAudited"),
        (session(AuditTotals(subscribers=2)), "Unknown", "NotAudited"),
        (session(BAD), "False", "DeliveryFaults"),
        (over(), "Unknown", "NotAudited"),
        (over(AuditTotals(subscribers=2, suppressed=3)), "True", "Delivered"),
        (over(BAD), "False", "DeliveryFaults"),
    ],
)
def test_the_condition(found: Session, status: str, reason: str):
    (told,) = [one for one in with_conditions(found, 105.0).conditions if one["type"] == "Delivered"]
    assert (told["status"], told["reason"]) == (status, reason)


def test_a_session_that_began_no_batch_has_no_such_condition():
    found = with_conditions(made.session("s", phase="Rejected", ended_at=9.0), 10.0)
    assert "Delivered" not in [one["type"] for one in found.conditions]
