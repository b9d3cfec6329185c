"""From batch to batch and to the end, rule by rule: who is waited for, what is kept, and when it is over."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.session.alone import (
    BEGAN,
    CLOSES,
    DEADLINE,
    batch_of,
    edge,
    forecast,
    plan_of,
    request_of,
    session_of,
    turn_at,
)

from plimsoll.core.session import HeadView, Session, Settings, View
from plimsoll.core.session.moving import BATCH_BYTES, finish, measured, pair_of, stabilizing, step, told, with_batch
from plimsoll.core.session.record import AGAIN, Batch, Verdict
from plimsoll.core.session.turn import Turn

DONE = batch_of(members={"x": "moved"}, begun_at=100.0, ended_at=110.0, state="done")
STOPPED = Verdict(reason="Stopped", message="stopped as asked for")


def ended(number: int = 1, **fields: Any) -> Batch:
    return batch_of(id=f"4.{number}", ended_at=110.0, **{"members": {"x": "stayed"}, **fields})


# ---------------------------------------------------------------- the deadline


@pytest.mark.parametrize(("now", "reason"), [(CLOSES - 0.5, ""), (CLOSES, "DeadlineExceeded")])
def test_what_is_under_way_goes_on_until_the_attempt_closes(now: float, reason: str):
    one = batch_of(state="cut", intent="cut", cut_at=BEGAN + 40, since=BEGAN + 40)
    session = step(turn_at(now), request_of(), session_of(phase="Draining", batches=[one]))
    assert (session.verdict.reason if session.verdict is not None else "") == reason


@pytest.mark.parametrize(
    ("before", "after"), [("", "h had not said by the deadline what became of it"), ("h is full", "h is full")]
)
def test_what_is_cut_short_says_why_or_keeps_what_was_said(before: str, after: str):
    one = batch_of(state="cut", intent="cut", cut_at=BEGAN + 40, reason=before, members={"x": "cut", "y": "moved"})
    session = step(turn_at(DEADLINE), request_of(), session_of(phase="Draining", batches=[one]))
    [last] = session.batches
    assert (last.reason, last.ended_at, last.members) == (after, DEADLINE, {"x": "unknown", "y": "moved"})


# ---------------------------------------------------------------- what the end of a batch means


def test_many_lost_batches_end_an_attempt_and_another_may_go_better():
    lost = [ended(number, members={"x": AGAIN}, reason="h has started anew") for number in range(1, 5)]
    three = with_batch(turn_at(110.0), session_of(batches=lost[:3]), lost[2])
    assert three.verdict is None
    four = with_batch(turn_at(110.0), session_of(batches=lost), lost[3])
    wanted = Verdict(reason="HeadRestarts", message="4 batches were lost: h has started anew", again=True)
    assert four.verdict == wanted


@pytest.mark.parametrize(
    ("fields", "is_refused"),
    [
        ({"reason": "full"}, True),
        ({"reason": ""}, False),
        ({"reason": "full", "cut_at": 105.0}, False),
        ({"reason": "full", "state": "ready"}, False),
        ({"reason": "h has started anew", "members": {"x": AGAIN}}, False),
    ],
)
def test_a_batch_was_refused_if_it_never_began_and_there_is_a_reason(fields: dict[str, Any], is_refused: bool):
    session = with_batch(turn_at(110.0), session_of(batches=[ended()]), ended(**fields))
    assert session.verdict == (Verdict(reason="Refused", message="full", again=True) if is_refused else None)


# ---------------------------------------------------------------- the next batch


def begun(session: Session, turn: Turn) -> Session:
    return step(turn, request_of(), session)


def test_the_next_batch_is_prepared_whatever_the_last_one_came_to():
    session = begun(session_of(phase="Draining", phase_at=105.0, batches=[DONE]), turn_at(111.0))
    assert (session.phase, session.phase_at, session.batches[-1].members) == ("Preparing", 111.0, {"y": ""})
    session = begun(session_of(phase_at=105.0, batches=[ended()]), turn_at(111.0))
    assert (session.phase, session.phase_at, len(session.batches)) == ("Preparing", 105.0, 2)


@pytest.mark.parametrize(("gone", "reason"), [("a", "SourceNotReady"), ("b", "TargetNotReady")])
def test_nothing_begins_while_an_end_is_not_up(gone: str, reason: str):
    down = edge(gone, ready=False)
    turn = turn_at(101.0, a=down) if gone == "a" else turn_at(101.0, b=down)
    session = begun(session_of(), turn)
    assert (session.reason, session.batches, session.verdict) == (reason, [], None)


@pytest.mark.parametrize(
    ("batches", "now", "waits"),
    [([], 114.9, True), ([], 115.0, False), ([DONE], 124.9, True), ([DONE], 125.0, False)],
)
def test_an_end_that_is_not_up_is_waited_for_from_the_last_batch_on(batches: list[Batch], now: float, waits: bool):
    session = begun(session_of(batches=batches), turn_at(now, b=edge("b", ready=False)))
    assert (session.reason == "TargetNotReady", session.verdict is None) == (waits, waits)
    if session.verdict is not None:
        assert (session.verdict.reason, session.verdict.again) == ("TargetNotReady", True)


@pytest.mark.parametrize(("now", "waits"), [(144.9, True), (145.0, False)])
def test_a_mediator_that_just_began_waits_for_an_end_as_long_again(now: float, waits: bool):
    """It knows nothing of the fleet at first, and the last batch may have ended long before its life."""
    turn = turn_at(now, b=edge("b", ready=False))
    turn.began_at = 130.0
    session = begun(session_of(batches=[DONE]), turn)
    assert (session.reason == "TargetNotReady", session.verdict is None) == (waits, waits)


def test_a_name_that_is_longer_than_a_batch_goes_alone():
    name = "x" * (BATCH_BYTES + 1)
    session = begun(session_of(plan=plan_of(name, "y")), turn_at(101.0))
    assert list(session.batches[0].members) == [name]


def test_a_session_between_two_edges_has_one_pair():
    plan = plan_of("x")
    assert pair_of(session_of(plan=plan)) is plan.pairs[0]
    for other in (None, plan_of("x", pairs=[]), plan_of("x", pairs=[*plan.pairs, *plan.pairs])):
        with pytest.raises(AssertionError, match="one pair"):
            pair_of(session_of(plan=other))


# ---------------------------------------------------------------- while loads settle


def settling(**fields: Any) -> Session:
    """A session of people that stabilises since 110.0; its edges settle for three seconds."""
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
def test_loads_settle_unless_nobody_waits_for_them(now: float, fields: dict[str, Any], is_over: bool):
    session = settling(**fields)
    after = stabilizing(turn_at(now), request_of(), session)
    assert (after.phase, after.is_over) == ("Succeeded" if is_over else "Stabilizing", is_over)


def pressed(*, broker: str = "a", by_policy: bool = True, is_urgent: bool = True, is_asked: bool = True) -> Session:
    """The session that stabilises after a step, while another that an edge has wanted waits for its brokers."""
    turn = turn_at(111.0)
    session = settling(by_policy=by_policy)
    turn.book.put(session)
    turn.book.put(session_of(uid="v", name="t", phase="Requested", plan=None, sources=[], targets=[]))
    wanted = {"name": "c", "metric": "Output", "overloaded": ["Output"] if is_urgent else []}
    if is_asked:
        fields = {"action": "Rebalance", "trigger": {"broker": broker}, "candidates": [wanted]}
        turn.requests["v"] = request_of("v", **fields)
    return stabilizing(turn, request_of(), session)


def test_who_is_overloaded_waits_for_no_loads_to_settle():
    assert pressed().is_over
    assert not pressed(broker="c").is_over, "it is of another edge"
    assert not pressed(is_urgent=False).is_over, "it can wait"
    assert not pressed(by_policy=False).is_over, "people have asked for this one"
    assert not pressed(is_asked=False).is_over, "nobody knows what it wants"


def test_who_was_not_wanted_by_an_edge_presses_nobody():
    turn = turn_at(111.0)
    session = settling(by_policy=True)
    turn.book.put(session)
    turn.book.put(session_of(uid="v", name="t", phase="Requested", plan=None, sources=[], targets=[]))
    turn.requests["v"] = request_of("v", candidates=[{"name": "b", "metric": "Output", "overloaded": ["Output"]}])
    assert not stabilizing(turn, request_of(), session).is_over


# ---------------------------------------------------------------- what is measured


@pytest.mark.parametrize(("age", "interval", "utilization"), [(0.0, 3.0, 0.7), (0.5, 2.5, 0.7), (0.5, 2.6, None)])
def test_what_an_edge_has_reported_since_the_last_move_is_measured_and_nothing_older(
    age: float, interval: float, utilization: float | None
):
    """The session settles since 110, and the view is of 113."""
    report = {"broker": "a", "output_utilization": 0.7, "interval_seconds": interval}
    turn = turn_at(113.0, a=edge("a", subscribers=4, report=report, report_age_seconds=age))
    session = measured(turn, settling(plan=plan_of("x", forecasts=[forecast(by_policy=True)])))
    assert session.plan is not None
    [one] = session.plan.forecasts
    assert one.utilization_measured == utilization
    assert (one.measured is None) == (utilization is None)


@pytest.mark.parametrize(("now", "interval", "waits"), [(114.0, 0.5, True), (115.0, 0.6, False), (115.0, 5.0, True)])
def test_a_report_of_what_loads_are_since_is_waited_for_so_many_intervals(now: float, interval: float, waits: bool):
    report = {"broker": "a", "output_utilization": 0.7, "interval_seconds": interval}
    turn = turn_at(now, a=edge("a", subscribers=4, report=report, report_age_seconds=4.5))  # its interval is too old
    session = settling(plan=plan_of("x", forecasts=[forecast(by_policy=True)]))
    assert stabilizing(turn, request_of(), session).is_over != waits


def test_without_a_plan_or_a_view_nothing_is_measured():
    turn = turn_at(113.0)
    session = settling(plan=None)
    assert measured(turn, session) is session
    turn.view = None
    session = settling(plan=plan_of("x", forecasts=[forecast(by_policy=True)]))
    assert measured(turn, session) is session


def test_an_edge_that_reports_nothing_is_not_measured():
    turn = turn_at(113.0, a=edge("a", subscribers=4))
    session = measured(turn, settling(plan=plan_of("x", forecasts=[forecast(by_policy=True)])))
    assert session.plan is not None
    [one] = session.plan.forecasts
    assert (one.utilization_measured, one.subscribers_measured, one.measured) == (None, None, None)


@pytest.mark.parametrize(
    ("members", "reason", "message"), [(("x",), "Moved", "1 moved"), (("x", "y"), "Partial", "1 moved")]
)
def test_all_or_part_of_the_plan(members: tuple[str, ...], reason: str, message: str):
    session = finish(turn_at(113.0), request_of(), settling(plan=plan_of(*members)))
    assert (session.phase, session.reason, session.message) == ("Succeeded", reason, message)


# ---------------------------------------------------------------- moments, sizes and words


@pytest.mark.parametrize(("now", "begins"), [(CLOSES - 1.1, True), (CLOSES - 1.0, False)])
def test_a_batch_begins_only_if_some_time_is_left_for_it(now: float, begins: bool):
    session = begun(session_of(), turn_at(now))
    assert bool(session.batches) == begins
    if not begins:
        assert (session.phase, session.reason, session.may_retry) == ("RolledBack", "DeadlineExceeded", True)


def test_a_batch_that_has_ended_does_not_change_the_phase():
    session = session_of(phase="Draining", phase_at=105.0, batches=[DONE])
    over = with_batch(turn_at(110.0), session, batch_of(intent="cut", cut_at=104.0, state="done", ended_at=110.0))
    assert (over.phase, over.phase_at) == ("Draining", 105.0)


def test_replay_that_was_asked_for_ends_an_attempt_where_the_log_is_too_short():
    turn = turn_at(101.0)
    assert turn.view is not None
    report = {"log_limit_bytes": 100.0, "log_bytes_per_second": 1000.0}
    turn.view = View({"h": HeadView("h", "east", 10, report=report)}, turn.view.edges)
    session = step(turn, request_of(handover="Replay"), session_of())
    wanted = Verdict(reason="LogTooShort", message="the log of h lasts 0.1 s, replay wants 4.0 s", again=True)
    assert (session.verdict, session.batches) == (wanted, [])


@pytest.mark.parametrize(("more", "count"), [(0, 2), (1, 1)])
def test_a_batch_is_as_large_as_a_command_may_be_and_no_larger(more: int, count: int):
    """Each name has 16 bytes beside it."""
    half = BATCH_BYTES // 2 - 16
    session = begun(session_of(plan=plan_of("x" * half, "y" * (half + more))), turn_at(101.0))
    assert len(session.batches[0].members) == count


def test_who_is_stopped_when_all_have_moved_has_moved_all():
    done = batch_of(members={"x": "moved", "y": "moved"}, ended_at=110.0, state="done")
    session = begun(session_of(phase="Draining", batches=[done], verdict=STOPPED), turn_at(111.0))
    assert (session.phase, session.is_over) == ("Stabilizing", False)
    session = begun(session_of(phase="Draining", batches=[ended()], plan=plan_of("x"), verdict=STOPPED), turn_at(111.0))
    assert (session.phase, session.message) == ("RolledBack", "stopped as asked for; 1 stayed")


def test_an_attempt_that_moved_nobody_may_be_made_again():
    session = begun(session_of(batches=[ended()], plan=plan_of("x")), turn_at(111.0))
    assert (session.phase, session.reason, session.may_retry) == ("RolledBack", "NobodyMoved", True)


def test_a_session_does_not_press_itself():
    turn = turn_at(111.0)
    session = settling(by_policy=True, triggered=True)
    turn.book.put(session)
    wanted = {"name": "b", "metric": "Output", "overloaded": ["Output"]}
    request = request_of(action="Rebalance", trigger={"broker": "a"}, candidates=[wanted])
    turn.requests["u"] = request
    assert not stabilizing(turn, request, session).is_over


@pytest.mark.parametrize("by_policy", [False, True])
def test_what_is_measured_is_told_to_four_places(by_policy: bool):
    turn = turn_at(113.0, a=edge("a", subscribers=4, report={"broker": "a", "output_utilization": 0.123456}))
    session = measured(turn, settling(plan=plan_of("x", forecasts=[forecast(by_policy=by_policy)])))
    assert session.plan is not None
    [one] = session.plan.forecasts
    assert (one.utilization_measured, one.measured is not None) == (0.1235, by_policy)


def test_outcomes_in_words():
    assert told({"moved": 2, "stayed": 0, "returned": 1}, 3) == "2 moved, 1 returned, 3 not begun"
    assert told({"moved": 0}, 0) == "nobody was moved"


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
    session = step(turn_at(BEGAN), request_of(limits=limits), session_of(phase="Preparing", plan=plan_of(*names)))
    [one] = session.batches
    assert list(one.members) == names[:members]


@pytest.mark.parametrize(("now", "factor", "begins"), [(104.9, 1.0, False), (105.0, 1.0, True), (101.3, 0.25, True)])
def test_the_next_batch_begins_when_the_last_has_used_up_its_time(now: float, factor: float, begins: bool):
    last = batch_of(id="4.1", members={"x": "moved", "y": "moved"}, begun_at=100.0, ended_at=100.5, state="done")
    session = session_of(phase="Draining", plan=plan_of("x", "y", "z"), batches=[last])
    turn = turn_at(now)
    turn.settings = Settings(time_factor=factor)
    after = step(turn, request_of(limits={"maxMovesPerMinute": 24}), session)
    assert len(after.batches) == (2 if begins else 1)
    assert (after.reason, after.message) == (("", "") if begins else ("Paced", "limits.maxMovesPerMinute is 24"))
    assert step(turn, request_of(limits={"maxMovesPerMinute": 24}), after) is after or begins
