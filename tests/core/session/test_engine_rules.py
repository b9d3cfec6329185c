"""The engine rule by rule: what a new life does with stored sessions; what is sent, kept and stored, in which order."""

from __future__ import annotations

from dataclasses import replace as replaced
from typing import Any

import pytest
from msgspec.structs import replace
from tests.core.session.made import context_of, fleet, request, session

from plimsoll.core.protocol import messages as msg
from plimsoll.core.session import (
    DeleteSession,
    Deposed,
    FleetObserved,
    HeadMessage,
    MediatorEngine,
    SaveSession,
    SendMessage,
    Session,
    SessionDeleted,
    SessionUpserted,
    Tick,
)
from plimsoll.core.session import engine as module
from plimsoll.core.session.batch import Batch
from plimsoll.core.session.engine import _reopen, _stop_verdict
from plimsoll.core.session.execute import batches
from plimsoll.core.session.saving import saving_order
from plimsoll.core.session.session_plan import SessionPlan
from plimsoll.core.session.triggers import edge_triggers


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
        (effect.message.session, effect.message.step)
        for effect in effects
        if isinstance(effect, SendMessage) and isinstance(effect.message, msg.Command)
    ]


# -- a new life


def test_what_was_stored_in_the_future_begins_now_with_all_its_times():
    ahead = session("ahead", phase_at=1000.0, deadline_at=1300.0, queued_at=990.0)
    behind = session("behind", phase_at=400.0, deadline_at=450.0)
    over = session("over", phase="Failed", phase_at=1000.0, deadline_at=1300.0, ended_at=1000.0)
    mediator = MediatorEngine(3, [ahead, behind, over])
    mediator.handle(Tick(), 400.0)
    known = {name: (one.queued_at, one.phase_at, one.deadline_at) for name, one in mediator.sessions.items()}
    assert known == {"ahead": (390.0, 400.0, 700.0), "behind": (0.0, 400.0, 450.0), "over": (0.0, 1000.0, 1300.0)}


def test_of_a_stored_session_nothing_is_commanded_until_its_object_is_asked_for():
    mediator = MediatorEngine(3, [moving()])
    for event, now in ((FleetObserved(fleet()), 100.0), (Tick(), 100.5), (Tick(), 102.0)):
        assert commands(mediator.handle(event, now)) == []
    assert commands(mediator.handle(SessionUpserted(request("s", source="a", select={"count": 1})), 102.5)) == [
        ("2.1", "ask")
    ]


# -- what others may know


@pytest.mark.parametrize(
    ("fields", "is_cordoned"),
    [
        ({"kind": "drain"}, True),
        ({"kind": "drain", "phase": "Stabilizing"}, True),
        ({"kind": "drain", "phase": "Negotiating"}, False),
        ({"kind": "drain", "phase": "Planned"}, False),
        ({"kind": "drain", "phase": "Failed", "ended_at": 95.0, "holds_until": 200.0}, False),
        ({"kind": "move"}, False),
    ],
)
def test_only_edges_of_a_drain_that_moves_are_cordoned(fields: dict[str, Any], is_cordoned: bool):
    mediator = MediatorEngine(3, [moving(**fields)])
    assert mediator.cordoned == (frozenset({"a"}) if is_cordoned else frozenset())


# -- facts


@pytest.mark.parametrize(
    ("intent", "steps"),
    [("prepare", ["abort"]), ("abort", ["abort"]), ("cut", []), ("resolve", [])],
)
def test_a_deleted_session_is_aborted_before_its_cut_and_nothing_is_kept(intent: Any, steps: list[str]):
    mediator = MediatorEngine(3, [moving(batches=[batch(intent=intent)])])
    mediator._context.requests["s"] = request("s", source="a")
    assert [step for _, step in commands(mediator.handle(SessionDeleted("s"), 100.0))] == steps
    assert not mediator.sessions
    assert not mediator._context.requests


@pytest.mark.parametrize(
    ("kind", "command"), [("move", msg.Command), ("publishers", msg.PublisherCommand), ("slices", msg.SliceCommand)]
)
def test_the_abort_of_a_deleted_session_is_of_its_kind(kind: Any, command: type[Any]):
    mediator = MediatorEngine(3, [moving(kind=kind, batches=[batch(intent="prepare")])])
    [sent] = [each for each in mediator.handle(SessionDeleted("s"), 100.0) if isinstance(each, SendMessage)]
    assert isinstance(sent.message, command)
    assert sent.message.step == "abort"


def test_what_was_asked_for_a_batch_is_forgotten_with_its_session_and_at_its_end():
    mediator = MediatorEngine(3, [moving(batches=[batch(intent="resolve")])])
    context = mediator._context
    [one] = mediator.sessions["s"].batches
    context.group_samples.of(one.id, "h", "g")
    mediator.handle(SessionDeleted("s"), 100.0)
    assert not context.group_samples._pages
    context.group_samples.of(one.id, "h", "g")
    batches.end_batch(context, one, "unknown")
    assert not context.group_samples._pages


def test_the_deletion_of_an_unknown_or_idle_session_does_nothing():
    mediator = MediatorEngine(3, [session("s")])
    assert mediator.handle(SessionDeleted("unknown"), 100.0) == []
    assert mediator.handle(SessionDeleted("s"), 100.0) == []


@pytest.mark.parametrize(("epoch", "is_deposed"), [(2, False), (3, False), (4, True)])
def test_a_head_that_obeys_a_higher_epoch_deposes(epoch: int, is_deposed: bool):
    mediator = MediatorEngine(3, [moving()])
    told = msg.Outcome("9.9", epoch, 1, "done", [])
    assert mediator.handle(HeadMessage("east-head", told), 100.0) == ([Deposed(4)] if is_deposed else [])
    assert mediator.deposed_by == (4 if is_deposed else 0)


# -- as far as it goes


def test_sessions_that_change_for_ever_are_a_fault_and_no_endless_loop(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "STEPS_AT_MOST", 3)
    calls = 0

    def changed(self: MediatorEngine, asked: Any, one: Session) -> bool:
        nonlocal calls
        calls += 1
        assert calls < 10, "it goes on"
        return True

    monkeypatch.setattr(MediatorEngine, "_settle_session", changed)
    with pytest.raises(RuntimeError, match="go in circles"):
        MediatorEngine(3).handle(SessionUpserted(request("s", source="a")), 100.0)
    assert calls == 3


def test_a_session_that_changes_for_ever_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "STEPS_AT_MOST", 5)
    steps = iter(range(5))
    monkeypatch.setattr(MediatorEngine, "_next_step", lambda self, asked, one: session("s", message=str(next(steps))))
    with pytest.raises(RuntimeError, match="the session s goes in circles in Requested"):
        MediatorEngine(3).handle(SessionUpserted(request("s", source="a")), 100.0)


# -- what is kept


def test_brokers_kept_after_a_sessions_end_are_released_in_time():
    over = moving("s", phase="Failed", ended_at=95.0, holds_until=110.0)
    mediator = MediatorEngine(3, [over])
    mediator.handle(Tick(), 109.0)
    assert [one.uid for one in mediator._context.table.open_sessions()] == ["s"]
    mediator.handle(Tick(), 110.0)
    assert mediator._context.table.open_sessions() == []


def test_a_parent_is_stored_behind_its_child_and_who_begins_behind_who_ends():
    parent, child = moving("parent"), moving("child", parent="parent", queued_at=50.0)
    over = moving("over", phase="Succeeded", ended_at=95.0, queued_at=60.0)
    assert [one.uid for one in sorted([parent, child, over], key=saving_order)] == ["over", "child", "parent"]


def test_progress_is_stored_once_the_last_time_is_so_long_ago():
    mediator = MediatorEngine(3)
    [save, *_] = mediator.handle(SessionUpserted(request("s", source="a", select={"count": 1})), 100.0)
    assert isinstance(save, SaveSession)
    table, seconds = mediator._context.table, mediator._context.timings.save

    def saved_at(now: float) -> bool:
        table.put(replace(table.sessions["s"], message=f"at {now}"))
        mediator._context.requests.clear()  # nothing but its words changes
        return any(isinstance(effect, SaveSession) for effect in mediator.handle(Tick(), now))

    assert [saved_at(100.0 + share * seconds) for share in (0.5, 0.9, 1.0, 1.5, 2.0)] == [
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
    after = _reopen(context_of(now=100.0), asked, dry)
    if not is_again:
        assert after is dry
        return
    assert (after.phase, after.reason, after.ended_at) == ("Planned", "AwaitingApproval", None)
    assert after.deadline_at == 130.0


# -- the moment itself


def test_what_was_stored_now_is_not_written_again():
    mediator = MediatorEngine(3, [session("s", phase_at=400.0)])
    assert mediator.handle(Tick(), 400.0) == []
    assert mediator.sessions["s"].phase_at == 400.0


def test_a_clock_that_was_set_back_a_little_is_noticed_too():
    mediator = MediatorEngine(3, [session("s", phase_at=400.5)])
    mediator.handle(Tick(), 400.0)
    assert mediator.sessions["s"].phase_at == 400.0


def test_the_first_of_all_mediators_is_deposed_like_any_other():
    mediator = MediatorEngine(0)
    assert mediator.handle(HeadMessage("east-head", msg.Outcome("9.9", 1, 1, "done", [])), 100.0) == [Deposed(1)]
    assert mediator.is_deposed


def test_an_object_that_is_shown_again_does_not_prolong_its_wait_for_approval():
    plan = SessionPlan(hash="0123456789abcdef", pairs=[], made_at=90.0)
    waiting = session("s", phase="Planned", plan=plan, sources=["a"], reason="AwaitingApproval", deadline_at=130.0)
    mediator = MediatorEngine(3, [waiting])
    asked = request("s", source="a", select={"count": 1}, approval={"policy": "Manual", "within": "10m"})
    for now in (100.0, 110.0):
        mediator.handle(SessionUpserted(asked), now)
        assert (mediator.sessions["s"].phase, mediator.sessions["s"].deadline_at) == ("Planned", 130.0)


def test_nothing_that_a_deleted_session_was_told_is_kept():
    mediator = MediatorEngine(3, [session("s")])
    mediator._context.listings.of("s", "a", "east-head")
    mediator.handle(SessionDeleted("s"), 100.0)
    assert not mediator._context.listings._listings


def test_the_last_abort_is_said_however_lately_another_was():
    mediator = MediatorEngine(3, [moving(batches=[batch(intent="abort")], deadline_at=200.0)])
    mediator._context.outbox._last_sent["2.1/abort"] = 100.0
    assert commands(mediator.handle(SessionDeleted("s"), 100.1)) == [("2.1", "abort")]


def test_a_batch_heeds_its_own_head_only():
    mediator = MediatorEngine(3, [moving()])
    told = msg.Outcome("2.1", 3, 1, "ready", [("x", "attached")])
    mediator.handle(HeadMessage("west-head", told), 100.0)
    assert mediator.sessions["s"].batches[0].state == "preparing"
    mediator.handle(HeadMessage("east-head", told), 100.0)
    assert mediator.sessions["s"].batches[0].state == "ready"


def test_it_is_known_whether_a_session_took_a_step():
    """Others that waited for it are looked at once more at the same event."""
    one, asked = session("s"), request("s", source="a", select={"count": 1})
    mediator = MediatorEngine(3, [one])
    mediator._context.outbox.now = 100.0
    assert mediator._settle_session(asked, one) is True
    assert mediator._settle_session(asked, mediator.sessions["s"]) is False


# -- the old


def forgotten(mediator: MediatorEngine, now: float) -> list[str]:
    return [effect.name for effect in mediator.handle(Tick(), now) if isinstance(effect, DeleteSession)]


def test_an_object_is_forgotten_from_the_moment_its_time_to_live_is_over_now_and_then():
    mediator = MediatorEngine(3, [session("s", phase="Failed", ended_at=100.0)])
    mediator._context.requests["s"] = request("s", source="a", ttl="10s")
    moments = (100.0, 109.0, 110.0, 110.5, 110.9, 111.0)
    assert [forgotten(mediator, now) for now in moments] == [[], [], ["s"], [], [], ["s"]]


def test_of_many_sessions_that_edges_wanted_the_oldest_are_forgotten():
    names = [f"t{number:03}" for number in range(edge_triggers.ENDED_SESSIONS_AT_MOST + 2)]
    ended = [session(name, phase="Failed", triggered=True, ended_at=100.0 + i) for i, name in enumerate(names)]
    mediator = MediatorEngine(3, ended)
    mediator._context.requests |= {name: request(name, source="a", ttl="24h") for name in names}
    assert forgotten(mediator, 1000.0) == names[:2]


def test_a_child_does_not_outlive_its_parent():
    parent = session("parent", phase="Failed", kind="spread", ended_at=95.0)
    child = session("child", phase="Preparing", parent="parent", sources=["a"], targets=["b"])
    asked = replaced(request("child", source="a"), parent="parent")
    why = _stop_verdict(context_of(parent, child), asked, child)
    assert why is not None
    assert why.reason == "ParentStopped"
    assert _stop_verdict(context_of(replace(parent, ended_at=None, phase="Draining"), child), asked, child) is None
