"""The source of a hand-over: which members it sends away, where their streams end, and every way out."""

from __future__ import annotations

import pytest
from tests.core.edge.handover.source_stage import BIG, OTHER, cut, delivered, ends, move, served
from tests.core.fleet import resume
from tests.core.head.handover.script import S, Stage, attach, is_empty, members

from plimsoll.core.config import BrokerHardware, HardwareEmulation
from plimsoll.core.edge.handover.source import NOT_IN_TIME
from plimsoll.core.protocol import messages as msg

# -- which members are sent away


def test_who_is_live_is_told_where_to_go():
    stage = served()
    move(stage)
    assert stage.said("a", msg.MoveTo) == [msg.MoveTo(S, [msg.MoveToItem(1, (1, 2))], "b", "mem://b", "")]
    assert stage.head.of("a", msg.HandoverRejected) == []
    assert stage.state("a") == "live"


def test_others_are_reported_by_why_they_cannot_be_moved():
    stage = served()
    stage.ask("a", resume(3, "closed"), resume(4, "blocked", slow="block", queue_bytes=500), resume(5, "busy"))
    stage.ask("a", msg.Detach([3], False), msg.Pause(4))
    move(stage, msg.MemberItem("busy", (1, 1)), session=OTHER)
    stage.publish("a", count=5, size=BIG)
    assert stage.state("a", "blocked") == "blocked"
    items = [*members("x", "w", n=4), *members("closed", "blocked", "busy", "unknown", n=1)]
    move(stage, *items)
    assert stage.head.of("a", msg.HandoverRejected) == [
        msg.HandoverRejected(S, ["x", "w", "blocked", "busy"], NOT_IN_TIME),
        msg.HandoverRejected(S, ["closed"], "away: its client is not connected to the source"),
        msg.HandoverRejected(S, ["unknown"], "left: is not known at the source any more"),
    ]
    assert [told.session for told in stage.said("a", msg.MoveTo)] == [OTHER]


def test_who_closes_before_its_cut_is_reported_as_away():
    stage = served()
    move(stage)
    stage.ask("a", msg.Detach([1, 2], False))
    told = msg.HandoverRejected(S, ["x"], "away: its client is not connected to the source")
    assert stage.head.of("a", msg.HandoverRejected) == [told], "`w` is in no session"
    stage.tell("a", cut(stage))
    assert len(stage.head.of("a", msg.HandoverRejected)) == 1


def test_who_closes_behind_its_cut_is_not_reported():
    stage = served()
    move(stage)
    stage.ask("a", msg.Pause(1))
    stage.publish("a", count=3, size=BIG)
    stage.tell("a", cut(stage))
    stage.ask("a", msg.Detach([1], False))
    assert stage.head.of("a", msg.HandoverRejected) == []


def test_who_attaches_again_here_is_left_to_the_head():
    stage = served()
    move(stage)
    stage.ask("a", resume(7, "x", n=4))
    assert stage.head.of("a", msg.HandoverRejected) == []


def test_who_leaves_for_good_is_forgotten_and_not_reported_as_away():
    stage = served()
    move(stage)
    stage.ask("a", msg.Detach([1], True))
    assert stage.head.of("a", msg.HandoverRejected) == []
    assert len(stage.head.of("a", msg.Forget)) == 1


def test_who_has_a_queue_is_told_ahead_of_it():
    stage = served()
    stage.ask("a", msg.Pause(1))
    stage.publish("a", count=3)
    move(stage)
    assert len(stage.said("a", msg.MoveTo)) == 1


def test_abort_lets_stay_who_was_told_in_this_session():
    stage = served()
    move(stage)
    stage.tell("a", msg.Abort(OTHER, members("x")), msg.Abort(S, members("x", n=4)), msg.Abort(S, members("w")))
    assert stage.said("a", msg.Stay) == []
    stage.tell("a", msg.Abort(S, members("x")), msg.Abort(S, members("x")))
    assert stage.said("a", msg.Stay) == [msg.Stay(1, S)]
    move(stage, session=OTHER)
    assert [told.session for told in stage.said("a", msg.MoveTo)] == [S, OTHER]


def test_who_fell_behind_meanwhile_is_told_to_stay_too():
    stage = served(slow="block", queue_bytes=500)
    move(stage)
    stage.ask("a", msg.Pause(1))
    stage.publish("a", count=5, size=BIG)
    assert stage.state("a") == "blocked"
    stage.tell("a", msg.Abort(S, members("x")))
    assert stage.said("a", msg.Stay) == [msg.Stay(1, S)]


def test_abort_does_not_take_the_place_of_a_lost_member():
    stage = served()
    move(stage)
    stage.ask("a", msg.Detach([1], False))
    stage.tell("a", msg.Abort(S, members("x")))
    assert stage.state("a") == "closed"
    assert stage.said("a", msg.Stay) == []


# -- the cut of one that keeps up


def test_end_comes_behind_everything_and_nothing_behind_it():
    stage = served()
    move(stage)
    stage.head.publish("a", count=3)
    told = cut(stage)
    stage.head.tell("a", told)
    stage.publish("a", count=3)
    assert delivered(stage) == [1, 2, 3, "end"]
    assert ends(stage) == [msg.End(S, told.token, [1])]
    assert delivered(stage, 2) == [1, 2, 3, 4, 5, 6]


def test_within_a_cluster_the_cut_ends_its_place():
    stage = Stage()
    stage.attach("x")
    stage.tell("a", cut(stage))
    edge = stage.edge("a")
    assert stage.state("a") == "ending"
    assert len(edge.index) == len(edge.subscription_table.cover) == 0
    assert len(stage.head.of("a", msg.Cover)) == 1
    stage.ask("a", msg.Detach([1], False))
    assert is_empty(edge)
    assert stage.head.of("a", msg.Forget) == []
    assert len(stage.head.of("a", msg.Cover)) == 1


def test_a_batch_leaves_the_cover_in_one_update():
    stage = Stage()
    stage.ask("a", *[resume(i, f"x{i}", f"[n,=,{i}]", n=2) for i in range(1, 9)])
    stage.tell("a", cut(stage, *[f"x{i}" for i in range(1, 9)]))
    (update,) = stage.head.of("a", msg.Cover)
    assert len(update.removes) == 8
    assert [end.attachments for end in ends(stage)] == [list(range(1, 9))]


def test_across_clusters_it_stays_in_the_cover_until_release():
    stage = Stage()
    stage.attach("x")
    stage.tell("a", cut(stage, across=True))
    edge = stage.edge("a")
    assert ends(stage) == [msg.End(S, ("k", 5, 900), [1])]
    assert len(edge.subscription_table.cover) == 1
    stage.publish("a", count=2)
    assert delivered(stage) == ["end"]
    stage.ask("a", msg.Detach([1], False))
    assert stage.state("a") == "closed"
    assert len(edge.subscription_table.cover) == 1
    stage.tell("a", msg.Release("x", (1, 3)))
    assert is_empty(edge)
    assert stage.shuts("a") == []


@pytest.mark.parametrize("across", [False, True])
def test_who_is_not_attached_at_the_cut(across: bool):
    stage = Stage()
    stage.attach("x")
    stage.ask("a", msg.Detach([1], False))
    stage.tell("a", cut(stage, across=across))
    assert stage.state("a") == ("closed" if across else "")
    assert len(stage.edge("a").subscription_table.cover) == across
    assert is_empty(stage.edge("a")) is not across


def test_a_cut_of_another_epoch_is_not_heeded_and_a_second_one_neither():
    stage = served()
    stage.tell("a", cut(stage, n=4), cut(stage, n=1))
    assert ends(stage) == []
    stage.tell("a", cut(stage))
    stage.tell("a", cut(stage))
    assert len(ends(stage)) == 1
    assert stage.shuts("a") == []
    assert stage.state("a") == "ending"


@pytest.mark.parametrize("across", [False, True])
def test_a_change_behind_the_cut_is_not_taken(across: bool):
    stage = served()
    stage.tell("a", cut(stage, across=across))
    stage.ask("a", msg.Subs(1, 2, [msg.SubscriptionItem(2, "[n,>,3]")], [1]))
    assert [s.version for s in stage.said("a", msg.Suback) if s.attachment == 1] == [1]
    assert len(stage.edge("a").index) == 1


def test_what_was_promised_before_the_cut_is_still_acknowledged():
    stage = served()
    stage.head.answers = False
    stage.ask("a", msg.Subs(1, 2, [msg.SubscriptionItem(2, "[n,>,3]")], []))
    seq = stage.head.of("a", msg.Cover)[-1].seq
    stage.tell("a", cut(stage))
    stage.tell("a", msg.CoverAck(seq, []))
    assert msg.Suback(1, 2, []) in stage.said("a", msg.Suback)


def test_progress_does_not_speak_for_who_is_ending():
    stage = served()
    stage.tell("a", cut(stage))
    stage.publish("a")
    stage.run(0.2)
    assert stage.said("a", msg.Progress)[-1] == msg.Progress(1, [1])


def test_the_link_of_one_that_is_ending_is_lost():
    stage = Stage()
    stage.attach("x")
    stage.tell("a", cut(stage))
    stage.client.handshakes.reopen(stage.client.dialled["a"], "gone")
    stage.run()
    assert is_empty(stage.edge("a"))


# -- other ends


@pytest.mark.parametrize("across", [False, True])
def test_part_ends_the_waiting_for_a_queue_that_is_not_taken(across: bool):
    stage = served()
    stage.ask("a", msg.Pause(1))
    stage.publish("a", count=3)
    stage.tell("a", cut(stage, across=across))
    stage.tell("a", msg.ForceDetach(S, members("x", n=1)))
    assert stage.state("a") == "ending"
    stage.tell("a", msg.ForceDetach(S, members("x")))
    assert stage.shuts("a") == [(1, "parted")]
    assert stage.state("a") == ("closed" if across else "")
    stage.ask("a", msg.Continue(1))
    assert delivered(stage) == []


def test_part_of_one_that_still_waits_for_its_rest_leaves_nothing():
    stage = Stage(queue_bytes=100_000)
    stage.attach("x", slow="block", queue_bytes=3000, block_seconds=60.0)
    stage.ask("a", msg.Pause(1))
    stage.publish("a", count=4, size=BIG)
    stage.publish("a", count=4)
    stage.tell("a", cut(stage))
    stage.tell("a", msg.ForceDetach(S, members("x")))
    assert stage.shuts("a") == [(1, "parted")]
    assert is_empty(stage.edge("a"))


def test_resume_at_the_source_wins_over_what_is_ending():
    stage = served()
    stage.ask("a", msg.Pause(1))
    stage.publish("a", count=3)
    stage.tell("a", cut(stage))
    stage.ask("a", resume(3, "x", n=4, token=("h", 100, 1)))
    assert stage.shuts("a") == [(1, "replaced")]
    assert stage.numbers("a", 3) == [2, 3]
    stage.ask("a", msg.Detach([3], True), msg.Detach([2], True))
    assert is_empty(stage.edge("a"))


def test_who_has_gone_may_come_back_though_it_has_not_detached():
    stage = served()
    stage.tell("a", cut(stage))
    stage.tell("a", msg.Prepare(OTHER, ["x"], 9.0, False))
    assert stage.head.of("a", msg.Slot)[-1].members == ["x"]
    stage.ask("a", attach(8, "x", n=4, session=OTHER))
    assert stage.state("a") == "dark"


def test_who_has_gone_across_has_its_place_until_release():
    stage = served()
    stage.tell("a", cut(stage, across=True))
    stage.tell("a", msg.Prepare(OTHER, ["x"], 9.0, False))
    assert stage.head.of("a", msg.HandoverRejected)[-1].members == ["x"]


def test_an_edge_that_leaves_lets_those_end_that_are_ending():
    stage = served()
    stage.ask("a", msg.Pause(1))
    stage.publish("a", count=3)
    stage.tell("a", cut(stage))
    stage.edge("a").leave(stage.fleet.now)
    stage.ask("a", msg.Continue(1))
    assert delivered(stage) == [1, 2, 3, "end"]
    assert [moved.attachments for moved in stage.said("a", msg.Moved)] == [[2]]
    stage.ask("a", msg.Detach([1], False))
    assert set(stage.edge("a").attachments.by_subscriber) == {"w"}


def test_a_new_head_does_not_know_who_was_to_move():
    stage = served()
    move(stage)
    stage.tell("a", cut(stage, "w"))
    stage.new_head(200)
    assert stage.shuts("a") == [(2, "head")]
    assert [item.subscriber for item in stage.head.heard["a"][0].owned] == ["x"]
    stage.tell("a", msg.Abort(S, members("x")))
    assert stage.said("a", msg.Stay) == []
    move(stage, session="9.1")
    assert stage.said("a", msg.MoveTo)[-1].session == "9.1"


def test_the_cut_keeps_its_place_in_the_stream_of_a_slow_server():
    stage = Stage(hardware={"a": BrokerHardware(emulation=HardwareEmulation(base_seconds=0.02))})
    stage.attach("x")
    stage.head.publish("a", count=5)
    stage.head.tell("a", cut(stage))
    stage.head.publish("a", count=5)
    stage.run(0.05)
    assert ends(stage) == []
    stage.run(0.3)
    assert delivered(stage) == [1, 2, 3, 4, 5, "end"]
