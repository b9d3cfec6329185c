"""The cut: one compare-and-swap for each member, here or at the MARKER, and its twin by replay."""

from __future__ import annotations

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
    states,
    woken_until,
)

from plimsoll.core.protocol import messages as msg

# -- here


def test_the_local_cut_swaps_the_owner_and_raises_its_epoch_by_one():
    host = FakeHost()
    coordinator = cutting(host, "x", "y")
    assert coordinator.cut_decision.cut_members("1.1", items("x", "y", epoch=(1, 5)), B, ("h", 5, 70)) == ["x", "y"]
    assert {(x, o.key, o.epoch, o.since) for x, o in host.owners.entries.items()} == {
        ("x", B, (1, 5), (5, 0)), ("y", B, (1, 5), (5, 0)),
    }  # fmt: skip
    assert host.of("a", msg.Cut) == [msg.Cut("1.1", items("x", "y"), ("h", 5, 70), False)]
    assert states(coordinator) == {"x": "cut", "y": "cut"}


def test_a_failed_compare_and_swap_refuses_one_member_only_and_at_once():
    host = FakeHost()
    coordinator = cutting(host, "x", "y", "z")
    host.owners.swap("y", C, (1, 6), (5, 0))
    said = len(host.said)
    asked = [*items("x", "y", epoch=(1, 5)), msg.MemberItem("z", (1, 9)), msg.MemberItem("stranger", (1, 5))]
    assert coordinator.cut_decision.cut_members("1.1", asked, B, ("h", 5, 70)) == ["x"]
    assert host.owners.entries["y"].key == C
    assert host.owners.entries["z"].key == A
    host.answer(coordinator)
    assert states(coordinator) == {"x": "cut", "y": "gone", "z": "stayed"}
    assert [(edge, record) for _, edge, record in host.said[said:]] == [
        ("a", msg.Cut("1.1", items("x"), ("h", 5, 70), False)),
        ("a", msg.Abort("1.1", items("y"))),
        ("b", msg.Abort("1.1", items("y"))),
        ("a", msg.Abort("1.1", items("z"), ask=True)),
        ("b", msg.Abort("1.1", items("z"))),
    ]


def test_the_cut_of_an_unknown_session_takes_no_member():
    host = FakeHost()
    host.serve(A, "x")
    assert coordinator_of(host).cut_decision.cut_members("1.1", items("x", epoch=(1, 5)), B, ("h", 5, 70)) == []
    assert host.owners.entries["x"].key == A


# -- at the MARKER


def test_the_marker_cuts_the_named_members_that_the_source_still_owns():
    host = FakeHost()
    coordinator = cutting(host, "x", "y", "z", target=FAR)
    host.owners.swap("y", C, (1, 6), (5, 0))
    coordinator.cut_decision.on_marker(msg.Marker("1.1", ["x", "y", "stranger"], ("k", 8, 30)))
    assert host.of("a", msg.Cut) == [msg.Cut("1.1", items("x"), ("k", 8, 30), True)]
    assert states(coordinator) == {"x": "cut", "y": "gone", "z": "cutting"}
    assert host.of(FAR, msg.Abort) == [msg.Abort("1.1", items("y"))], "its head takes the owner entry back"


def test_a_marker_cuts_no_member_that_was_undone_before_it_came():
    host = FakeHost()
    coordinator = cutting(host, "x", "y", target=FAR)
    coordinator.on_rejected(msg.HandoverRejected("1.1", ["x"], "the target is lost"))
    coordinator.cut_decision.on_marker(msg.Marker("1.1", ["x", "y"], ("k", 8, 30)))
    assert host.of("a", msg.Cut) == [msg.Cut("1.1", items("y"), ("k", 8, 30), True)]
    host.answer(coordinator)
    assert states(coordinator) == {"x": "stayed", "y": "cut"}


def test_a_marker_of_a_local_session_says_nothing():
    host = FakeHost()
    coordinator = cutting(host, "x")
    coordinator.cut_decision.on_marker(msg.Marker("1.1", ["x"], ("k", 8, 30)))
    assert states(coordinator) == {"x": "cutting"}


# -- by replay


def test_by_replay_a_slot_is_all_and_the_owner_changes_only_at_resume():
    host = FakeHost()
    coordinator = begun(host, "x", "y", replay=True)
    assert host.of("b", msg.Prepare) == [msg.Prepare("1.1", ["x", "y"], 10.0, True)]
    coordinator.on_slot(msg.Slot("1.1", ["x", "y"], "mem://b", "key"))
    assert coordinator.table.outcome("1.1").state == "ready"
    assert coordinator.cut("1.1").state == "cut"
    assert host.revoked == [("a", msg.Revoke("1.1", 5, items("x", "y"), "b", "mem://b", "key"))]
    assert {owner.key for owner in host.owners.entries.values()} == {A}
    assert not host.of("a", msg.StartMove)
    assert not host.of("b", msg.Install)


def test_revoke_is_repeated_until_the_last_has_resumed_and_stops():
    host = FakeHost()
    coordinator = cut(host, "x", "y", replay=True)
    woken_until(coordinator, host, 101.0)
    assert [[i.subscriber for i in said.members] for _, said in host.revoked] == [["x", "y"]] * 5
    coordinator.resumed("x", "1.1", "b")
    coordinator.tick()
    woken_until(coordinator, host, 101.6)
    assert [[i.subscriber for i in said.members] for _, said in host.revoked[5:]] == [["y"]] * 2
    coordinator.resumed("y", None, "c")
    woken_until(coordinator, host, 200.0)
    assert len(host.revoked) == 7
    assert states(coordinator) == {"x": "moved", "y": "returned"}


def test_revoke_stops_when_the_member_is_detached():
    host = FakeHost()
    coordinator = cut(host, "x", replay=True)
    woken_until(coordinator, host, 500.0)
    assert states(coordinator) == {"x": "detached"}
    assert len(host.revoked) == 80, "every 0.25 s for 20 s"


def test_by_replay_who_has_another_owner_by_now_is_not_revoked():
    host = FakeHost()
    coordinator = begun(host, "x", "y", replay=True)
    coordinator.on_slot(msg.Slot("1.1", ["x", "y"], "mem://b", ""))
    host.owners.swap("y", C, (1, 6), (5, 0))
    assert coordinator.cut("1.1").state == "cut"
    assert states(coordinator) == {"x": "cut", "y": "gone"}
    assert [i.subscriber for i in host.revoked[0][1].members] == ["x"]
    assert host.of("b", msg.Abort) == [msg.Abort("1.1", items("y"))]


def test_by_replay_if_all_have_gone_nothing_is_cut():
    host = FakeHost()
    coordinator = begun(host, "x", replay=True)
    coordinator.on_slot(msg.Slot("1.1", ["x"], "mem://b", ""))
    host.owners.swap("x", C, (1, 6), (5, 0))
    assert coordinator.cut("1.1").state == "aborted"
    assert host.revoked == []
