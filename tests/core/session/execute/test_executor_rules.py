"""From batch to batch and to the end, rule by rule: what is waited for, what is kept, and when it is over."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.session.alone import (
    BEGAN,
    CLOSES,
    DEADLINE,
    batch_of,
    context_at,
    edge,
    forecast,
    plan_of,
    request_of,
    session_of,
)

from plimsoll.core.session import EngineSettings, FleetView, HeadView, Session
from plimsoll.core.session.batch import LOST_BEFORE_CUT, Batch
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.execute.executor import (
    finish_session,
    only_pair,
    outcomes_text,
    step_moving,
    step_stabilizing,
    with_measurements,
)
from plimsoll.core.session.execute.next_batch import BATCH_BYTES
from plimsoll.core.session.state import SessionKind, SessionVerdict

DONE = batch_of(members={"x": "moved"}, begun_at=100.0, ended_at=110.0, state="done")
STOPPED = SessionVerdict(reason="Stopped", message="stopped as requested")


def ended(number: int = 1, **fields: Any) -> Batch:
    return batch_of(id=f"4.{number}", ended_at=110.0, **{"members": {"x": "stayed"}, **fields})


# ---------------------------------------------------------------- the deadline


@pytest.mark.parametrize(("now", "reason"), [(CLOSES - 0.5, ""), (CLOSES, "DeadlineExceeded")])
def test_what_is_under_way_goes_on_until_the_attempt_closes(now: float, reason: str):
    one = batch_of(state="cut", intent="cut", cut_at=BEGAN + 40, since=BEGAN + 40)
    session = step_moving(context_at(now), request_of(), session_of(phase="Draining", batches=[one]))
    assert (session.verdict.reason if session.verdict is not None else "") == reason


@pytest.mark.parametrize(
    ("before", "after"), [("", "h had not reported the outcome by the deadline"), ("h is full", "h is full")]
)
def test_what_is_cut_short_says_why_or_keeps_what_was_said(before: str, after: str):
    one = batch_of(state="cut", intent="cut", cut_at=BEGAN + 40, reason=before, members={"x": "cut", "y": "moved"})
    session = step_moving(context_at(DEADLINE), request_of(), session_of(phase="Draining", batches=[one]))
    [last] = session.batches
    assert (last.reason, last.ended_at, last.members) == (after, DEADLINE, {"x": "unknown", "y": "moved"})


# ---------------------------------------------------------------- what the end of a batch means


def test_many_lost_batches_end_an_attempt_and_another_may_go_better():
    lost = [ended(number, members={"x": LOST_BEFORE_CUT}, reason="h has restarted") for number in range(1, 5)]
    three = session_of(batches=lost[:3]).with_batch(lost[2], 110.0)
    assert three.verdict is None
    four = session_of(batches=lost).with_batch(lost[3], 110.0)
    wanted = SessionVerdict(reason="HeadRestarts", message="4 batches were lost: h has restarted", again=True)
    assert four.verdict == wanted


@pytest.mark.parametrize(
    ("fields", "is_refused"),
    [
        ({"reason": "full"}, True),
        ({"reason": ""}, False),
        ({"reason": "full", "cut_at": 105.0}, False),
        ({"reason": "full", "state": "ready"}, False),
        ({"reason": "h has restarted", "members": {"x": LOST_BEFORE_CUT}}, False),
    ],
)
def test_a_batch_was_refused_if_it_never_began_and_there_is_a_reason(fields: dict[str, Any], is_refused: bool):
    session = session_of(batches=[ended()]).with_batch(ended(**fields), 110.0)
    assert session.verdict == (SessionVerdict(reason="Refused", message="full", again=True) if is_refused else None)


# ---------------------------------------------------------------- the next batch


def begun(session: Session, context: EngineContext) -> Session:
    return step_moving(context, request_of(), session)


def test_the_next_batch_is_prepared_after_any_outcome_of_the_last():
    session = begun(session_of(phase="Draining", phase_at=105.0, batches=[DONE]), context_at(111.0))
    assert (session.phase, session.phase_at, session.batches[-1].members) == ("Preparing", 111.0, {"y": ""})
    session = begun(session_of(phase_at=105.0, batches=[ended()]), context_at(111.0))
    assert (session.phase, session.phase_at, len(session.batches)) == ("Preparing", 105.0, 2)


@pytest.mark.parametrize(("gone", "reason"), [("a", "SourceNotReady"), ("b", "TargetNotReady")])
def test_nothing_begins_while_an_end_is_not_up(gone: str, reason: str):
    down = edge(gone, ready=False)
    context = context_at(101.0, a=down) if gone == "a" else context_at(101.0, b=down)
    session = begun(session_of(), context)
    assert (session.reason, session.batches, session.verdict) == (reason, [], None)


@pytest.mark.parametrize(
    ("batches", "now", "waits"),
    [([], 114.9, True), ([], 115.0, False), ([DONE], 124.9, True), ([DONE], 125.0, False)],
)
def test_an_end_that_is_not_up_is_waited_for_from_the_last_batch_on(batches: list[Batch], now: float, waits: bool):
    session = begun(session_of(batches=batches), context_at(now, b=edge("b", ready=False)))
    assert (session.reason == "TargetNotReady", session.verdict is None) == (waits, waits)
    if session.verdict is not None:
        assert (session.verdict.reason, session.verdict.again) == ("TargetNotReady", True)


@pytest.mark.parametrize(("now", "waits"), [(144.9, True), (145.0, False)])
def test_a_mediator_that_just_began_waits_for_an_end_as_long_again(now: float, waits: bool):
    """It knows nothing of the fleet at first, and the last batch may have ended long before its life."""
    context = context_at(now, b=edge("b", ready=False))
    context.started_at = 130.0
    session = begun(session_of(batches=[DONE]), context)
    assert (session.reason == "TargetNotReady", session.verdict is None) == (waits, waits)


def test_a_name_that_is_longer_than_a_batch_goes_alone():
    name = "x" * (BATCH_BYTES + 1)
    session = begun(session_of(plan=plan_of(name, "y")), context_at(101.0))
    assert list(session.batches[0].members) == [name]


def test_a_session_between_two_edges_has_one_pair():
    plan = plan_of("x")
    assert only_pair(session_of(plan=plan)) is plan.pairs[0]
    for other in (None, plan_of("x", pairs=[]), plan_of("x", pairs=[*plan.pairs, *plan.pairs])):
        with pytest.raises(AssertionError, match="one pair"):
            only_pair(session_of(plan=other))


# ---------------------------------------------------------------- while loads settle


def settling(**fields: Any) -> Session:
    """A user's session that stabilises since 110.0; its edges settle for three seconds."""
    return session_of(**{"phase": "Stabilizing", "phase_at": 110.0, "batches": [DONE], **fields})


@pytest.mark.parametrize(
    ("now", "fields", "is_over"),
    [
        (112.9, {}, False),
        (113.0, {}, True),
        (111.0, {"verdict": STOPPED}, True),
        (111.0, {"parent": "p"}, True),
    ],
)
def test_loads_settle_unless_no_session_waits_for_them(now: float, fields: dict[str, Any], is_over: bool):
    session = settling(**fields)
    after = step_stabilizing(context_at(now), request_of(), session)
    assert (after.phase, after.is_over) == ("Succeeded" if is_over else "Stabilizing", is_over)


def pressed(
    *, broker: str = "a", kind: SessionKind = "balance", is_urgent: bool = True, is_asked: bool = True
) -> Session:
    """The session that stabilises after a step, while another that an edge has wanted waits for its brokers."""
    context = context_at(111.0)
    session = settling(kind=kind)
    context.table.put(session)
    context.table.put(session_of(uid="v", name="t", phase="Requested", plan=None, sources=[], targets=[]))
    wanted = {"name": "c", "metric": "Output", "overloaded": ["Output"] if is_urgent else []}
    if is_asked:
        fields = {"action": "Rebalance", "trigger": {"broker": broker}, "candidates": [wanted]}
        context.requests["v"] = request_of("v", **fields)
    return step_stabilizing(context, request_of(), session)


def test_who_is_overloaded_waits_for_no_loads_to_settle():
    assert pressed().is_over
    assert not pressed(broker="c").is_over, "it is of another edge"
    assert not pressed(is_urgent=False).is_over, "it can wait"
    assert not pressed(kind="move").is_over, "people have asked for this one"
    assert not pressed(is_asked=False).is_over, "its request is not known"


def test_a_session_that_no_edge_triggered_preempts_none():
    context = context_at(111.0)
    session = settling(kind="balance")
    context.table.put(session)
    context.table.put(session_of(uid="v", name="t", phase="Requested", plan=None, sources=[], targets=[]))
    context.requests["v"] = request_of("v", candidates=[{"name": "b", "metric": "Output", "overloaded": ["Output"]}])
    assert not step_stabilizing(context, request_of(), session).is_over


# ---------------------------------------------------------------- what is measured


@pytest.mark.parametrize(("age", "interval", "utilization"), [(0.0, 3.0, 0.7), (0.5, 2.5, 0.7), (0.5, 2.6, None)])
def test_what_an_edge_has_reported_since_the_last_move_is_measured_and_nothing_older(
    age: float, interval: float, utilization: float | None
):
    """The session settles since 110, and the view is of 113."""
    report = {"broker": "a", "output_utilization": 0.7, "interval_seconds": interval}
    context = context_at(113.0, a=edge("a", subscribers=4, report=report, report_age_seconds=age))
    session = with_measurements(context, settling(plan=plan_of("x", forecasts=[forecast(by_policy=True)])))
    assert session.plan is not None
    [one] = session.plan.forecasts
    assert one.utilization_measured == utilization
    assert (one.measured is None) == (utilization is None)


@pytest.mark.parametrize(("now", "interval", "waits"), [(114.0, 0.5, True), (115.0, 0.6, False), (115.0, 5.0, True)])
def test_a_report_after_the_last_move_is_waited_for_a_number_of_intervals(now: float, interval: float, waits: bool):
    report = {"broker": "a", "output_utilization": 0.7, "interval_seconds": interval}
    context = context_at(
        now, a=edge("a", subscribers=4, report=report, report_age_seconds=4.5)
    )  # its interval is too old
    session = settling(plan=plan_of("x", forecasts=[forecast(by_policy=True)]))
    assert step_stabilizing(context, request_of(), session).is_over != waits


def test_without_a_plan_or_a_view_nothing_is_measured():
    context = context_at(113.0)
    session = settling(plan=None)
    assert with_measurements(context, session) is session
    context.fleet, context.fleet_observed_at = FleetView(), float("-inf")
    session = settling(plan=plan_of("x", forecasts=[forecast(by_policy=True)]))
    assert with_measurements(context, session) is session


def test_an_edge_that_reports_nothing_is_not_measured():
    context = context_at(113.0, a=edge("a", subscribers=4))
    session = with_measurements(context, settling(plan=plan_of("x", forecasts=[forecast(by_policy=True)])))
    assert session.plan is not None
    [one] = session.plan.forecasts
    assert (one.utilization_measured, one.subscribers_measured, one.measured) == (None, None, None)


@pytest.mark.parametrize(
    ("members", "reason", "message"), [(("x",), "Moved", "1 moved"), (("x", "y"), "Partial", "1 moved")]
)
def test_all_or_part_of_the_plan(members: tuple[str, ...], reason: str, message: str):
    session = finish_session(context_at(113.0), request_of(), settling(plan=plan_of(*members)))
    assert (session.phase, session.reason, session.message) == ("Succeeded", reason, message)


# ---------------------------------------------------------------- moments, sizes and words


@pytest.mark.parametrize(("now", "begins"), [(CLOSES - 1.1, True), (CLOSES - 1.0, False)])
def test_a_batch_begins_only_if_some_time_is_left_for_it(now: float, begins: bool):
    session = begun(session_of(), context_at(now))
    assert bool(session.batches) == begins
    if not begins:
        assert (session.phase, session.reason, session.may_retry) == ("RolledBack", "DeadlineExceeded", True)


def test_a_batch_that_has_ended_does_not_change_the_phase():
    session = session_of(phase="Draining", phase_at=105.0, batches=[DONE])
    over = session.with_batch(batch_of(intent="cut", cut_at=104.0, state="done", ended_at=110.0), 110.0)
    assert (over.phase, over.phase_at) == ("Draining", 105.0)


def test_replay_that_was_asked_for_ends_an_attempt_where_the_log_is_too_short():
    context = context_at(101.0)
    report = {"log_limit_bytes": 100.0, "log_bytes_per_second": 1000.0}
    context.fleet = FleetView({"h": HeadView("h", "east", 10, report=report)}, context.fleet.edges)
    session = step_moving(context, request_of(handover="Replay"), session_of())
    wanted = SessionVerdict(reason="LogTooShort", message="the log of h lasts 0.1 s, replay wants 4.0 s", again=True)
    assert (session.verdict, session.batches) == (wanted, [])


@pytest.mark.parametrize(("more", "count"), [(0, 2), (1, 1)])
def test_a_batch_is_as_large_as_a_command_may_be_and_no_larger(more: int, count: int):
    """Each name has 16 bytes beside it."""
    half = BATCH_BYTES // 2 - 16
    session = begun(session_of(plan=plan_of("x" * half, "y" * (half + more))), context_at(101.0))
    assert len(session.batches[0].members) == count


def test_who_is_stopped_when_all_have_moved_has_moved_all():
    done = batch_of(members={"x": "moved", "y": "moved"}, ended_at=110.0, state="done")
    session = begun(session_of(phase="Draining", batches=[done], verdict=STOPPED), context_at(111.0))
    assert (session.phase, session.is_over) == ("Stabilizing", False)
    session = begun(
        session_of(phase="Draining", batches=[ended()], plan=plan_of("x"), verdict=STOPPED), context_at(111.0)
    )
    assert (session.phase, session.message) == ("RolledBack", "stopped as requested; 1 stayed")


def test_an_attempt_that_moved_no_subscriber_may_be_repeated():
    session = begun(session_of(batches=[ended()], plan=plan_of("x")), context_at(111.0))
    assert (session.phase, session.reason, session.may_retry) == ("RolledBack", "NobodyMoved", True)


def test_a_session_does_not_press_itself():
    context = context_at(111.0)
    session = settling(kind="balance", triggered=True)
    context.table.put(session)
    wanted = {"name": "b", "metric": "Output", "overloaded": ["Output"]}
    request = request_of(action="Rebalance", trigger={"broker": "a"}, candidates=[wanted])
    context.requests["u"] = request
    assert not step_stabilizing(context, request, session).is_over


@pytest.mark.parametrize("by_policy", [False, True])
def test_what_is_measured_is_told_to_four_places(by_policy: bool):
    context = context_at(113.0, a=edge("a", subscribers=4, report={"broker": "a", "output_utilization": 0.123456}))
    session = with_measurements(context, settling(plan=plan_of("x", forecasts=[forecast(by_policy=by_policy)])))
    assert session.plan is not None
    [one] = session.plan.forecasts
    assert (one.utilization_measured, one.measured is not None) == (0.1235, by_policy)


def test_outcomes_in_words():
    assert outcomes_text({"moved": 2, "stayed": 0, "returned": 1}, 3) == "2 moved, 1 returned, 3 not begun"
    assert outcomes_text({"moved": 0}, 0) == "no subscriber was moved"


# ---------------------------------------------------------------- how fast


@pytest.mark.parametrize(
    ("limits", "members"),
    [
        ({}, 40),
        ({"maxInFlight": 7}, 7),
        ({"maxMovesPerMinute": 120}, 10),
        ({"maxMovesPerMinute": 120, "maxInFlight": 3}, 3),
        ({"maxMovesPerMinute": 1}, 1),
    ],
)
def test_a_batch_has_what_limits_allow(limits: dict[str, Any], members: int):
    names = [f"x{number:02}" for number in range(40)]
    session = step_moving(
        context_at(BEGAN), request_of(limits=limits), session_of(phase="Preparing", plan=plan_of(*names))
    )
    [one] = session.batches
    assert list(one.members) == names[:members]


@pytest.mark.parametrize(("now", "factor", "begins"), [(104.9, 1.0, False), (105.0, 1.0, True), (101.3, 0.25, True)])
def test_the_next_batch_begins_when_the_last_has_used_up_its_time(now: float, factor: float, begins: bool):
    last = batch_of(id="4.1", members={"x": "moved", "y": "moved"}, begun_at=100.0, ended_at=100.5, state="done")
    session = session_of(phase="Draining", plan=plan_of("x", "y", "z"), batches=[last])
    context = context_at(now)
    context.settings = EngineSettings(time_factor=factor)
    after = step_moving(context, request_of(limits={"maxMovesPerMinute": 24}), session)
    assert len(after.batches) == (2 if begins else 1)
    assert (after.reason, after.message) == (("", "") if begins else ("Paced", "limits.maxMovesPerMinute is 24"))
    assert step_moving(context, request_of(limits={"maxMovesPerMinute": 24}), after) is after or begins
