"""A parent, rule by rule: when it ends its children, when it lists the remaining subscribers, and when it repeats."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.session.alone import CLOSES, DEADLINE, context_at, edge, plan_of, request_of, session_of

from plimsoll.core.protocol import messages as msg
from plimsoll.core.session import CreateSession, EmitEvent, EngineSettings, SendMessage, Session
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.kinds.parent_session import _begin_next_round, create_children, step_moving, step_stabilizing
from plimsoll.core.session.session_plan import PlannedPair
from plimsoll.core.session.state import ChildSession, SessionVerdict

STOPPED = SessionVerdict(reason="Stopped", message="stopped as requested")
LATE = DEADLINE - 2.5
"""Half of what a session needs to close is left to a parent: its children close before it."""


def child(phase: str = "Requested", **fields: Any) -> ChildSession:
    given = {"name": "s-1", "source": "a", "target": "b", "members": 2, "phase": phase, **fields}
    return ChildSession(**given)


def parent(*children: ChildSession, **fields: Any) -> Session:
    given = {"kind": "drain", "targets": [], "children": list(children), **fields}
    return session_of(**given)


def working(context: EngineContext, phase: str) -> Session:
    """A parent whose only child is in this phase, and in the table."""
    targets = {"sources": ["a"], "targets": ["b"]}
    context.table.put(session_of(uid="child", name="s-1", parent="u", phase=phase, **targets))
    return parent(child(phase, uid="child"))


# ---------------------------------------------------------------- while its children work


@pytest.mark.parametrize(("now", "is_late"), [(LATE - 0.1, False), (LATE, True), (LATE + 1, True)])
def test_a_parent_begins_nothing_more_shortly_before_its_deadline(now: float, is_late: bool):
    context = context_at(now)
    session = step_moving(context, request_of(), working(context, "Draining"))
    assert not session.is_over
    assert (session.verdict is not None) == is_late
    if session.verdict is not None:
        assert (session.verdict.reason, session.verdict.again) == ("DeadlineExceeded", True)


def test_at_its_deadline_a_parent_waits_for_no_child():
    context = context_at(DEADLINE)
    session = step_moving(context, request_of(), working(context, "Draining"))
    assert (session.ended_at, session.reason) == (DEADLINE, "DeadlineExceeded")


@pytest.mark.parametrize(("phase", "after"), [("Requested", "Preparing"), ("Preparing", "Draining")])
def test_a_parent_drains_once_a_child_has_begun(phase: str, after: str):
    context = context_at(101.0)
    assert step_moving(context, request_of(), working(context, phase)).phase == after


def test_a_session_that_moved_no_subscriber_has_failed_and_may_be_tried_again():
    over = child("RolledBack", counts={"stayed": 2})
    session = step_moving(context_at(101.0), request_of(), parent(over, kind="spread"))
    assert (session.phase, session.reason, session.message) == ("RolledBack", "NobodyMoved", "2 stayed")
    assert session.may_retry
    session = step_moving(context_at(101.0), request_of(), parent(over))
    assert session.phase == "Stabilizing", "a drain looks again"


# ---------------------------------------------------------------- once they are over

MOVED = child("Succeeded", counts={"moved": 2})


@pytest.mark.parametrize(
    ("now", "fields", "phase"),
    [
        (112.9, {}, "Stabilizing"),
        (113.0, {}, "Succeeded"),
        (111.0, {"verdict": STOPPED}, "Succeeded"),
    ],
)
def test_loads_settle_unless_it_was_stopped(now: float, fields: dict[str, Any], phase: str):
    session = parent(MOVED, kind="spread", phase="Stabilizing", phase_at=110.0, **fields)
    assert step_stabilizing(context_at(now), request_of(), session).phase == phase


def settling(**fields: Any) -> Session:
    return parent(MOVED, phase="Stabilizing", phase_at=110.0, **fields)


@pytest.mark.parametrize(
    ("round_", "pause"), [(0, 3.0), (1, 6.0), (2, 12.0), (3, 24.0), (4, 48.0), (5, 60.0), (6, 60.0), (10, 60.0)]
)
def test_each_pause_before_it_looks_again_is_twice_the_last_up_to_a_limit(round_: int, pause: float):
    session = settling(round=round_, deadline_at=10_000.0)
    for now, asks in ((110.0 + pause - 0.1, False), (110.0 + pause, True)):
        context = context_at(now)
        assert step_stabilizing(context, request_of(), session) is session
        assert bool(context.outbox.effects) == asks


@pytest.mark.parametrize("gone", [None, edge("a", ready=False)], ids=["not there", "not up"])
def test_a_removed_edge_serves_no_subscriber(gone: Any):
    session = step_stabilizing(context_at(113.0, a=gone), request_of(), settling())
    assert (session.phase, session.reason) == ("Succeeded", "Drained")


def test_a_head_that_is_not_there_is_waited_for():
    context = context_at(113.0)
    context.fleet_observed_at = 0.0
    session = settling()
    assert step_stabilizing(context, request_of(), session) is session
    context.outbox.now = 113.0 + context.timings.sample
    after = step_stabilizing(context, request_of(), session)
    assert (after.phase, after.reason) == ("Failed", "NoSample")


def seen(session: Session, *left: str, now: float = 113.0, **asked: Any) -> Session:
    """The session after the head has listed the remaining subscribers."""
    context = context_at(now)
    assert step_stabilizing(context, request_of(**asked), session) is session
    for effect in list(context.outbox.effects):
        assert isinstance(effect, SendMessage)
        assert isinstance(effect.message, msg.ListSubscribers)
        context.listings.receive("h", msg.SubscriberPage(effect.message.id, effect.message.edge, 10, list(left), False))
    return step_stabilizing(context, request_of(**asked), session)


def test_who_is_left_goes_in_another_round():
    session = seen(settling(plan=plan_of("x", "y")), "z")
    assert (session.phase, session.round, len(session.children)) == ("Preparing", 1, 2)


@pytest.mark.parametrize(
    ("fields", "asked", "reason"),
    [
        ({"verdict": STOPPED}, {}, "Stopped"),
        ({}, {"approval": {"policy": "Manual"}}, "NotEmpty"),
        ({"verdict": STOPPED}, {"approval": {"policy": "Manual"}}, "Stopped"),
    ],
)
def test_there_is_no_other_round_after_a_stop_or_of_a_plan_of_others(
    fields: dict[str, Any], asked: dict[str, Any], reason: str
):
    session = seen(settling(**fields), "z", **asked)
    assert (session.phase, session.reason, session.round) == ("Failed", reason, 0)
    assert "1 subscribers remain: z" in session.message


# ---------------------------------------------------------------- the objects of its children


def test_the_last_member_of_a_deleted_child_is_unknown_too():
    session = step_moving(context_at(101.0), request_of(), parent(child("Draining", uid="gone", counts={"moved": 1})))
    [one] = session.children
    assert (one.phase, one.reason, one.counts) == ("Failed", "Deleted", {"moved": 1, "unknown": 1})


def created(context: EngineContext, *children: ChildSession, **asked: Any) -> dict[str, dict[str, Any]]:
    """The specifications of the objects that a parent asks for, by name."""
    create_children(context, request_of(**asked), parent(*children))
    return {effect.name: effect.spec for effect in context.outbox.effects if isinstance(effect, CreateSession)}


def test_only_objects_that_are_not_there_yet_are_asked_for():
    there, over, new = child(name="s-1", uid="child"), child("Rejected", name="s-2"), child(name="s-3")
    assert list(created(context_at(101.0), there, over, new)) == ["s-3"]


@pytest.mark.parametrize(
    ("now", "factor", "seconds"),
    [(DEADLINE - 30, 1.0, "30s"), (DEADLINE - 30, 0.5, "60s"), (DEADLINE - 0.5, 1.0, "1s")],
)
def test_a_child_has_the_time_that_is_left_on_the_clock_of_specifications(now: float, factor: float, seconds: str):
    context = context_at(now)
    context.settings = EngineSettings(time_factor=factor)
    spec = created(context, child())["s-1"]
    assert (spec["deadline"], spec["limits"]["queueFor"]) == (seconds, seconds)


@pytest.mark.parametrize(("others", "rate"), [(0, 60), (2, 20), (99, 1)])
def test_children_are_together_no_faster_than_their_parent_may_be(others: int, rate: int):
    siblings = [child(name=f"s-{number + 2}", uid=f"u{number}", round=1) for number in range(others)]
    earlier = child("Succeeded", name="s-0", uid="before", round=0)
    spec = created(context_at(101.0), child(round=1), *siblings, earlier, limits={"maxMovesPerMinute": 60})["s-1"]
    assert spec["limits"]["maxMovesPerMinute"] == rate
    assert "maxMovesPerMinute" not in created(context_at(101.0), child())["s-1"]["limits"]


@pytest.mark.parametrize(
    ("other_head", "scope", "expected"),
    [("h", "Local", "Local"), ("h", "Global", "Global"), ("west", "Local", "Global"), ("west", "Global", "Global")],
)
def test_the_scope_of_a_child_is_as_wide_as_its_pair_needs_or_its_parent_has(
    other_head: str, scope: str, expected: str
):
    context = context_at(101.0)
    pair = PlannedPair(source="a", target="b", source_head="h", target_head=other_head, members=["x", "y"])
    create_children(context, request_of(scope=scope), parent(child(), plan=plan_of(pairs=[pair])))
    [effect] = context.outbox.effects
    assert isinstance(effect, CreateSession)
    assert effect.spec["scope"] == expected


# ---------------------------------------------------------------- the remaining subscribers


def test_a_parent_lists_the_remaining_subscribers_again():
    context = context_at(101.0)
    context.listings.of("u", "a", "h")
    [asked] = [effect.message for effect in context.outbox.effects if isinstance(effect, SendMessage)]
    assert isinstance(asked, msg.ListSubscribers)
    context.listings.receive("h", msg.SubscriberPage(asked.id, "a", 10, ["x"], False))
    assert context.listings.of("u", "a", "h") == ["x"]
    assert step_moving(context, request_of(), parent(MOVED)).phase == "Stabilizing"
    assert context.listings.of("u", "a", "h") is None, "that was before it moved a subscriber"


@pytest.mark.parametrize(("now", "asks"), [(LATE - 0.1, False), (LATE, True)])
def test_a_pause_ends_in_time_before_the_deadline(now: float, asks: bool):
    context = context_at(now)
    session = parent(MOVED, phase="Stabilizing", phase_at=150.0, round=2)
    assert step_stabilizing(context, request_of(), session) is session
    assert bool(context.outbox.effects) == asks


@pytest.mark.parametrize(
    ("now", "phase_at", "fields", "reason"),
    [
        (DEADLINE - 1, DEADLINE - 19, {}, "NoSample"),
        (DEADLINE, DEADLINE - 10, {}, "DeadlineExceeded"),
        (DEADLINE - 1, DEADLINE - 19, {"verdict": STOPPED}, "Stopped"),
    ],
)
def test_who_is_left_is_not_known_in_time(now: float, phase_at: float, fields: dict[str, Any], reason: str):
    session = parent(MOVED, phase="Stabilizing", phase_at=phase_at, **fields)
    after = step_stabilizing(context_at(now), request_of(), session)
    assert (after.phase, after.reason, after.may_retry) == ("Failed", reason, reason != "Stopped")


def test_a_drained_edge_says_how_many_have_left_it():
    session = seen(settling())
    assert (session.phase, session.reason, session.message) == ("Succeeded", "Drained", "2 moved")


@pytest.mark.parametrize(("now", "goes_on"), [(CLOSES - 0.1, True), (CLOSES, False)])
def test_there_is_no_other_round_once_an_attempt_closes(now: float, goes_on: bool):
    session = seen(parent(MOVED, phase="Stabilizing", phase_at=145.0), "z", now=now)
    wanted = ("Preparing", "", False) if goes_on else ("Failed", "DeadlineExceeded", True)
    assert (session.phase, session.reason, session.may_retry) == wanted


def test_there_is_no_other_round_of_a_plan_that_was_approved_by_its_hash():
    session = seen(settling(), "z", approval={"policy": "Automatic", "planHash": "0123456789abcdef"})
    assert (session.phase, session.reason, session.round) == ("Failed", "NotEmpty", 0)


def test_another_round_is_told():
    context = context_at(113.0)
    _begin_next_round(context, request_of(), settling(), {"a": ["z"]}, ["z"])
    [effect] = context.outbox.effects
    assert isinstance(effect, EmitEvent)
    assert (effect.reason, effect.type, effect.message) == ("AnotherRound", "Normal", "move 1 from a to b")


# ---------------------------------------------------------------- waves


WAVES = [
    PlannedPair(
        source="b", target="c", source_head="h", target_head="h", members=[f"x{number}" for number in range(10)]
    ),
    PlannedPair(source="a", target="b", source_head="h", target_head="h", members=["y", "z"], wave=1),
    PlannedPair(source="a", target="c", source_head="h", target_head="h", members=["w"], wave=1),
]


def in_waves(phase: str, **counts: int) -> Session:
    """b gives ten to c first; then a gives two to b, and one to c."""
    first = child(phase, source="b", target="c", members=10, uid="one" if counts else "", counts=counts)
    later = child(name="s-2", wave=1), child(name="s-3", target="c", members=1, wave=1)
    return parent(first, *later, plan=plan_of(pairs=WAVES), kind="shuffle")


def names_created(context: EngineContext, session: Session) -> list[str]:
    create_children(context, request_of(), session)
    return [effect.name for effect in context.outbox.effects if isinstance(effect, CreateSession)]


def test_a_later_wave_waits_for_the_one_before():
    assert names_created(context_at(101.0), in_waves("Requested")) == ["s-1"]


@pytest.mark.parametrize("counts", [{"moved": 10}, {"moved": 9, "stayed": 1}, {"moved": 5, "detached": 4, "stayed": 1}])
def test_when_there_is_room_the_later_wave_begins(counts: dict[str, int]):
    context = context_at(101.0)
    session = step_moving(context, request_of(), in_waves("Succeeded", **counts))
    assert names_created(context, session) == ["s-2", "s-3"]
    specs = {effect.name: effect.spec for effect in context.outbox.effects if isinstance(effect, CreateSession)}
    assert (specs["s-2"]["select"], specs["s-3"]["select"]) == ({"names": ["y", "z"]}, {"names": ["w"]})


@pytest.mark.parametrize("counts", [{"moved": 8, "stayed": 2}, {"stayed": 10}, {"moved": 7, "returned": 3}])
def test_where_there_is_none_who_needs_it_stays_and_others_go(counts: dict[str, int]):
    context = context_at(101.0)
    session = step_moving(context, request_of(), in_waves("Succeeded", **counts))
    [_, second, third] = session.children
    assert (second.phase, second.reason, second.counts) == ("Rejected", "NoRoom", {"unknown": 2})
    assert third.phase == "Requested"
    assert names_created(context, session) == ["s-3"]
