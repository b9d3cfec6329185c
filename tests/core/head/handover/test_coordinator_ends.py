"""The head of the source decides: drains after the deadline, losses, reports and refusals."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.head.handover.hosts import (
    FAR,
    A,
    C,
    FakeHost,
    begun,
    coordinator_of,
    cut,
    items,
    plan,
    ready,
    states,
    woken_until,
)

from plimsoll.core.head.handover import admission as module
from plimsoll.core.head.handover.coordinator import Coordinator
from plimsoll.core.protocol import messages as msg

# -- drains after the deadline: detached across clusters


def test_across_a_detached_member_is_kept_until_done():
    host = detached_across("x")
    coordinator = host[1]
    coordinator.on_done(msg.Done("1.1", ["x"]))
    assert host[0].of("a", msg.Release) == [msg.Release("x", (1, 5))]
    assert states(coordinator) == {"x": "detached"}, "an outcome is final"
    assert_over(coordinator)


def test_across_a_detached_member_is_kept_until_it_resumes_and_then_the_target_forgets():
    host, coordinator = detached_across("x")
    coordinator.resumed("x", None, "c")
    assert host.of(FAR, msg.Abort) == [msg.Abort("1.1", items("x"))]
    assert states(coordinator) == {"x": "detached"}
    assert_over(coordinator)


def test_across_a_detached_member_is_kept_until_its_lease_has_ended():
    host, coordinator = detached_across("x", "y")
    coordinator.lapsed("x", (1, 3))
    assert coordinator.table.is_busy("x"), "another epoch"
    host.owners.forget("x")
    coordinator.lapsed("x", (1, 4))
    assert [coordinator.table.is_busy(x) for x in "xy"] == [False, True]
    host.owners.swap("y", C, (1, 6), (5, 0))
    coordinator.expire()
    assert_over(coordinator)


def test_across_clusters_no_member_is_kept_whose_lease_had_ended_before():
    host = FakeHost()
    coordinator = cut(host, "x", target=FAR)
    host.owners.forget("x")
    coordinator.lapsed("x", (1, 4))
    assert states(coordinator) == {"x": "cut"}, "it may still be done"
    host.now += 20.0
    coordinator.tick()
    assert states(coordinator) == {"x": "detached"}
    assert_over(coordinator)


def detached_across(*members: str) -> tuple[FakeHost, Coordinator]:
    host = FakeHost()
    coordinator = cut(host, *members, target=FAR)
    host.now += 20.0
    coordinator.tick()
    coordinator.expire()
    assert set(states(coordinator).values()) == {"detached"}
    assert all(coordinator.table.is_busy(x) for x in members)
    return host, coordinator


def assert_over(coordinator: Coordinator) -> None:
    assert (coordinator.sessions, coordinator.table.busy) == ({}, {})


# -- losses


def test_a_lease_that_ends_before_the_cut_undoes_that_member():
    host = FakeHost()
    coordinator = ready(host, "x", "y")
    host.owners.forget("x")
    coordinator.lapsed("x", (1, 4))
    assert states(coordinator) == {"x": "gone", "y": "attached"}


@pytest.mark.parametrize("edge", ["a", "b"])
def test_open_sessions_of_an_edge_that_is_lost_abort_and_cut_ones_go_on(edge: str):
    host = FakeHost()
    coordinator = cut(host, "x")
    host.serve(A, "y", "z")
    coordinator.prepare("1.2", plan("y"))
    coordinator.prepare("1.3", plan("z", target="c"))
    coordinator.edge_lost(edge)
    host.answer(coordinator)
    assert states(coordinator) == {"x": "cut"}
    assert states(coordinator, "1.2") == {"y": "away" if edge == "a" else "stayed"}
    assert states(coordinator, "1.3") == {"z": "away" if edge == "a" else "preparing"}
    assert coordinator.table.outcome("1.2").reason == f"{edge} was lost"


def test_open_sessions_to_a_head_that_is_lost_abort_and_cut_ones_go_on():
    host = FakeHost()
    coordinator = cut(host, "x", target=FAR)
    host.serve(A, "y", "z")
    coordinator.prepare("1.2", plan("y", target=FAR))
    coordinator.prepare("1.3", plan("z"))
    coordinator.heads_lost(["k", "m"])
    host.answer(coordinator)
    assert states(coordinator) == {"x": "cut"}
    assert states(coordinator, "1.2") == {"y": "stayed"}
    assert states(coordinator, "1.3") == {"z": "preparing"}


# -- reports and refusals


def test_mediators_are_told_of_members_now_and_then_and_of_the_session_at_once():
    host = FakeHost()
    names = [f"s{i}" for i in range(40)]
    coordinator = begun(host, *names)
    coordinator.tick()
    for x in names:
        host.now += 0.001
        coordinator.on_attached(msg.TargetAttached("1.1", [x]))
        coordinator.tick()
    assert [outcome.state for outcome in host.outcomes] == ["preparing", "ready"]
    woken_until(coordinator, host, 109.0)
    assert [sum(state == "attached" for _, state in outcome.members) for outcome in host.outcomes] == [0, 1, 40]


def test_the_end_of_a_session_is_told_with_the_outcome_of_each():
    host = FakeHost()
    coordinator = cut(host, "x", "y")
    coordinator.on_done(msg.Done("1.1", ["x"]))
    coordinator.resumed("y", None, "c")
    told = host.outcomes[-1]
    assert (told.session, told.head_epoch, told.state, told.members) == (
        "1.1", 5, "done", [("x", "moved"), ("y", "returned")],
    )  # fmt: skip
    assert dict(coordinator.table.outcomes) == {"moved": 1, "returned": 1}
    assert told.reason == "", "nothing went wrong"


def test_what_has_been_told_is_not_told_again():
    host = FakeHost()
    coordinator = begun(host, "x")
    for _ in range(5):
        coordinator.tick()
        host.now += 1.0
    assert [outcome.state for outcome in host.outcomes] == ["preparing"]


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"source": "nowhere"}, "source"),
        ({"target": "nowhere"}, "target"),
        ({"target": "m1", "target_head": "m"}, "target"),
        ({"target": "a"}, "same"),
        ({"target": FAR, "replay": True}, "replay"),
        ({"prepare_seconds": float("nan")}, "seconds"),
        ({"prepare_seconds": -1.0}, "seconds"),
        ({"drain_seconds": float("inf")}, "seconds"),
        ({"members": ["x"] * 2000}, "large"),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_refused_and_leaves_nothing(changed: dict[str, Any], code: str):
    host = FakeHost()
    host.serve(A, "x")
    coordinator = coordinator_of(host)
    outcome = coordinator.prepare("1.1", plan("x", **{"target": "b", **changed}))
    assert (outcome.state, outcome.reason.partition(":")[0]) == ("failed", code)
    assert (coordinator.sessions, host.said) == ({}, [])


def test_sessions_and_their_members_are_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "SESSIONS_AT_MOST", 3)
    monkeypatch.setattr(module, "MEMBERS_IN_ALL", 6)
    host = FakeHost()
    names = [f"s{i}" for i in range(9)]
    host.serve(A, *names)
    coordinator = coordinator_of(host)
    assert coordinator.prepare("1.1", plan(*names[:5])).state == "preparing"
    assert coordinator.prepare("1.2", plan(*names[5:7])).reason.startswith("full")
    assert coordinator.prepare("1.3", plan(names[7])).state == "preparing"
    coordinator.abort("1.1")
    host.answer(coordinator)
    assert coordinator.prepare("1.4", plan(names[0])).state == "preparing"
    assert coordinator.prepare("1.5", plan(names[1])).state == "preparing"
    assert coordinator.prepare("1.6", plan(names[2])).reason.startswith("full")


def test_a_session_without_a_member_to_move_ends_at_once():
    host = FakeHost()
    coordinator = coordinator_of(host)
    outcome = coordinator.prepare("1.1", plan())
    assert (outcome.state, outcome.reason) == ("aborted", "no subscriber could be moved")
    assert host.outcomes[-1].state == "aborted"
    assert host.said == []


def test_a_plan_at_its_bounds_is_carried_out(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "MEMBERS_AT_MOST", 2)
    host = FakeHost()
    assert states(begun(host, "x", "y", prepare_seconds=0.5, drain_seconds=0.5)) == dict.fromkeys("xy", "preparing")
    none: list[dict[str, Any]] = [{"prepare_seconds": 0.0}, {"drain_seconds": 0.0}]
    for seconds in none:
        assert coordinator_of(host).prepare("1.2", plan("x", **seconds)).reason.startswith("seconds:")


def test_the_end_of_draining_does_not_wake_the_head_again():
    host = FakeHost()
    coordinator = cut(host, "x", target=FAR)
    host.now += 30.0
    coordinator.tick()
    assert states(coordinator) == {"x": "detached"}
    woken_until(coordinator, host, host.now + 10.0)
    assert coordinator.wake_at() == float("inf"), "its source has still a place, and nothing is to be done about it"
