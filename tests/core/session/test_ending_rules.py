"""What becomes of an attempt that ends: what is kept of it, how long its brokers wait, whether it is tried again."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.session.model import spec_of

from plimsoll.core.session import Request, Session, Settings, Tell
from plimsoll.core.session.ending import again, attempt_of, closing_seconds, end, ended_by, has_cut, may_try_again
from plimsoll.core.session.record import Attempt, Audit, Batch, Child, End, Offer, Pair, Plan, Verdict
from plimsoll.core.session.turn import Turn

WHY = Verdict(reason="HeadGone", message="it does not answer", again=True)
NOT_AGAIN = Verdict(reason="HeadGone", message="it does not answer")


def turn_at(now: float) -> Turn:
    turn = Turn(3, Settings())
    turn.now = now
    return turn


def request(**fields: Any) -> Request:
    given: dict[str, Any] = {
        "scope": "Local", "mode": "Execute", "source": {"name": "a"}, "target": {"name": "b"},
        "select": {"count": 2}, "retries": 3, "limits": {"queueFor": "60s"}, **fields,
    }  # fmt: skip
    return Request("n", "u", 1, spec_of(**given))


def batch(**members: str) -> Batch:
    return Batch(
        id="3.1", head="h", head_epoch=1, source="a", target="b", target_head="h", replay=False, prepare_seconds=10.0,
        drain_seconds=30.0, begun_at=50.0, members=members,
    )  # fmt: skip


def session(**fields: Any) -> Session:
    pair = Pair(source="a", target="b", source_head="h", target_head="h", members=["x", "y", "z"])
    given: dict[str, Any] = {
        "requested_at": 10.0, "queued_at": 10.0, "phase_at": 60.0, "deadline_at": 200.0, "started_at": 40.0,
        "phase": "Draining", "sources": ["a"], "targets": ["b"], "plan": Plan(hash="p", pairs=[pair], made_at=45.0),
        "approved": "p", "batches": [batch(x="moved", y="stayed")], **fields,
    }  # fmt: skip
    return Session(uid="u", name="n", **given)


def test_the_end_of_an_attempt_without_another():
    turn = turn_at(100.0)
    found = end(turn, None, session(), "Failed", WHY)
    assert (found.phase, found.reason, found.message) == ("Failed", "HeadGone", "it does not answer")
    assert (found.ended_at, found.phase_at, found.may_retry, found.holds_until) == (100.0, 100.0, True, None)
    assert found.spent == {"Draining": 40.0, "Failed": 0.0}
    assert turn.effects == [Tell("u", "n", "Warning", "HeadGone", "Failed: it does not answer")]


def test_what_ends_well_is_told_as_normal():
    turn = turn_at(100.0)
    found = end(turn, request(), session(), "Succeeded", Verdict(reason="Done", message="all"))
    assert turn.effects == [Tell("u", "n", "Normal", "Done", "Succeeded: all")]
    assert (found.is_over, found.may_retry, found.history) == (True, False, [])


def test_whom_edges_serve_is_asked_anew_after_an_end():
    turn = turn_at(100.0)
    for uid in ("u", "other"):
        turn.listing(uid, "a", "h")
    end(turn, None, session(), "Failed", WHY)
    asked = len(turn.effects)
    turn.listing("other", "a", "h")
    assert len(turn.effects) == asked
    turn.listing("u", "a", "h")
    assert len(turn.effects) == asked + 1


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
    found = end(turn_at(now), None, session(batches=[batch(**members)]), "Failed", WHY)
    assert found.holds_until == until


def test_only_the_last_batch_keeps_brokers():
    batches = [batch(x="unknown"), batch(y="moved")]
    assert end(turn_at(60.0), None, session(batches=batches), "Failed", WHY).holds_until is None
    assert end(turn_at(60.0), None, session(batches=[]), "Failed", WHY).holds_until is None


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
        (Request("n", "u", 1, request().spec, deleting=True), {}, False),
    ],
)
def test_when_there_is_another_attempt(asked: Request, of: dict[str, Any], expected: bool):
    over = session(**{"may_retry": True, "ended_at": 100.0, **of})
    assert may_try_again(asked, over) is expected
    found = end(turn_at(100.0), asked, session(**of), "Failed", WHY if of.get("may_retry", True) else NOT_AGAIN)
    assert found.is_over is not expected


def test_another_attempt_begins_anew():
    turn = turn_at(100.0)
    before = session(
        ended_at=100.0, phase_at=100.0, phase="Failed", may_retry=True, verdict=WHY, moving_at=50.0, wanted=3, round=2,
        asked="fingerprint", offers=[Offer(edge="b", metric="input", difference=0.5)],
    )  # fmt: skip
    found = again(turn, request(), before)
    message = "attempt 2 of 4 begins in 5 s"
    assert found == Session(
        uid="u", name="n", requested_at=10.0, queued_at=105.0, phase_at=100.0, deadline_at=165.0, retry_at=105.0,
        reason="Retrying", message=message, attempt=2, wanted=2, history=[attempt_of(before)],
        spent={"Failed": 0.0, "Requested": 0.0},
    )  # fmt: skip
    assert turn.effects == [Tell("u", "n", "Normal", "Retrying", message)]


def test_pauses_double_up_to_a_bound():
    pauses = [again(turn_at(100.0), request(), session(attempt=number)).retry_at for number in (1, 2, 3, 4, 5, 9)]
    assert pauses == [105.0, 110.0, 120.0, 140.0, 160.0, 160.0]


def test_the_next_attempt_waits_on_the_fleets_clock():
    turn = Turn(3, Settings(time_factor=2.0))
    turn.now = 100.0
    found = again(turn, request(), session())
    assert (found.retry_at, found.deadline_at) == (110.0, 230.0)


def test_how_many_are_still_wanted():
    assert [again(turn_at(100.0), request(), session(wanted=wanted)).wanted for wanted in (None, 0, 1, 3)] == [
        None, 0, 0, 2,
    ]  # fmt: skip


def test_what_is_kept_of_an_attempt():
    over = session(phase="Failed", reason="HeadGone", message="so", ended_at=99.0, attempt=2)
    assert attempt_of(over) == Attempt(
        number=2, phase="Failed", reason="HeadGone", message="so", started_at=40.0, ended_at=99.0, planned=3,
        counts={"moved": 1, "stayed": 1}, moved=["x"], audit=Audit(),
    )  # fmt: skip
    early = attempt_of(session(started_at=None, plan=None, batches=[]))
    assert (early.started_at, early.ended_at, early.planned, early.counts, early.moved) == (10.0, 60.0, 0, {}, [])


@pytest.mark.parametrize(
    ("phase", "state", "expected"),
    [
        ("Requested", "moved", "Rejected"),
        ("Sampling", "stayed", "Rejected"),
        ("Preparing", "stayed", "RolledBack"),
        ("Cutting", "", "RolledBack"),
        ("Draining", "moved", "Failed"),
        ("Draining", "unknown", "Failed"),
        ("Stabilizing", "returned", "Failed"),
    ],
)
def test_how_an_attempt_ends_that_is_ended(phase: str, state: str, expected: End):
    of = session(phase=phase, batches=[batch(x=state)])
    assert ended_by(turn_at(60.0), None, of, WHY).phase == expected
    assert has_cut(of) is (state not in ("", "stayed"))


def test_a_parent_is_behind_a_cut_when_a_child_is():
    child = Child(name="c", source="a", target="b", members=2, counts={"moved": 1})
    assert has_cut(session(is_parent=True, batches=[], children=[child]))


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
    assert closing_seconds(turn_at(60.0), session(**of)) == pytest.approx(seconds)
