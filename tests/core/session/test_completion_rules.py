"""The end of an attempt: what is kept of it, how long its brokers stay reserved, whether it is tried again."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.core.session.model import spec_of

from plimsoll.core.session import EmitEvent, EngineSettings, Session, SessionRequest
from plimsoll.core.session.attempts import past_attempt
from plimsoll.core.session.batch import AuditTotals, Batch
from plimsoll.core.session.completion import (
    closing_seconds,
    end_attempt,
    end_by_verdict,
    has_retry_left,
    schedule_retry,
)
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.session_plan import Offer, PlannedPair, SessionPlan
from plimsoll.core.session.state import ChildSession, FinalPhase, PastAttempt, Phase, SessionVerdict

WHY = SessionVerdict(reason="HeadGone", message="it does not answer", again=True)
NOT_AGAIN = SessionVerdict(reason="HeadGone", message="it does not answer")


def context_at(now: float) -> EngineContext:
    context = EngineContext(3, EngineSettings())
    context.outbox.now = now
    return context


def request(**fields: Any) -> SessionRequest:
    given: dict[str, Any] = {
        "scope": "Local", "mode": "Execute", "source": {"name": "a"}, "target": {"name": "b"},
        "select": {"count": 2}, "retries": 3, "limits": {"queueFor": "60s"}, **fields,
    }  # fmt: skip
    return SessionRequest("n", "u", 1, spec_of(**given))


def batch(**members: str) -> Batch:
    return Batch(
        id="3.1", head="h", head_epoch=1, source="a", target="b", target_head="h", replay=False, prepare_seconds=10.0,
        drain_seconds=30.0, begun_at=50.0, members=members,
    )  # fmt: skip


def session(**fields: Any) -> Session:
    pair = PlannedPair(source="a", target="b", source_head="h", target_head="h", members=["x", "y", "z"])
    given: dict[str, Any] = {
        "requested_at": 10.0,
        "queued_at": 10.0,
        "phase_at": 60.0,
        "deadline_at": 200.0,
        "started_at": 40.0,
        "phase": "Draining",
        "sources": ["a"],
        "targets": ["b"],
        "plan": SessionPlan(hash="p", pairs=[pair], made_at=45.0),
        "approved": "p",
        "batches": [batch(x="moved", y="stayed")],
        **fields,
    }
    return Session(uid="u", name="n", **given)


def test_the_end_of_an_attempt_without_another():
    context = context_at(100.0)
    found = end_attempt(context, None, session(), "Failed", WHY)
    assert (found.phase, found.reason, found.message) == ("Failed", "HeadGone", "it does not answer")
    assert (found.ended_at, found.phase_at, found.may_retry, found.holds_until) == (100.0, 100.0, True, None)
    assert found.spent == {"Draining": 40.0, "Failed": 0.0}
    assert context.outbox.effects == [EmitEvent("u", "n", "Warning", "HeadGone", "Failed: it does not answer")]


def test_what_ends_well_is_told_as_normal():
    context = context_at(100.0)
    found = end_attempt(context, request(), session(), "Succeeded", SessionVerdict(reason="Done", message="all"))
    assert context.outbox.effects == [EmitEvent("u", "n", "Normal", "Done", "Succeeded: all")]
    assert (found.is_over, found.may_retry, found.history) == (True, False, [])


def test_subscribers_of_edges_are_listed_again_after_an_end():
    context = context_at(100.0)
    for uid in ("u", "other"):
        context.listings.of(uid, "a", "h")
    end_attempt(context, None, session(), "Failed", WHY)
    asked = len(context.outbox.effects)
    context.listings.of("other", "a", "h")
    assert len(context.outbox.effects) == asked
    context.listings.of("u", "a", "h")
    assert len(context.outbox.effects) == asked + 1


@pytest.mark.parametrize(
    ("now", "members", "until"),
    [
        (60.0, {"x": "moved", "y": "unknown"}, 95.0),
        (94.9, {"y": "unknown"}, 95.0),
        (95.0, {"y": "unknown"}, None),
        (96.0, {"y": "unknown"}, None),
        (60.0, {"y": "stayed"}, None),
    ],
)
def test_brokers_are_kept_while_an_unknown_batch_may_go_on(now: float, members: dict[str, str], until: float | None):
    of = session(batches=[replace(batch(**members), cut_at=55.0)])
    found = end_attempt(context_at(now), None, of, "Failed", WHY)
    assert found.holds_until == until


def test_a_batch_that_was_never_to_be_cut_keeps_no_brokers():
    found = end_attempt(context_at(60.0), None, session(batches=[batch(y="unknown")]), "Failed", WHY)
    assert found.holds_until is None


def test_only_the_last_batch_keeps_brokers():
    batches = [batch(x="unknown"), batch(y="moved")]
    assert end_attempt(context_at(60.0), None, session(batches=batches), "Failed", WHY).holds_until is None
    assert end_attempt(context_at(60.0), None, session(batches=[]), "Failed", WHY).holds_until is None


@pytest.mark.parametrize(
    ("asked", "of", "expected"),
    [
        (request(), {}, True),
        (request(), {"attempt": 3}, True),
        (request(), {"attempt": 4}, False),
        (request(retries=0), {}, False),
        (request(), {"may_retry": False}, False),
        (request(), {"parent": "p"}, False),
        (request(stop=True), {}, False),
        (SessionRequest("n", "u", 1, request().spec, deleting=True), {}, False),
    ],
)
def test_when_there_is_another_attempt(asked: SessionRequest, of: dict[str, Any], expected: bool):
    over = session(**{"may_retry": True, "ended_at": 100.0, **of})
    assert has_retry_left(asked, over) is expected
    found = end_attempt(
        context_at(100.0), asked, session(**of), "Failed", WHY if of.get("may_retry", True) else NOT_AGAIN
    )
    assert found.is_over is not expected


def test_another_attempt_starts_over():
    context = context_at(100.0)
    before = session(
        ended_at=100.0, phase_at=100.0, phase="Failed", may_retry=True, verdict=WHY, moving_at=50.0, wanted=3, round=2,
        asked="fingerprint", offers=[Offer(edge="b", metric="input", difference=0.5)],
    )  # fmt: skip
    found = schedule_retry(context, request(), before)
    message = "attempt 2 of 4 begins in 5 s"
    assert found == Session(
        uid="u", name="n", requested_at=10.0, queued_at=105.0, phase_at=100.0, deadline_at=165.0, retry_at=105.0,
        reason="Retrying", message=message, attempt=2, wanted=2, history=[past_attempt(before)],
        spent={"Failed": 0.0, "Requested": 0.0},
    )  # fmt: skip
    assert context.outbox.effects == [EmitEvent("u", "n", "Normal", "Retrying", message)]


def test_pauses_double_up_to_a_bound():
    pauses = [
        schedule_retry(context_at(100.0), request(), session(attempt=number)).retry_at for number in (1, 2, 3, 4, 5, 9)
    ]
    assert pauses == [105.0, 110.0, 120.0, 140.0, 160.0, 160.0]


def test_the_next_attempt_waits_on_the_fleets_clock():
    context = EngineContext(3, EngineSettings(time_factor=2.0))
    context.outbox.now = 100.0
    found = schedule_retry(context, request(), session())
    assert (found.retry_at, found.deadline_at) == (110.0, 230.0)


def test_how_many_are_still_wanted():
    context = context_at(100.0)
    found = [schedule_retry(context, request(), session(wanted=wanted)).wanted for wanted in (None, 0, 1, 3)]
    assert found == [None, 0, 0, 2]


def test_what_is_kept_of_an_attempt():
    over = session(phase="Failed", reason="HeadGone", message="so", ended_at=99.0, attempt=2)
    assert past_attempt(over) == PastAttempt(
        number=2, phase="Failed", reason="HeadGone", message="so", started_at=40.0, ended_at=99.0, planned=3,
        counts={"moved": 1, "stayed": 1}, moved=["x"], audit=AuditTotals(),
    )  # fmt: skip
    early = past_attempt(session(started_at=None, plan=None, batches=[]))
    assert (early.started_at, early.ended_at, early.planned, early.counts, early.moved) == (10.0, 60.0, 0, {}, [])


@pytest.mark.parametrize(
    ("phase", "state", "expected"),
    [
        ("Requested", "moved", "Rejected"),
        ("Sampling", "stayed", "Rejected"),
        ("Preparing", "stayed", "RolledBack"),
        ("Cutting", "", "RolledBack"),
        ("Draining", "moved", "Failed"),
        ("Draining", "unknown", "RolledBack"),
        ("Stabilizing", "returned", "Failed"),
    ],
)
def test_how_an_attempt_ends_that_is_ended(phase: str, state: str, expected: FinalPhase):
    of = session(phase=phase, batches=[batch(x=state)])
    assert end_by_verdict(context_at(60.0), None, of, WHY).phase == expected
    assert of.has_cut is (state not in ("", "stayed", "unknown"))


def test_behind_a_cut_a_member_that_is_unknown_may_have_moved():
    of = session(phase="Draining", batches=[replace(batch(x="unknown"), cut_at=55.0)])
    assert end_by_verdict(context_at(60.0), None, of, WHY).phase == "Failed"


@pytest.mark.parametrize(("phase", "has_cut"), [("RolledBack", False), ("Rejected", False), ("Failed", True)])
def test_a_child_with_unknown_members_may_have_cut_them_unless_it_has_rolled_back(phase: Phase, has_cut: bool):
    child = ChildSession(name="c", source="a", target="b", members=2, phase=phase, counts={"unknown": 1})
    assert session(kind="drain", batches=[], children=[child]).has_cut is has_cut


def test_a_parent_is_behind_a_cut_when_a_child_is():
    child = ChildSession(name="c", source="a", target="b", members=2, counts={"moved": 1})
    assert session(kind="drain", batches=[], children=[child]).has_cut


@pytest.mark.parametrize(
    ("of", "seconds"),
    [
        ({"started_at": 40.0, "deadline_at": 200.0}, 5.0),
        ({"started_at": 40.0, "deadline_at": 60.0}, 4.0),
        ({"started_at": None, "deadline_at": 20.0}, 2.0),
        ({"started_at": 0.0, "deadline_at": 20.0}, 4.0),
    ],
)
def test_how_long_an_attempt_closes(of: dict[str, Any], seconds: float):
    assert closing_seconds(context_at(60.0), session(**of)) == pytest.approx(seconds)
