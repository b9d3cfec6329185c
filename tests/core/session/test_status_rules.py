"""The numbers and words of a status, one by one, for a session that is known exactly."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from plimsoll.core.session import moves, observed_session, status
from plimsoll.core.session.batch import AuditTotals, Batch
from plimsoll.core.session.session_plan import (
    Forecast,
    LoadFigures,
    MoveGroup,
    Offer,
    PlannedPair,
    SessionPlan,
    StayGroup,
)
from plimsoll.core.session.state import ChildSession, PastAttempt, Session
from plimsoll.core.session.status import progress, with_conditions


def session(**fields: Any) -> Session:
    given: dict[str, Any] = {"requested_at": 0.0, "queued_at": 0.0, "phase_at": 10.0, "deadline_at": 100.0, **fields}
    return Session(uid="u", name="n", **given)


def plan(*members: str, **fields: Any) -> SessionPlan:
    pair = PlannedPair(source="a", target="b", source_head="h", target_head="h", members=list(members))
    return SessionPlan(hash="p1", pairs=[pair], made_at=0.0, **fields)


def batch(number: int, **fields: Any) -> Batch:
    given: dict[str, Any] = {"replay": False, "prepare_seconds": 1.0, "drain_seconds": 1.0, "begun_at": 0.0, **fields}
    return Batch(id=f"7.{number}", head="h", head_epoch=1, source="a", target="b", target_head="h", **given)


def forecast(**fields: Any) -> Forecast:
    given: dict[str, Any] = {
        "edge": "a", "utilization_before": 0.9, "utilization_after": 0.6, "subscribers_before": 9,
        "subscribers_after": 6, **fields,
    }  # fmt: skip
    return Forecast(**given)


def conditions(of: Session) -> dict[str, tuple[str, str, str]]:
    found = with_conditions(of, 20.0).conditions
    return {one["type"]: (one["status"], one["reason"], one["message"]) for one in found}


def test_conditions_before_there_is_a_plan():
    assert conditions(session(phase="Sampling", message="two of three")) == {
        "Planned": ("False", "Sampling", "two of three"),
        "Succeeded": ("Unknown", "Sampling", "two of three"),
    }
    assert conditions(session(reason="Queued"))["Planned"] == ("False", "Queued", "")
    assert conditions(session(reason="Queued"))["Succeeded"] == ("Unknown", "Queued", "")


def test_conditions_of_a_plan_without_approval():
    waiting = session(phase="Planned", plan=plan("x"), approved="p0")
    assert conditions(waiting)["Planned"] == ("True", "Planned", "plan p1: 1 subscribers")
    assert conditions(waiting)["Approved"] == ("False", "AwaitingApproval", "")
    stale = session(phase="Planned", plan=plan("x"), reason="AnotherPlan", message="p0 is not p1")
    assert conditions(stale)["Approved"] == ("False", "AnotherPlan", "p0 is not p1")


@pytest.mark.parametrize("over", [{}, {"ended_at": 20.0, "phase": "Rejected"}])
def test_an_approval_goes_with_its_plan(over: dict[str, Any]):
    approved = with_conditions(session(phase="Draining", plan=plan("x"), approved="p1"), 15.0)
    again = replace(
        approved, phase="Requested", plan=None, approved="", reason="Retrying", message="in 5 s", generation=2
    )
    found = with_conditions(replace(again, **over), 20.0)
    assert conditions(found)["Approved"] == ("False", "Retrying", "in 5 s")
    assert {one["observedGeneration"] for one in found.conditions} == {2}


def test_a_plan_that_is_over_waits_for_no_approval():
    over = session(phase="Planned", plan=plan("x"), ended_at=20.0, reason="DryRun", message="as asked")
    assert set(conditions(over)) == {"Planned", "Succeeded"}
    assert conditions(over)["Succeeded"] == ("True", "DryRun", "as asked")


@pytest.mark.parametrize(
    ("phase", "expected"), [("Succeeded", "True"), ("Failed", "False"), ("RolledBack", "False"), ("Rejected", "False")]
)
def test_the_condition_of_an_end(phase: str, expected: str):
    over = session(phase=phase, plan=plan("x"), approved="p1", ended_at=20.0, reason="Why", message="so")
    assert conditions(over)["Succeeded"] == (expected, "Why", "so")
    assert conditions(over)["Approved"] == ("True", "Approved", "plan p1")


def test_conditions_that_have_not_changed_leave_the_session_as_it_is():
    once = with_conditions(session(reason="Queued"), 20.0)
    assert with_conditions(once, 30.0) is once
    assert once.conditions[0]["lastTransitionTime"] == "1970-01-01T00:00:20Z"


def test_the_least_that_is_shown():
    found = status(session(sources=["a", "c"], attempt=2), 12.0)
    found.pop("progress")
    assert found == {
        "observedGeneration": 0, "phase": "Requested", "reason": "", "message": "", "conditions": [], "attempt": 2,
        "requestedAt": "1970-01-01T00:00:00Z", "deadlineAt": "1970-01-01T00:01:40Z", "source": "a, c", "target": "",
        "timeInPhases": [{"phase": "Requested", "milliseconds": 2000}], "history": [],
    }  # fmt: skip


def test_when_it_began_and_ended():
    found = status(session(started_at=5.0, ended_at=20.0, targets=["b"]), 30.0)
    assert (found["startedAt"], found["endedAt"], found["target"]) == (
        "1970-01-01T00:00:05Z", "1970-01-01T00:00:20Z", "b",
    )  # fmt: skip


def test_time_in_phases_goes_on_until_the_end():
    spent = {"Requested": 10.0, "Draining": 1.23456}
    running = session(phase="Draining", spent=spent, phase_at=10.0)
    assert spent_in(running, 14.0) == {"Requested": 10_000, "Draining": 5235}
    assert spent_in(running, 9.0)["Draining"] == 1235, "a clock that went back takes nothing away"
    over = session(phase="Succeeded", spent={"Draining": 4.0, "Succeeded": 0.0}, phase_at=10.0, ended_at=10.0)
    assert spent_in(over, 99.0) == {"Draining": 4000, "Succeeded": 0}


def spent_in(of: Session, now: float) -> dict[str, int]:
    return {one["phase"]: one["milliseconds"] for one in status(of, now)["timeInPhases"]}


def moving(done: int, **fields: Any) -> Session:
    children = [ChildSession(name="c", source="a", target="b", members=40, counts={"moved": done})]
    given: dict[str, Any] = {"phase": "Draining", "moving_at": 10.0, "kind": "drain", "children": children, **fields}
    return session(**given)


def test_progress_in_numbers():
    found = progress(moving(7), 13.0)
    assert found == {
        "planned": 40, "moved": 7, "stayed": 0, "away": 0, "gone": 0, "returned": 0, "detached": 0,
        "unknown": 0, "percent": 17,
        "movesPerMinute": 140, "etaSeconds": 15,
    }  # fmt: skip
    assert progress(session(), 13.0)["percent"] == 0


@pytest.mark.parametrize(
    ("of", "now"),
    [
        (moving(7, moving_at=None), 13.0),
        (moving(7), 10.0),
        (moving(7), 9.0),
        (moving(0), 13.0),
        (moving(7, phase="Stabilizing"), 13.0),
    ],
)
def test_no_rate_without_time_or_moves(of: Session, now: float):
    assert not {"movesPerMinute", "etaSeconds"} & set(progress(of, now))


def test_who_was_asked():
    offers = [Offer(edge=f"e{n}", metric="input", difference=0.25, answer="OK", message="free") for n in range(25)]
    found = status(session(offers=offers), 12.0)["asked"]
    assert found[0] == {"name": "e0", "metric": "input", "difference": "250m", "answer": "OK", "message": "free"}
    assert [one["name"] for one in found] == [f"e{n}" for n in range(20)]
    assert "asked" not in status(session(), 12.0)


def test_the_plan_of_a_policy_and_of_people():
    shown = status(session(plan=plan("x", "y", rejected={"NotServed": ["z"]}, why="fast")), 12.0)
    assert shown["planHash"] == "p1"
    assert shown["plan"] == {
        "subscribers": 2, "pairs": [{"source": "a", "target": "b", "subscribers": 2}], "handover": "drain",
        "why": "fast", "rejected": [{"reason": "NotServed", "subscribers": 1}],
    }  # fmt: skip
    chosen = plan(
        "x", policy="Padres", metric="input", stop="even", moves=[MoveGroup(count=1, reason="most", what="[a,>,1]")],
        stays=[StayGroup(kind="TooBig", reason="too much", count=3, what="[b,>,1]")],
    )  # fmt: skip
    shown = status(session(plan=chosen), 12.0)["plan"]
    assert (shown["policy"], shown["metric"], shown["stopped"]) == ("Padres", "input", "even")
    assert shown["moves"] == [{"subscribers": 1, "what": "[a,>,1]", "reason": "most"}]
    assert shown["stays"] == [{"subscribers": 3, "kind": "TooBig", "what": "[b,>,1]", "reason": "too much"}]


def test_what_was_promised():
    loads = LoadFigures(input=0.9, output=0.4, match_seconds=0.002)
    shown = status(session(plan=plan("x", drain_seconds=1.23456, forecasts=[forecast(before=loads)])), 12.0)
    edge = {
        "name": "a", "utilizationBeforePercent": 90, "utilizationAfterPercent": 60,
        "subscribersBefore": 9, "subscribersAfter": 6,
        "before": {"inputPercent": 90, "outputPercent": 40, "matchMicroseconds": 2000},
    }  # fmt: skip
    assert shown["predicted"] == {"drainMilliseconds": 1235, "edges": [edge]}
    assert shown["measured"] == {"edges": []}


def test_what_came_of_it():
    one = forecast(
        utilization_measured=0.71234567, subscribers_measured=7,
        after=LoadFigures(input=0.6, output=0.5, match_seconds=0.001),
        measured=LoadFigures(input=0.71234567, output=0.43214, match_seconds=0.00123456),
    )  # fmt: skip
    measured = status(session(plan=plan("x", forecasts=[one, forecast(utilization_measured=0.9)])), 12.0)["measured"]
    assert measured["errorPercentMax"] == 30
    assert measured["edges"][0] == {
        "name": "a", "utilizationPercent": 71, "subscribers": 7, "errorPercent": 11,
        "after": {"inputPercent": 71, "outputPercent": 43, "matchMicroseconds": 1235},
        "error": {"inputPercent": 11, "outputPercent": 7, "matchMicroseconds": 235},
    }  # fmt: skip


@pytest.mark.parametrize("side", ["after", "measured"])
def test_without_both_sides_there_is_no_error_of_loads(side: str):
    loads = {side: LoadFigures(input=0.6, output=0.5, match_seconds=0.001)}
    one = forecast(utilization_measured=0.5, subscribers_measured=5, **loads)
    [edge] = status(session(plan=plan("x", forecasts=[one])), 12.0)["measured"]["edges"]
    assert edge == {"name": "a", "utilizationPercent": 50, "subscribers": 5, "errorPercent": 10}


def test_an_edge_that_is_idle_now_is_measured_too():
    one = forecast(utilization_measured=0.0, subscribers_measured=0)
    measured = status(session(plan=plan("x", forecasts=[one, forecast()])), 12.0)["measured"]
    edge = {"name": "a", "utilizationPercent": 0, "subscribers": 0, "errorPercent": 60}
    assert measured == {"edges": [edge], "errorPercentMax": 60}


def test_a_matching_delay_of_seconds_is_told_to_the_microsecond():
    loads = LoadFigures(input=0.9, output=0.4, match_seconds=2.25)
    shown = status(session(plan=plan("x", forecasts=[forecast(before=loads)])), 12.0)
    assert shown["predicted"]["edges"][0]["before"]["matchMicroseconds"] == 2_250_000


def test_how_long_batches_drained():
    batches = [
        batch(1, members={"x": "moved"}, cut_at=10.0, ended_at=11.23456),
        batch(2, members={"y": "moved"}, cut_at=20.0, ended_at=23.0003, replay=True),
        batch(3, members={"z": "stayed"}, ended_at=30.0),
        batch(4, members={"v": "", "w": ""}, cut_at=30.0, state="cutting", intent="cut", why="short", reason="r"),
    ]
    shown = status(session(plan=plan("x", "y", "z", "v", "w"), batches=batches), 31.0)
    assert shown["measured"] == {"edges": [], "drainMillisecondsMax": 3000, "drainMillisecondsMean": 2117}
    assert shown["batches"] == {"begun": 4, "ended": 3, "byReplay": 1}
    assert shown["batch"] == {
        "id": "7.4", "state": "cutting", "intent": "cut", "subscribers": 2, "handover": "drain", "why": "short",
        "reason": "r",
    }  # fmt: skip
    assert status(session(batches=batches[:2]), 31.0)["batch"]["handover"] == "replay"


def test_children_and_earlier_attempts():
    sums = {"subscribers": 2, "lost": 1, "duplicated": 0, "reordered": 3, "suppressed": 4}
    child = ChildSession(
        name="c", source="a", target="b", members=3, phase="Failed", reason="Why", counts={"moved": 2},
        audit=AuditTotals(**sums),
    )  # fmt: skip
    attempt = PastAttempt(
        number=1, phase="Failed", reason="Why", message="so", started_at=1.0, ended_at=2.0, planned=3,
        counts={"stayed": 3}, audit=AuditTotals(),
    )  # fmt: skip
    found = status(session(children=[child], history=[attempt]), 12.0)
    assert found["target"] == "b"
    assert found["children"] == [
        {
            "name": "c",
            "source": "a",
            "target": "b",
            "planned": 3,
            "phase": "Failed",
            "reason": "Why",
            "moved": 2,
            "audit": sums,
        }
    ]
    assert found["history"] == [
        {"number": 1, "phase": "Failed", "reason": "Why", "message": "so", "startedAt": "1970-01-01T00:00:01Z",
         "endedAt": "1970-01-01T00:00:02Z", "planned": 3, "stayed": 3, "audit": {"subscribers": 0}}
    ]  # fmt: skip


def test_an_audit_without_counts_is_not_zero():
    [one] = batches = [batch(1, members={"x": "moved", "y": "moved"}, ended_at=9.0)]
    assert status(session(batches=batches), 9.0)["audit"] == {"subscribers": 0}
    known = replace(one, audit=AuditTotals(subscribers=1, suppressed=2))
    sums = {"subscribers": 1, "lost": 0, "duplicated": 0, "reordered": 0, "suppressed": 2}
    assert status(session(batches=[known]), 9.0)["audit"] == sums
    assert "audit" not in status(session(batches=[batch(1, members={"x": "stayed"}, ended_at=9.0)]), 9.0)


def test_only_who_did_not_move_has_the_reason_of_its_batch():
    batches = [batch(1, members={"x": "moved", "y": "returned", "z": "again"}, ended_at=9.0, reason="source left")]
    given = plan("x", "y", "z", moves=[MoveGroup(count=1, reason="most"), MoveGroup(count=1, reason="next")])
    found = {one["subscriber"]: one for one in moves(session(plan=given, batches=batches))}
    assert {name: (one["outcome"], one["reason"], one["why"]) for name, one in found.items()} == {
        "x": ("moved", "", "most"), "y": ("returned", "source left", "next"), "z": ("", "", ""),
    }  # fmt: skip
    assert (found["x"]["source"], found["x"]["target"]) == ("a", "b")


def test_a_checker_sees_only_outcomes_that_there_are():
    found = observed_session(
        session(plan=plan("x", "y"), batches=[batch(1, members={"x": "moved"}, ended_at=9.0)]), 5.0
    )
    assert (dict(found.counts), found.planned, found.ended, found.at) == ({"moved": 1}, 2, False, 5.0)


def test_a_session_between_clusters_names_them():
    shown = status(session(kind="clusters", between=["east", "west"], sources=["a"], targets=["w"]), 12.0)
    assert (shown["source"], shown["target"]) == ("east", "west")
