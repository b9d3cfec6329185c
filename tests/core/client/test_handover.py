"""A subscriber that is handed over, between scripted edges `e` and `o`: one test for each rule."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.core.client import Attached, Delivery, Detached, Failed
from plimsoll.core.client.attachment import ClientAttachmentState
from plimsoll.core.protocol import messages as msg

# -- MOVE_TO


def test_it_attaches_at_the_target_while_it_is_served(move: Any):
    move.begin()
    said = move.target.last_of(msg.Attach)
    (attach,) = said.members
    inc, n = move.subscriber.epoch
    assert (attach.subscriber, attach.epoch, said.session) == ("s", (inc, n + 1), move.session)
    assert attach.subscriptions == list(move.subscriber.subscriptions.values())
    assert attach.version == move.subscriber.subscription_list.version
    assert move.subscriber.current.id == move.id
    assert move.source.all(msg.Detach) == []
    assert move.stage.app.of(Detached) == []


def test_the_policy_goes_with_it(stage: Any, kit: Any):
    move = kit.move(stage, policy=msg.Policy(slow="drop-oldest"))
    move.begin()
    assert move.target.last_of(msg.Attach).members[0].policy.slow == "drop-oldest"


def test_a_link_to_the_target_is_shared(stage: Any, kit: Any):
    move = kit.move(stage)
    stage.head.edge = ("o", kit.other)
    other = stage.client.subscriber("other")
    stage.run()
    stage.answer(10, move.target)
    links = len(stage.client.links)
    move.begin()
    assert len(stage.client.links) == links
    assert move.subscriber.handover.next.port is other.current.port
    move.stay()
    move.run(3.0)
    assert stage.app.of(Detached) == []


@pytest.mark.parametrize("wrong", ["epoch", "same edge", "under way", "attaching"])
def test_records_that_do_not_apply_now_are_ignored(move: Any, wrong: str):
    if wrong == "epoch":
        move.begin(epoch=(move.subscriber.epoch[0], move.subscriber.epoch[1] + 1))
    elif wrong == "same edge":
        move.begin(edge="e", endpoint="tcp://elsewhere")
    elif wrong == "under way":
        move.begin()
        move.begin("4.8")
    else:
        move.source.tell(msg.AttachmentClosed(move.id, "head", "again"))
        move.run(1.0)
        move.id = move.subscriber.current.id
        assert move.subscriber.current.state is ClientAttachmentState.RESUMING
        move.begin()
    assert len(move.target.all(msg.Attach)) == (wrong == "under way")
    assert move.stage.client.counters["moves_passed_over"] == 1
    assert move.subscriber.current.port.edge == "e"


def test_the_target_asks_in_vain_for_a_move(move: Any):
    move.begin()
    move.target.tell(msg.MoveTo("4.8", [msg.MoveToItem(move.next, move.subscriber.epoch)], "e", "tcp://edge", ""))
    move.run()
    assert move.stage.client.counters["moves_passed_over"] == 1


def test_it_stays_where_the_target_cannot_be_reached(move: Any, kit: Any):
    move.stage.wire.cut.add(kit.other)
    move.begin()
    new = move.change()
    move.suback()
    assert move.acknowledged()[-1] == (new,)
    move.run(20.0)
    move.stay()
    move.run(3.0)
    assert set(move.stage.client.edge_ports.by_edge) == {"e"}
    assert move.stage.app.of(Detached) == []


# -- END


def test_the_target_takes_over_where_the_source_ends(move: Any, kit: Any):
    move.begin()
    move.held()
    n = move.subscriber.number
    move.source.tell(msg.Deliver(move.id, kit.pub(15)))
    move.end()
    assert (move.subscriber.token, move.subscriber.number) == (move.cut, n + 1)
    assert move.target.last_of(msg.Go) == msg.Go(move.session, [msg.GoItem(move.next, ("h", 5, 10), [])])
    assert move.source.all(msg.Detach) == [msg.Detach([move.id], False)]
    assert move.subscriber.current.id == move.next
    assert move.subscriber.handover is None
    move.target.tell(msg.Deliver(move.next, kit.pub(21)), msg.Deliver(move.next, kit.pub(22)))
    move.run()
    assert move.stage.app.seqs() == [15, 21, 22]
    assert move.stage.app.of(Attached)[-1] == Attached("o", "h", True)
    assert move.stage.app.of(Detached) == []
    assert move.subscriber.token == ("h", 5, 22)
    assert move.subscriber.statistics()["moves"] == 1
    assert move.subscriber.statistics()["edge"] == "o"


def test_it_need_not_have_heard_that_the_target_has_it(move: Any):
    move.begin()
    move.end()
    assert len(move.target.all(msg.Go)) == 1


def test_the_link_to_the_source_is_closed_behind_it(move: Any):
    move.begin()
    move.end()
    move.run(3.0)
    assert set(move.stage.client.edge_ports.by_edge) == {"o"}


def test_the_stream_may_go_on_at_another_head(move: Any, kit: Any):
    move.begin()
    move.held()
    move.source.tell(msg.Deliver(move.id, kit.pub(15, offset=3, head="g", epoch=9)))
    move.end(("g", 9, 4))
    move.target.tell(
        msg.Deliver(move.next, kit.pub(5, offset=3, head="g", epoch=9)),
        msg.Deliver(move.next, kit.pub(6, offset=6, head="g", epoch=9)),
    )
    move.run()
    assert [each.offset for each in (d.pub for d in move.stage.app.of(Delivery))] == [3, 6]
    assert move.subscriber.statistics()["duplicates_suppressed"] == 1
    assert move.stage.app.of(Delivery)[-1].token == move.subscriber.token == ("g", 9, 6)
    assert move.stage.app.of(Attached)[-1].head == "g"


def test_nothing_is_taken_from_the_target_before_the_end(move: Any, kit: Any):
    move.begin()
    move.held()
    move.target.tell(
        msg.Deliver(move.next, kit.pub(12)),
        msg.Deliver(move.next, msg.Gap("h", 5, 11, 5, 18, [], "test")),
        msg.Progress(19),
        msg.Epoch(move.next, msg.Gap("h", 5, 11, 6, 1, [], "restart")),
    )
    move.run()
    assert move.stage.app.of(Delivery) == []
    assert move.subscriber.token == ("h", 5, 10)
    assert move.stage.client.counters["records_for_unknown_attachments"] == 2
    assert move.stage.client.counters["records_refused_misplaced"] == 1


def test_progress_of_the_target_counts_after_the_end(move: Any):
    move.begin()
    move.target.tell(msg.Progress(15))
    move.end()
    move.target.tell(msg.Progress(25))
    move.run()
    assert move.subscriber.token == ("h", 5, 25)


def test_what_still_comes_from_the_source_behind_the_end_is_of_no_concern(move: Any, kit: Any):
    move.begin()
    move.end()
    move.source.tell(msg.Deliver(move.id, kit.pub(25)), msg.Progress(90), msg.AttachmentClosed(move.id, "head", "late"))
    move.run()
    assert move.stage.app.of(Delivery) == []
    assert move.subscriber.token == move.cut
    assert move.subscriber.current.id == move.next


def test_it_can_be_moved_on(move: Any, kit: Any):
    move.begin()
    move.end()
    move.source, move.target, move.id = move.target, move.source, move.next
    move.begin("4.8", edge="e", endpoint=kit.edge)
    move.end(("h", 5, 30), "4.8")
    assert move.subscriber.statistics()["moves"] == 2
    assert move.subscriber.current.port.edge == "e"
    assert move.subscriber.token == ("h", 5, 30)


def test_a_pause_is_carried_over(move: Any):
    move.subscriber.pause()
    move.begin()
    move.end()
    said = [each for each in move.target.heard if isinstance(each, msg.Pause | msg.Go)]
    assert said == [msg.Pause(move.next), msg.Go(move.session, [msg.GoItem(move.next, ("h", 5, 10), [])])]
    move.subscriber.resume()
    move.run()
    assert move.target.last_of(msg.Continue).attachment == move.next
    assert move.source.all(msg.Continue) == []


def test_the_target_is_not_paused_before_it_delivers(move: Any):
    move.begin()
    move.subscriber.pause()
    move.run()
    move.subscriber.resume()
    move.run()
    move.end()
    assert move.target.all(msg.Pause) == []
    assert len(move.source.all(msg.Pause)) == len(move.source.all(msg.Continue)) == 1


# -- END without a target


def test_without_a_target_it_resumes_there(move: Any):
    move.begin()
    n = move.subscriber.number
    move.target.tell(msg.AttachmentClosed(move.next, "hold", "full"))
    move.run()
    move.end()
    resume = move.target.last_of(msg.Resume)
    assert (resume.token, resume.session) == (move.cut, move.session)
    assert resume.epoch[1] == n + 3
    assert move.source.last_of(msg.Detach) == msg.Detach([move.id], False)
    assert move.target.all(msg.Go) == []
    move.stage.answer(20, move.target)
    assert move.stage.app.of(Attached)[-1] == Attached("o", "h", True)
    assert move.subscriber.session is None


@pytest.mark.parametrize("how", ["link lost", "leaving", "moved"])
def test_a_target_that_is_gone_is_not_asked_again(move: Any, kit: Any, how: str):
    move.begin()
    if how == "link lost":
        move.lose_target()
    else:
        code = (
            msg.AttachmentClosed(move.next, "leaving", "") if how == "leaving" else msg.Moved([move.next], "", "", "")
        )
        move.target.tell(code)
        move.run()
    assert move.subscriber.current.id == move.id
    assert move.stage.app.of(Detached) == []
    move.end(("g", 9, 4))
    join = move.stage.head.last_of(msg.Join)
    assert (join.exclude, join.head) == (["o"], "g")
    resume = move.source.last_of(msg.Resume)
    assert (resume.token, resume.session) == (("g", 9, 4), move.session)


def test_an_end_before_it_could_ask_the_target(move: Any, kit: Any):
    move.stage.wire.cut.add(kit.other)
    move.begin()
    move.end()
    move.stage.wire.cut.clear()
    move.run(3.0)
    assert move.target.last_of(msg.Resume).token == move.cut
    assert move.target.all(msg.Attach) == []


def test_an_unrequested_end_ends_the_stream_all_the_same(move: Any):
    move.begin()
    move.held()
    move.end(session="4.9")
    assert move.target.last_of(msg.Detach) == msg.Detach([move.next], False)
    resume = move.source.last_of(msg.Resume)
    assert (resume.token, resume.session) == (move.cut, "4.9")


def test_a_target_that_fails_after_the_end_is_left_with_the_session_named(move: Any, kit: Any):
    move.begin()
    move.end()
    move.stage.wire.remove(move.target)
    move.run(10.0)
    resume = move.source.last_of(msg.Resume)
    assert (resume.token, resume.session) == (move.cut, move.session)
    assert move.stage.head.last_of(msg.Join).exclude == ["o"]


def test_a_full_hold_that_the_end_has_crossed_is_resumed_there(move: Any):
    move.begin()
    move.source.tell(msg.End(move.session, move.cut, [move.id]))
    move.target.tell(msg.AttachmentClosed(move.next, "hold", "full"))
    move.run()
    resume = move.target.last_of(msg.Resume)
    assert (resume.token, resume.session) == (move.cut, move.session)
    assert len(move.stage.head.all(msg.Join)) == 1


# -- the hand-over is off


def test_stay_ends_it(move: Any, kit: Any):
    move.begin()
    move.stay("4.8")
    assert move.target.all(msg.Detach) == []
    move.stay()
    assert move.target.all(msg.Detach) == [msg.Detach([move.next], False)]
    move.source.tell(msg.Deliver(move.id, kit.pub(11)))
    move.run(3.0)
    assert move.stage.app.seqs() == [11]
    assert set(move.stage.client.edge_ports.by_edge) == {"e"}
    assert move.stage.app.of(Detached) == []
    assert move.subscriber.statistics()["moves"] == 0


def test_after_stay_it_can_be_asked_again(move: Any):
    move.begin()
    move.stay()
    move.begin("4.8")
    assert [each.session for each in move.target.all(msg.Attach)] == [move.session, "4.8"]


def test_a_target_that_refuses_changes_nothing(move: Any, kit: Any):
    move.begin()
    move.target.tell(msg.AttachmentClosed(move.next, "session", "no slot"))
    move.run()
    move.begin("4.8")
    move.source.tell(msg.Deliver(move.id, kit.pub(11)))
    move.run()
    assert move.stage.app.seqs() == [11]
    assert len(move.target.all(msg.Attach)) == 1
    move.run(3.0)
    assert set(move.stage.client.edge_ports.by_edge) == {"e"}
    assert move.stage.app.of(Detached) == []


@pytest.mark.parametrize("code", ["epoch", "slow", "released"])
def test_no_code_of_the_target_is_meant_for_the_subscriber(move: Any, code: str):
    move.begin()
    move.target.tell(msg.AttachmentClosed(move.next, code, ""))
    move.run()
    assert move.stage.app.of(Failed) == []
    assert move.subscriber.conflicts == 0
    assert move.subscriber.current.id == move.id


@pytest.mark.parametrize("how", ["shut", "link", "moved"])
def test_who_loses_the_source_resumes_and_leaves_the_target(move: Any, kit: Any, how: str):
    move.begin()
    n = move.subscriber.number
    move.stage.head.edge = ("o", kit.other)
    if how == "shut":
        move.source.tell(msg.AttachmentClosed(move.id, "parted", "too long"))
    elif how == "moved":
        move.source.tell(msg.Moved([move.id], "", "", ""))
    else:
        move.stage.wire.remove(move.source)
    move.run(10.0)
    resume = move.target.last_of(msg.Resume)
    assert (resume.session, resume.token, resume.epoch[1]) == (None, ("h", 5, 10), n + 2)
    heard = [each for each in move.target.heard if isinstance(each, msg.Detach | msg.Resume)]
    assert [type(each) for each in heard] == [msg.Detach, msg.Resume]
    assert move.subscriber.handover is None


def test_a_restart_of_the_head_ends_it(move: Any):
    move.begin()
    move.source.tell(msg.Epoch(move.id, msg.Gap("h", 5, 11, 6, 2, [], "restart")))
    move.run()
    assert move.target.last_of(msg.Detach) == msg.Detach([move.next], False)
    assert move.subscriber.token == ("h", 6, 2)
    assert move.subscriber.current.id == move.id
    move.begin("5.1")
    assert move.target.last_of(msg.Attach).session == "5.1"


def test_who_is_moved_by_replay_names_the_session(move: Any, kit: Any):
    move.source.tell(msg.Moved([move.id], "o", kit.other, "", "4.9"))
    move.run()
    assert move.target.last_of(msg.Resume).session == "4.9"
    assert [move.subscriber.statistics()[each] for each in ("moves", "redirects")] == [1, 1]


def test_a_redirect_without_a_session_does_not_forget_one(move: Any):
    move.begin()
    move.end()
    move.target.tell(msg.Moved([move.next], "", "", ""))
    move.run()
    assert move.source.last_of(msg.Resume).session == move.session


@pytest.mark.parametrize("withdraw", [True, False])
def test_closing_detaches_from_both(move: Any, withdraw: bool):
    move.begin()
    move.subscriber.close(withdraw=withdraw)
    move.run(3.0)
    assert move.source.all(msg.Detach) == [msg.Detach([move.id], withdraw)]
    assert move.target.all(msg.Detach) == [msg.Detach([move.next], withdraw)]
    assert move.stage.client.edge_ports.by_edge == {}


def test_closing_before_the_target_was_asked_says_nothing_there(move: Any, kit: Any):
    move.stage.wire.cut.add(kit.other)
    move.begin()
    move.subscriber.close()
    move.stage.wire.cut.clear()
    move.run(5.0)
    assert move.target.heard == []
    assert move.stage.client.edge_ports.by_edge == {}


# -- several at once


def of_several(stage: Any, kit: Any, count: int) -> tuple[Any, list[Any]]:
    """Subscribers that share their links, and are at `e`."""
    move = kit.move(stage)
    others = []
    for number in range(1, count):
        others.append(stage.client.subscriber(f"s{number}"))
        others[-1].subscribe("[n,>,0]")
        stage.run()
        stage.answer(10)
    return move, [move.subscriber, *others]


def test_those_of_one_link_are_spoken_of_together(stage: Any, kit: Any):
    move, subscribers = of_several(stage, kit, 3)
    ids = [one.current.id for one in subscribers]
    epochs = [one.epoch for one in subscribers]
    wrong = msg.MoveToItem(ids[2], (1, 99))
    items = [*map(msg.MoveToItem, ids[:2], epochs), wrong, msg.MoveToItem(77, (1, 2))]
    move.source.tell(msg.MoveTo(move.session, items, "o", kit.other, ""))
    move.run()
    assert stage.client.counters["moves_passed_over"] == stage.client.counters["records_for_unknown_attachments"] == 1
    (attach,) = move.target.all(msg.Attach)
    assert [item.subscriber for item in attach.members] == [one.name for one in subscribers[:2]]
    nexts = [item.attachment for item in attach.members]
    move.target.tell(msg.Held([msg.HeldItem(number, 1) for number in nexts]))
    move.source.tell(msg.End(move.session, move.cut, [*ids[:2], 77]))
    move.run()
    assert [item.attachment for item in move.target.last_of(msg.Go).members] == nexts
    assert move.source.all(msg.Detach) == [msg.Detach(ids[:2], False)]
    assert [one.current.port.edge for one in subscribers] == ["o", "o", "e"]


def test_of_those_that_end_together_some_may_have_no_target(stage: Any, kit: Any):
    move, subscribers = of_several(stage, kit, 3)
    ids = [one.current.id for one in subscribers]
    items = [msg.MoveToItem(one.current.id, one.epoch) for one in subscribers]
    move.source.tell(msg.MoveTo(move.session, items, "o", kit.other, ""))
    move.run()
    first, second, third = (item.attachment for item in move.target.last_of(msg.Attach).members)
    move.target.tell(msg.AttachmentClosed(second, "hold", "full"))
    move.run()
    move.source.tell(msg.End(move.session, move.cut, ids))
    move.run()
    assert [item.attachment for item in move.target.last_of(msg.Go).members] == [first, third]
    assert move.source.all(msg.Detach) == [msg.Detach(ids, False)]
    resume = move.target.last_of(msg.Resume)
    assert (resume.subscriber, resume.token, resume.session) == (subscribers[1].name, move.cut, move.session)


def test_lists_that_do_not_fit_together_go_in_several_records(stage: Any, kit: Any):
    move, subscribers = of_several(stage, kit, 4)
    for one in subscribers[:3]:
        one.subscribe(f"[text,=,'{'x' * 30_000}']")
    stage.run()
    items = [msg.MoveToItem(one.current.id, one.epoch) for one in subscribers]
    move.source.tell(msg.MoveTo(move.session, items, "o", kit.other, ""))
    move.run()
    said = move.target.all(msg.Attach)
    assert [[item.subscriber for item in each.members] for each in said] == [["s", "s1"], ["s2", "s3"]]
