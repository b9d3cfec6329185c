"""The head of the source decides: each rule that it enforces, under its name in docs/handover.md."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.head.handover.hosts import (
    FAR,
    A,
    B,
    C,
    FakeHost,
    begun,
    coordinator_of,
    cut,
    cutting,
    items,
    plan,
    ready,
    states,
    woken_until,
)

from plimsoll.core.head.handover.outcomes import ANSWER_SECONDS
from plimsoll.core.head.handover.session import Handover
from plimsoll.core.protocol import messages as msg

# -- from the command to the cut


def test_who_is_not_served_by_the_source_is_gone_who_is_in_another_session_stays_and_the_others_go():
    host = FakeHost()
    coordinator = begun(host, "x")
    host.serve(A, "y", "z")
    host.serve(C, "w")
    host.remote_members.add("z")
    coordinator.prepare("1.2", plan("w", "x", "y", "z", "unknown", "y"))
    assert states(coordinator, "1.2") == {
        "w": "gone", "x": "aborting", "y": "preparing", "z": "aborting", "unknown": "gone",
    }  # fmt: skip
    assert host.of("a", msg.Abort) == [msg.Abort("1.2", items("x", "z"), ask=True)]
    host.answer(coordinator)
    assert states(coordinator, "1.2") == {
        "w": "gone", "x": "stayed", "y": "preparing", "z": "stayed", "unknown": "gone",
    }  # fmt: skip
    assert host.of("b", msg.Prepare) == [
        msg.Prepare("1.1", ["x"], 10.0, False), msg.Prepare("1.2", ["y"], 10.0, False),
    ]  # fmt: skip
    assert [coordinator.table.is_busy(x) for x in ("x", "y", "z", "w")] == [True, True, True, False]


@pytest.mark.parametrize(("edge", "outcome"), [("a", "away"), ("c", "gone")])
def test_a_subscriber_of_an_edge_whose_link_is_down_keeps_its_place_there_alone(edge: str, outcome: str):
    host = FakeHost()
    host.serve(f"{edge}#0", "x")
    coordinator = coordinator_of(host)
    assert coordinator.prepare("1.1", plan("x")).state == "aborted"
    assert states(coordinator) == {"x": outcome}


def test_who_has_been_cut_in_another_session_is_gone():
    host = FakeHost()
    coordinator = cut(host, "x", replay=True)
    coordinator.prepare("1.2", plan("x"))
    assert states(coordinator, "1.2") == {"x": "gone"}


@pytest.mark.parametrize(
    ("reason", "outcome", "told"),
    [
        ("away: its client is not connected", "away", "its client is not connected"),
        ("left: is not known here", "gone", "is not known here"),
        ("served: is served as before", "stayed", "is served as before"),
        ("b is full", "aborting", "b is full"),
        ("b: is full", "aborting", "b: is full"),
    ],
)
def test_the_code_of_a_rejection_decides_the_outcome(reason: str, outcome: str, told: str):
    host = FakeHost()
    coordinator = ready(host, "x")
    coordinator.on_rejected(msg.HandoverRejected("1.1", ["x"], reason))
    assert states(coordinator) == {"x": outcome}
    assert coordinator.table.outcome("1.1").reason == told
    assert coordinator.table.outcomes == ({outcome: 1} if outcome != "aborting" else {})


def test_a_word_of_the_source_that_crosses_with_a_cut_between_clusters_changes_nothing():
    host = FakeHost()
    coordinator = cut(host, "x", target=FAR)
    coordinator.on_rejected(msg.HandoverRejected("1.1", ["x"], "away: its client is not connected"))
    assert states(coordinator) == {"x": "cut"}


def test_a_repeated_command_returns_the_current_state_and_does_nothing_again():
    host = FakeHost()
    coordinator = ready(host, "x")
    said = len(host.said)
    assert coordinator.prepare("1.1", plan("x", "y")).state == "ready"
    assert coordinator.cut("1.1").state == "cutting"
    assert coordinator.cut("1.1").state == "cutting"
    assert [type(record) for _, _, record in host.said[said:]] == [msg.Install]
    coordinator.cut_decision.cut_members("1.1", items("x", epoch=(1, 5)), B, ("h", 5, 70))
    coordinator.on_done(msg.Done("1.1", ["x"]))
    for command in (coordinator.cut, coordinator.abort, coordinator.table.outcome):
        assert command("1.1").state == "done"
    assert coordinator.prepare("1.1", plan("x")).members == [("x", "moved")]


def test_a_slot_sends_move_and_the_first_attached_makes_it_ready():
    host = FakeHost()
    coordinator = begun(host, "x", "y", "z")
    coordinator.on_slot(msg.Slot("1.1", ["x", "y", "stranger"], "mem://b", "key"))
    assert host.of("a", msg.StartMove) == [msg.StartMove("1.1", items("x", "y"), "b", "mem://b", "key")]
    coordinator.on_attached(msg.TargetAttached("1.1", ["y", "stranger"]))
    assert coordinator.table.outcome("1.1").state == "ready"
    assert states(coordinator) == {"x": "preparing", "y": "attached", "z": "preparing"}


def test_a_slot_that_is_said_again_moves_those_only_that_have_not_come():
    host = FakeHost()
    coordinator = begun(host, "x", "y")
    slot = msg.Slot("1.1", ["x", "y"], "mem://b", "key")
    coordinator.on_slot(slot)
    coordinator.on_attached(msg.TargetAttached("1.1", ["x"]))
    coordinator.on_slot(slot)
    assert [move.members for move in host.of("a", msg.StartMove)] == [items("x", "y"), items("y")]


def test_at_the_cut_those_that_are_not_attached_stay():
    host = FakeHost()
    coordinator = begun(host, "x", "y")
    coordinator.on_attached(msg.TargetAttached("1.1", ["y"]))
    assert coordinator.cut("1.1").state == "cutting"
    assert states(coordinator) == {"x": "aborting", "y": "cutting"}
    assert host.of("b", msg.Install) == [msg.Install("1.1", ["y"])]
    assert host.of("a", msg.Abort) == [msg.Abort("1.1", items("x"), ask=True)]
    assert host.of("b", msg.Abort) == [msg.Abort("1.1", items("x"))]
    coordinator.on_attached(msg.TargetAttached("1.1", ["x"]))
    host.answer(coordinator)
    coordinator.on_attached(msg.TargetAttached("1.1", ["x"]))
    assert states(coordinator)["x"] == "stayed", "the first decision holds"


def test_a_cut_before_any_member_is_attached_does_nothing():
    host = FakeHost()
    coordinator = begun(host, "x")
    assert coordinator.cut("1.1").state == "preparing"
    assert host.of("b", msg.Install) == []


# -- the first of cut and abort wins


def test_an_abort_before_the_cut_holds():
    host = FakeHost()
    coordinator = cutting(host, "x")
    assert coordinator.abort("1.1").state == "cutting"
    assert coordinator.cut_decision.cut_members("1.1", items("x", epoch=(1, 5)), B, ("h", 5, 70)) == []
    assert host.owners.entries["x"].key == A
    assert host.of("a", msg.Cut) == []
    assert states(coordinator) == {"x": "aborting"}
    host.answer(coordinator)
    assert states(coordinator) == {"x": "stayed"}
    assert coordinator.table.outcome("1.1").state == "aborted"


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [("served: as before", "stayed"), ("away: is not connected", "away"), ("left: is not known", "gone")],
)
@pytest.mark.parametrize("begin", [begun, ready, cutting])
def test_a_member_that_is_undone_ends_as_its_source_says(begin: Any, reason: str, outcome: str):
    host = FakeHost()
    coordinator = begin(host, "x", "y")
    coordinator.abort("1.1")
    assert states(coordinator) == {"x": "aborting", "y": "aborting"}
    said = len(host.said)
    coordinator.on_rejected(msg.HandoverRejected("1.1", ["x"], "is not attached at the target"))
    assert states(coordinator)["x"] == "aborting", "the target does not know what its source serves"
    coordinator.on_rejected(msg.HandoverRejected("1.1", ["x"], reason))
    assert states(coordinator) == {"x": outcome, "y": "aborting"}
    assert (coordinator.table.is_busy("x"), coordinator.table.is_busy("y")) == (False, True)
    host.answer(coordinator)
    assert states(coordinator) == {"x": outcome, "y": "stayed"}, "an outcome is final"
    assert len(host.said) == said, "both ends know already"
    outcome_told = coordinator.table.outcome("1.1")
    assert (outcome_told.state, outcome_told.reason) == ("aborted", "aborted by the mediator")


def test_a_source_that_does_not_answer_in_time_leaves_the_outcome_unknown():
    host = FakeHost()
    coordinator = ready(host, "x", "y")
    coordinator.on_rejected(msg.HandoverRejected("1.1", ["x"], "no room"))
    host.now += 1.0
    coordinator.abort("1.1")
    assert woken_until(coordinator, host, 200.0)[-2:] == [100.0 + ANSWER_SECONDS, 101.0 + ANSWER_SECONDS]
    assert states(coordinator) == {"x": "unknown", "y": "unknown"}
    outcome = coordinator.table.outcome("1.1")
    assert (outcome.state, outcome.reason) == ("aborted", "no room")
    assert (coordinator.sessions, coordinator.table.busy) == ({}, {})
    host.answer(coordinator)
    assert states(coordinator) == {"x": "unknown", "y": "unknown"}, "an answer that comes later changes nothing"


def test_a_member_of_another_session_is_unknown_if_its_source_does_not_answer():
    host = FakeHost()
    coordinator = begun(host, "x")
    coordinator.prepare("1.2", plan("x"))
    host.now += ANSWER_SECONDS
    coordinator.tick()
    assert states(coordinator) == {"x": "preparing"}
    assert states(coordinator, "1.2") == {"x": "unknown"}
    assert coordinator.table.outcome("1.2").reason == "a has not said whether it serves them"
    assert coordinator.table.is_busy("x")


def test_while_the_source_is_asked_a_resume_a_lease_and_its_loss_decide():
    host = FakeHost()
    coordinator = ready(host, "x", "y", "z")
    coordinator.abort("1.1")
    coordinator.resumed("x", "1.1", "b")
    host.owners.forget("y")
    coordinator.lapsed("y", (1, 4))
    coordinator.edge_lost("b")
    assert states(coordinator) == {"x": "returned", "y": "gone", "z": "aborting"}
    coordinator.edge_lost("a")
    assert states(coordinator) == {"x": "returned", "y": "gone", "z": "away"}
    assert coordinator.table.outcome("1.1").state == "aborted"
    assert coordinator.wake_at() == float("inf")


def test_a_member_that_is_asked_for_is_not_leaving():
    host = FakeHost()
    coordinator = ready(host, "x")
    coordinator.abort("1.1")
    coordinator.prepare("1.2", plan("x"))
    assert states(coordinator, "1.2") == {"x": "aborting"}
    host.answer(coordinator)
    assert states(coordinator, "1.2") == {"x": "stayed"}


def test_of_a_batch_that_is_cut_those_that_were_refused_before_stay():
    host = FakeHost()
    coordinator = cutting(host, "x", "y")
    coordinator.on_rejected(msg.HandoverRejected("1.1", ["x"], "has left"))
    assert coordinator.cut_decision.cut_members("1.1", items("x", "y", epoch=(1, 5)), B, ("h", 5, 70)) == ["y"]
    assert host.owners.entries["x"].key == A
    host.answer(coordinator)
    assert states(coordinator) == {"x": "stayed", "y": "cut"}


def test_an_abort_after_the_cut_changes_nothing():
    host = FakeHost()
    coordinator = cut(host, "x")
    said = len(host.said)
    assert coordinator.abort("1.1").state == "cut"
    coordinator.on_rejected(msg.HandoverRejected("1.1", ["x"], "too late"))
    assert len(host.said) == said
    coordinator.on_done(msg.Done("1.1", ["x"]))
    assert states(coordinator) == {"x": "moved"}


def test_an_abort_across_before_the_marker_holds():
    host = FakeHost()
    coordinator = cutting(host, "x", target=FAR)
    coordinator.abort("1.1")
    coordinator.cut_decision.on_marker(msg.Marker("1.1", ["x"], ("k", 8, 30)))
    assert host.of("a", msg.Cut) == []
    assert host.of(FAR, msg.Abort) == [msg.Abort("1.1", items("x"))]


def test_a_nak_refuses_its_members_only():
    host = FakeHost()
    coordinator = begun(host, "x", "y")
    coordinator.on_rejected(msg.HandoverRejected("1.1", ["y", "stranger"], "no room"))
    host.answer(coordinator)
    assert states(coordinator) == {"x": "preparing", "y": "stayed"}
    coordinator.on_rejected(msg.HandoverRejected("1.1", ["x"], "no room either"))
    host.answer(coordinator)
    outcome = coordinator.table.outcome("1.1")
    assert (outcome.state, outcome.reason) == ("aborted", "no room")


# -- tombstones and forgotten sessions


def test_an_abort_of_an_unknown_session_leaves_a_tombstone():
    host = FakeHost()
    host.serve(A, "x")
    coordinator = coordinator_of(host)
    assert coordinator.table.outcome("1.7").state == "unknown"
    assert coordinator.abort("1.7").state == "aborted"
    assert coordinator.prepare("1.7", plan("x")).state == "aborted"
    assert host.said == []
    assert not coordinator.table.is_busy("x")


def test_a_session_older_than_the_window_of_outcomes_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("plimsoll.core.head.handover.outcomes.REMEMBERED_SESSIONS", 3)
    host = FakeHost()
    host.serve(A, "x")
    coordinator = coordinator_of(host)
    for number in range(10, 15):
        coordinator.abort(f"1.{number}")
    for number in (9, 10, 11):
        outcome = coordinator.prepare(f"1.{number}", plan("x"))
        assert (outcome.state, outcome.reason.partition(":")[0]) == ("failed", "forgotten")
        outcome = coordinator.abort(f"1.{number}")
        assert (outcome.state, outcome.reason.partition(":")[0]) == ("failed", "forgotten"), "it may have moved members"
    assert coordinator.prepare("1.12", plan("x")).state == "aborted"
    assert coordinator.prepare("1.15", plan("x")).state == "preparing"


# -- time


def test_before_the_cut_the_heads_deadline_undoes():
    host = FakeHost()
    coordinator = begun(host, "x", "y")
    coordinator.on_attached(msg.TargetAttached("1.1", ["x"]))
    host.now += 9.999
    coordinator.tick()
    assert states(coordinator) == {"x": "attached", "y": "preparing"}
    host.now = 110.0
    coordinator.tick()
    assert host.of("b", msg.Abort) == [msg.Abort("1.1", items("x", "y"))]
    host.answer(coordinator)
    assert coordinator.table.outcome("1.1").state == "aborted"


def test_after_the_cut_the_deadline_to_prepare_undoes_nothing():
    host = FakeHost()
    coordinator = cut(host, "x", drain_seconds=60.0)
    host.now += 59.0
    coordinator.tick()
    assert states(coordinator) == {"x": "cut"}
    assert host.of("b", msg.Abort) == []


@pytest.mark.parametrize("target", ["b", FAR])
def test_drain_seconds_after_the_cut_those_that_are_not_done_are_detached(target: str):
    host = FakeHost()
    coordinator = cut(host, "x", "y", target=target)
    host.now += 5.0
    coordinator.on_done(msg.Done("1.1", ["x"]))
    host.now = 120.0
    coordinator.tick()
    assert states(coordinator) == {"x": "moved", "y": "detached"}
    assert coordinator.table.outcome("1.1").state == "done"
    part = msg.ForceDetach("1.1", items("y"))
    assert host.of("a", msg.ForceDetach) == host.of(target, msg.ForceDetach) == [part]
    assert "y" in host.owners.entries, "its place is under lease"
    assert coordinator.table.is_busy("y") == (target == FAR)


def test_deadlines_wake_the_head_and_nothing_else_does():
    host = FakeHost()
    coordinator = cutting(host, "x", "y", prepare_seconds=7.0, drain_seconds=3.0)
    woken = woken_until(coordinator, host, 106.0)
    assert woken == [100.0], "the mediator is told once, and then all waits"
    host.now = 106.0
    coordinator.cut_decision.cut_members("1.1", items("x", epoch=(1, 5)), B, ("h", 5, 70))
    coordinator.tick()
    woken = woken_until(coordinator, host, 200.0)
    assert woken == [107.0, 109.0, 110.0], "7 s after the command, 3 s after the cut, 3 s after the question"
    assert states(coordinator) == {"x": "detached", "y": "unknown"}
    assert coordinator.wake_at() == float("inf")


def test_a_round_in_which_nothing_happens_does_not_look_at_the_members(monkeypatch: pytest.MonkeyPatch):
    host = FakeHost()
    names = [f"s{i}" for i in range(1000)]
    coordinator = cut(host, *names)
    coordinator.tick()

    def looked(_session: Handover, *_states: str) -> list[str]:
        raise AssertionError("a quiet round costs as much as there are members")

    monkeypatch.setattr(Handover, "of", looked)
    host.now += 12.0  # beyond the deadline of what is cut already
    coordinator.tick()
    assert coordinator.wake_at() == 120.0


def test_the_end_of_one_member_does_not_look_at_the_others(monkeypatch: pytest.MonkeyPatch):
    host = FakeHost()
    names = [f"s{i}" for i in range(256)]
    coordinator = cut(host, *names)
    coordinator.tick()
    members = coordinator.sessions["1.1"].members
    monkeypatch.setattr(coordinator.sessions["1.1"], "members", NotWalked(members))
    for x in names[:-1]:
        coordinator.on_done(msg.Done("1.1", [x]))
    monkeypatch.undo()
    coordinator.on_done(msg.Done("1.1", names[-1:]))
    assert set(states(coordinator).values()) == {"moved"}


class NotWalked(dict[str, Any]):
    def __iter__(self) -> Any:
        raise AssertionError("quadratic in the members of a batch")

    items = values = keys = __iter__


# -- ends


@pytest.mark.parametrize("target", ["b", FAR])
def test_done_counts_only_behind_the_cut(target: str):
    host = FakeHost()
    coordinator = cutting(host, "x", target=target)
    coordinator.on_done(msg.Done("1.1", ["x", "stranger"]))
    coordinator.on_done(msg.Done("9.9", ["x"]))
    assert states(coordinator) == {"x": "cutting"}
    assert host.of("a", msg.Release) == []
    assert host.owners.entries["x"].key == A


def test_across_done_releases_the_source_and_only_then_its_owner_entry_goes():
    host = FakeHost()
    coordinator = cut(host, "x", "y", target=FAR)
    assert host.of("a", msg.Cut) == [msg.Cut("1.1", items("x", "y"), ("k", 8, 30), True)]
    assert host.of("a", msg.Release) == []
    assert set(host.owners.entries) == {"x", "y"}
    coordinator.on_done(msg.Done("1.1", ["x"]))
    assert host.of("a", msg.Release) == [msg.Release("x", (1, 5))]
    assert set(host.owners.entries) == {"y"}
    assert host.owners.newest("x") == (1, 4), "the epoch stays: an older RESUME may be on its way"
    assert (coordinator.table.is_busy("x"), coordinator.table.is_busy("y")) == (False, True)


def test_across_done_leaves_an_owner_that_is_newer():
    host = FakeHost()
    coordinator = cut(host, "x", target=FAR)
    host.owners.swap("x", C, (1, 8), (5, 0))
    coordinator.on_done(msg.Done("1.1", ["x"]))
    assert host.owners.entries["x"].epoch == (1, 8)


def test_across_who_has_arrived_beside_the_target_has_returned_and_the_source_is_released():
    host = FakeHost()
    coordinator = cut(host, "x", "y", target=FAR)
    host.said.clear()
    coordinator.on_rejected(msg.HandoverRejected("1.1", ["x"], "has resumed at another edge"))
    assert states(coordinator) == {"x": "returned", "y": "cut"}
    assert host.of("a", msg.Release) == [msg.Release("x", (1, 5))]
    assert host.of("b", msg.Abort) == []
    assert [x in host.owners.entries for x in "xy"] == [False, True]


def test_within_a_cluster_no_member_is_refused_after_the_cut():
    host = FakeHost()
    coordinator = cut(host, "x")
    coordinator.on_rejected(msg.HandoverRejected("1.1", ["x"], "is not attached at the target"))
    assert states(coordinator) == {"x": "cut"}


# -- RESUME


@pytest.mark.parametrize("begin", [begun, ready, cutting])
@pytest.mark.parametrize("edge", ["a", "b", "c"])
def test_resume_voids_an_open_session(begin: Any, edge: str):
    host = FakeHost()
    coordinator = begin(host, "x", "y")
    coordinator.resumed("x", "1.1", edge)
    assert states(coordinator)["x"] == "returned"
    assert states(coordinator)["y"] != "returned"
    assert msg.Abort("1.1", items("x")) in host.of("b", msg.Abort)
    assert not coordinator.table.is_busy("x")


@pytest.mark.parametrize(
    ("named", "edge", "outcome"),
    [("1.1", "b", "moved"), (None, "b", "returned"), ("1.0", "b", "returned"), ("1.1", "c", "returned")],
)
@pytest.mark.parametrize("replay", [False, True])
def test_resume_closes_a_cut_session(named: str | None, edge: str, outcome: str, replay: bool):
    host = FakeHost()
    coordinator = cut(host, "x", replay=replay)
    coordinator.resumed("x", named, edge)
    assert states(coordinator) == {"x": outcome}
    assert host.of("b", msg.Abort) == ([msg.Abort("1.1", items("x"))] if replay else []), "its slot is free"


@pytest.mark.parametrize("named", ["1.1", None])
def test_across_a_resume_at_the_source_closes_the_session_and_the_target_forgets(named: str | None):
    host = FakeHost()
    coordinator = cut(host, "x", target=FAR)
    coordinator.resumed("x", named, "c")
    assert states(coordinator) == {"x": "returned"}
    assert host.of(FAR, msg.Abort) == [msg.Abort("1.1", items("x"))]


def test_a_resume_of_another_subscriber_affects_no_session():
    host = FakeHost()
    coordinator = cut(host, "x")
    coordinator.resumed("y", "1.1", "b")
    assert states(coordinator) == {"x": "cut"}
