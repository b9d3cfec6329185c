"""The target of a hand-over: every way out, and what else ends there."""

from __future__ import annotations

import pytest
from tests.core.fleet import resume
from tests.core.head.handover.script import STATES, S, Stage, at, attach, is_empty, lose_link, members

from plimsoll.core.config import BrokerHardware, HardwareEmulation
from plimsoll.core.protocol import messages as msg

OTHER = "7.2"

# -- ends


@pytest.mark.parametrize("state", STATES)
def test_abort_leaves_nothing(state: str):
    stage = at(state)
    stage.publish("b", count=2)
    stage.tell("b", msg.Abort(OTHER, members("x")))
    assert stage.state("b") == state
    stage.tell("b", msg.Abort(S, members("x")))
    assert stage.shuts("b") == [(11, "session")]
    assert is_empty(stage.edge("b"))
    assert stage.client.items("b", 11) == []


def test_abort_does_not_reach_who_has_gone_live():
    stage = at("hold")
    stage.ask("b", msg.Go(S, [msg.GoItem(11)]))
    stage.tell("b", msg.Abort(S, members("x")), msg.Orphan(S, ["x"]), msg.ForceDetach(S, members("x")))
    assert stage.state("b") == "live"


@pytest.mark.parametrize("end", ["detach", "link"])
@pytest.mark.parametrize("state", STATES)
def test_who_is_lost_on_the_way_keeps_its_place_from_install_on(state: str, end: str):
    stage = at(state)
    if end == "detach":
        stage.ask("b", msg.Detach([11], False))
    else:
        lose_link(stage)
    edge = stage.edge("b")
    if state == "dark":
        assert stage.state("b") == ""
        assert edge.status()["slots"] == 1
        assert len(edge.subscription_table) == 0
        stage.tell("b", msg.Abort(S, members("x")))
    else:
        assert stage.state("b") == "closed"
        assert len(edge.subscription_table.cover) == 1
        stage.installed("x")
        assert stage.state("b") == "closed"
        stage.tell("b", msg.Abort(S, members("x")))
    assert is_empty(edge)


def test_who_has_detached_in_the_dark_may_attach_again():
    stage = at("dark")
    stage.ask("b", msg.Detach([11], True))
    assert stage.head.of("b", msg.Forget) == []
    stage.ask("b", attach(12, "x", version=3))
    assert stage.said("b", msg.Held)[-1] == msg.Held([msg.HeldItem(12, 3)])
    stage.tell("b", msg.Install(S, ["x"]))
    assert len(stage.head.of("b", msg.CutRequest)) == 1


def test_who_withdraws_from_hold_has_gone_for_good():
    stage = at("hold")
    stage.ask("b", msg.Detach([11], True))
    assert stage.head.of("b", msg.Forget) == [msg.Forget("x", (1, 3))]
    assert is_empty(stage.edge("b"))


@pytest.mark.parametrize("state", STATES)
def test_resume_wins_over_the_session_at_the_same_edge(state: str):
    stage = at(state)
    stage.publish("b", count=2)
    stage.ask("b", resume(12, "x", "[n,>,3]", n=4))
    assert stage.shuts("b") == [(11, "replaced")]
    edge = stage.edge("b")
    assert [str(s) for _, s in edge.subscription_table.cover.items()] == ["[n,>,3]"]
    stage.tell("b", msg.Abort(S, members("x")))
    assert edge.status()["slots"] == 0
    stage.publish("b", count=2)
    assert stage.numbers("b", 12) == [4]
    stage.ask("b", msg.Detach([12], True))
    assert is_empty(edge)


@pytest.mark.parametrize("state", STATES)
def test_release_ends_it_when_the_subscriber_is_served_elsewhere(state: str):
    stage = at(state)
    stage.tell("b", msg.Release("x", (1, 4)))
    assert stage.shuts("b") == [(11, "released")]
    stage.tell("b", msg.Abort(S, members("x")))
    assert is_empty(stage.edge("b"))


def test_part_closes_what_is_held_and_keeps_its_place():
    stage = at("hold")
    stage.tell("b", msg.ForceDetach(S, members("x", n=7)), msg.ForceDetach(OTHER, members("x")))
    assert stage.state("b") == "hold"
    stage.tell("b", msg.ForceDetach(S, members("x")))
    assert stage.shuts("b") == [(11, "parted")]
    assert stage.state("b") == "closed"
    assert len(stage.edge("b").subscription_table.cover) == 1


@pytest.mark.parametrize("state", ["live", "blocked", "closed"])
def test_part_of_who_has_gone_live_says_done_again(state: str):
    stage = Stage(queue_bytes=500)
    stage.hold("x", slow="block")
    stage.ask("b", msg.Go(S, [msg.GoItem(11)]))
    if state == "blocked":
        stage.ask("b", msg.Pause(11))
        stage.publish("b", size=1000)
    elif state == "closed":
        stage.ask("b", msg.Detach([11], False))
    assert stage.state("b") == state
    stage.tell("b", msg.ForceDetach(S, members("x")))
    assert stage.state("b") == state
    assert stage.head.of("b", msg.Done) == [msg.Done(S, ["x"]), msg.Done(S, ["x"])]


@pytest.mark.parametrize(("state", "left"), [("dark", ""), ("cutting", ""), ("hold", "closed")])
def test_orphans_are_dropped_but_for_those_that_are_owned_here(state: str, left: str):
    stage = at(state)
    stage.prepare("y")
    stage.tell("b", msg.Orphan(OTHER, ["x", "y"]))
    assert stage.state("b") == state
    stage.tell("b", msg.Orphan(S, ["x", "y"]))
    assert stage.shuts("b") == [(11, "session")]
    assert stage.state("b") == left
    assert stage.edge("b").status()["slots"] == 0
    assert len(stage.edge("b").subscription_table.cover) == (left == "closed")


@pytest.mark.parametrize("state", STATES)
def test_a_new_head_knows_of_no_session(state: str):
    stage = at(state)
    stage.ask("b", resume(1, "w"))
    stage.prepare("y")
    stage.tell("b", msg.MediatorEpoch(5), msg.MediatorEpoch(3))
    stage.new_head(200)
    assert stage.shuts("b") == [(11, "head")]
    edge = stage.edge("b")
    assert set(edge.attachments.by_subscriber) == {"w"}
    assert edge.status()["slots"] == 0
    report = stage.head.heard["b"][0]
    assert isinstance(report, msg.EdgeReport)
    assert [item.subscriber for item in report.owned] == ["w"]
    assert report.mediator == edge.status()["mediator"] == 5


def test_who_has_come_is_reported_with_where_its_cover_began():
    stage = at("cutting")
    stage.head.position = 30
    stage.installed("x")
    stage.ask("b", msg.Go(S, [msg.GoItem(11)]))
    stage.new_head(200)
    report = stage.head.heard["b"][0]
    assert report.owned == [msg.OwnedItem("x", (1, 3), (100, 30), "app")]


@pytest.mark.parametrize(("state", "left"), [("dark", ""), ("cutting", "closed"), ("hold", "closed")])
def test_an_edge_that_leaves_takes_no_subscriber_in(state: str, left: str):
    stage = at(state)
    stage.prepare("y")
    stage.edge("b").leave(stage.fleet.now)
    stage.run()
    assert stage.shuts("b") == [(11, "leaving")]
    assert stage.state("b") == left
    told = {x for nak in stage.head.of("b", msg.HandoverRejected) for x in nak.members}
    assert told == ({"x", "y"} if state == "dark" else {"y"})
    stage.ask("b", attach(12, "y"))
    assert stage.shuts("b")[-1] == (12, "leaving")
    stage.tell("b", msg.Abort(S, members("x")))
    assert is_empty(stage.edge("b"))
    assert stage.edge("b").done()


def test_the_places_of_hand_over_keep_to_the_order_of_a_slow_server():
    slow = BrokerHardware(emulation=HardwareEmulation(base_seconds=0.02))
    stage = Stage(hardware={"b": slow})
    stage.dark("x")
    stage.head.publish("b", count=5)
    stage.head.tell("b", msg.Install(S, ["x"]))
    stage.head.publish("b", count=5)
    stage.head.tell("b", msg.Installed(S, ["x"], 10, [(100, 10)]))
    stage.head.publish("b", count=5)
    stage.run(0.15)
    assert stage.state("b") == "cutting"
    stage.run(0.15)
    assert stage.state("b") == "hold"
    stage.ask("b", msg.Go(S, [msg.GoItem(11)]))
    stage.run(0.5)
    assert stage.numbers("b", 11) == [11, 12, 13, 14, 15]
