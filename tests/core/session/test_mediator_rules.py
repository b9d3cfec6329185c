"""The door rule by rule: what a new life makes of what was stored, what is said, kept and stored, in which order."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.core.session.made import fleet, request, session, turn_of

from plimsoll.core import records as r
from plimsoll.core.session import Asked, Deleted, Deposed, Heard, Mediator, Save, Send, Session, Ticked, Viewed
from plimsoll.core.session import mediator as module
from plimsoll.core.session.mediator import _in_storing_order, _reopened
from plimsoll.core.session.record import Batch


def batch(**fields: Any) -> Batch:
    return Batch(**{
        "id": "2.1", "head": "east-head", "head_epoch": 1, "source": "a", "target": "b", "target_head": "east-head",
        "replay": False, "prepare_seconds": 60.0, "drain_seconds": 10.0, "begun_at": 90.0, "since": 90.0,
        "members": {"x": "attached"}, "state": "preparing", **fields,
    })  # fmt: skip


def moving(uid: str = "s", **fields: Any) -> Session:
    return session(
        uid,
        **{"phase": "Preparing", "phase_at": 90.0, "sources": ["a"], "targets": ["b"], "batches": [batch()], **fields},
    )


def commands(effects: list[Any]) -> list[tuple[str, str]]:
    return [
        (effect.record.session, effect.record.step)
        for effect in effects
        if isinstance(effect, Send) and isinstance(effect.record, r.Command)
    ]


# -- a new life


def test_what_was_stored_in_the_future_begins_now_with_all_its_times():
    ahead = session("ahead", phase_at=1000.0, deadline_at=1300.0, queued_at=990.0)
    behind = session("behind", phase_at=400.0, deadline_at=450.0)
    over = session("over", phase="Failed", phase_at=1000.0, deadline_at=1300.0, ended_at=1000.0)
    mediator = Mediator(3, [ahead, behind, over])
    mediator.handle(Ticked(), 400.0)
    known = {name: (one.queued_at, one.phase_at, one.deadline_at) for name, one in mediator.sessions.items()}
    assert known == {"ahead": (390.0, 400.0, 700.0), "behind": (0.0, 400.0, 450.0), "over": (0.0, 1000.0, 1300.0)}


def test_of_a_stored_session_nothing_is_commanded_until_its_object_is_asked_for():
    mediator = Mediator(3, [moving()])
    for event, now in ((Viewed(fleet()), 100.0), (Ticked(), 100.5), (Ticked(), 102.0)):
        assert commands(mediator.handle(event, now)) == []
    assert commands(mediator.handle(Asked(request("s", source="a", select={"count": 1})), 102.5)) == [("2.1", "ask")]


# -- what others may know


@pytest.mark.parametrize(
    ("fields", "is_cordoned"),
    [
        ({"is_drain": True}, True),
        ({"is_drain": True, "phase": "Stabilizing"}, True),
        ({"is_drain": True, "phase": "Negotiating"}, False),
        ({"is_drain": True, "phase": "Planned"}, False),
        ({"is_drain": True, "phase": "Failed", "ended_at": 95.0, "holds_until": 200.0}, False),
        ({"is_drain": False}, False),
    ],
)
def test_only_edges_of_a_drain_that_moves_are_cordoned(fields: dict[str, Any], is_cordoned: bool):
    mediator = Mediator(3, [moving(**fields)])
    assert mediator.cordoned == (frozenset({"a"}) if is_cordoned else frozenset())


# -- facts


@pytest.mark.parametrize(
    ("intent", "steps"),
    [("prepare", ["abort"]), ("abort", ["abort"]), ("cut", []), ("resolve", [])],
)
def test_of_a_deleted_session_what_is_not_cut_is_aborted_and_nothing_is_kept(intent: Any, steps: list[str]):
    mediator = Mediator(3, [moving(batches=[batch(intent=intent)])])
    mediator._turn.requests["s"] = request("s", source="a")
    assert [step for _, step in commands(mediator.handle(Deleted("s"), 100.0))] == steps
    assert not mediator.sessions
    assert not mediator._turn.requests


def test_the_deletion_of_what_is_not_known_or_not_under_way_is_nothing():
    mediator = Mediator(3, [session("s")])
    assert mediator.handle(Deleted("nobody"), 100.0) == []
    assert mediator.handle(Deleted("s"), 100.0) == []


@pytest.mark.parametrize(("epoch", "is_deposed"), [(2, False), (3, False), (4, True)])
def test_a_head_that_obeys_a_higher_epoch_deposes(epoch: int, is_deposed: bool):
    mediator = Mediator(3, [moving()])
    told = r.Outcome("9.9", epoch, 1, "done", [])
    assert mediator.handle(Heard("east-head", told), 100.0) == ([Deposed(4)] if is_deposed else [])
    assert mediator.deposed_by == (4 if is_deposed else 0)


# -- as far as it goes


def test_sessions_that_change_for_ever_are_a_fault_and_no_endless_turn(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "STEPS_AT_MOST", 3)
    calls = 0

    def changed(self: Mediator, asked: Any, one: Session) -> bool:
        nonlocal calls
        calls += 1
        assert calls < 10, "it goes on"
        return True

    monkeypatch.setattr(Mediator, "_steps", changed)
    with pytest.raises(RuntimeError, match="go in circles"):
        Mediator(3).handle(Asked(request("s", source="a")), 100.0)
    assert calls == 3


def test_a_session_that_changes_for_ever_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "STEPS_AT_MOST", 5)
    steps = iter(range(5))
    monkeypatch.setattr(Mediator, "_step", lambda self, asked, one: session("s", message=str(next(steps))))
    with pytest.raises(RuntimeError, match="the session s goes in circles in Requested"):
        Mediator(3).handle(Asked(request("s", source="a")), 100.0)


# -- what is kept


def test_who_keeps_brokers_after_its_end_is_let_go_when_that_is_over():
    over = moving("s", phase="Failed", ended_at=95.0, holds_until=110.0)
    mediator = Mediator(3, [over])
    mediator.handle(Ticked(), 109.0)
    assert [one.uid for one in mediator._turn.book.open()] == ["s"]
    mediator.handle(Ticked(), 110.0)
    assert mediator._turn.book.open() == []


def test_a_parent_is_stored_behind_its_child_and_who_begins_behind_who_ends():
    parent, child = moving("parent"), moving("child", parent="parent", queued_at=50.0)
    over = moving("over", phase="Succeeded", ended_at=95.0, queued_at=60.0)
    assert [one.uid for one in sorted([parent, child, over], key=_in_storing_order)] == ["over", "child", "parent"]


def test_progress_is_stored_once_the_last_time_is_so_long_ago():
    mediator = Mediator(3)
    [save, *_] = mediator.handle(Asked(request("s", source="a", select={"count": 1})), 100.0)
    assert isinstance(save, Save)
    book, seconds = mediator._turn.book, mediator._turn.timings.save

    def stored_at(now: float) -> bool:
        book.put(replace(book.sessions["s"], message=f"at {now}"))
        mediator._turn.requests.clear()  # nothing but its words changes
        return any(isinstance(effect, Save) for effect in mediator.handle(Ticked(), now))

    assert [stored_at(100.0 + share * seconds) for share in (0.5, 0.9, 1.0, 1.5, 2.0)] == [
        False, False, True, False, True,
    ]  # fmt: skip


# -- again


@pytest.mark.parametrize(
    ("fields", "is_again"),
    [
        ({}, True),
        ({"mode": "DryRun"}, False),
        ({"stop": True}, False),
        ({"deleting": True}, False),
    ],
)
def test_a_plan_that_was_dry_waits_for_approval_when_it_may_be_carried_out(fields: dict[str, Any], is_again: bool):
    dry = session("s", phase="Planned", ended_at=50.0, reason="DryRun", deadline_at=60.0)
    asked = request("s", source="a", select={"count": 1}, approval={"within": "30s"}, **fields)
    after = _reopened(turn_of(now=100.0), asked, dry)
    if not is_again:
        assert after is dry
        return
    assert (after.phase, after.reason, after.ended_at) == ("Planned", "AwaitingApproval", None)
    assert after.deadline_at == 130.0
