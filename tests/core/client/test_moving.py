"""A subscriber that is handed over, between scripted edges `e` and `o`: one test for each rule."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.core import records as r
from plimsoll.core.client import Attached, Delivery, Detached, Failed
from plimsoll.core.client.attachment import State

# -- MOVE_TO


def test_it_attaches_at_the_target_while_it_is_served(move: Any):
    move.begin()
    said = move.target.last_of(r.Attach)
    (attach,) = said.members
    inc, n = move.subscriber.epoch
    assert (attach.subscriber, attach.epoch, said.session) == ("s", (inc, n + 1), move.session)
    assert attach.subscriptions == list(move.subscriber.subscriptions.values())
    assert attach.version == move.subscriber.version
    assert move.subscriber.current.id == move.id
    assert move.source.all(r.Detach) == []
    assert move.stage.app.of(Detached) == []


def test_the_policy_goes_with_it(stage: Any, kit: Any):
    move = kit.move(stage, policy=r.Policy(slow="drop-oldest"))
    move.begin()
    assert move.target.last_of(r.Attach).members[0].policy.slow == "drop-oldest"


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
def test_what_is_not_meant_for_it_now_is_passed_over(move: Any, wrong: str):
    if wrong == "epoch":
        move.begin(epoch=(move.subscriber.epoch[0], move.subscriber.epoch[1] + 1))
    elif wrong == "same edge":
        move.begin(edge="e", endpoint="tcp://elsewhere")
    elif wrong == "under way":
        move.begin()
        move.begin("4.8")
    else:
        move.source.tell(r.Shut(move.id, "head", "again"))
        move.run(1.0)
        move.id = move.subscriber.current.id
        assert move.subscriber.current.state is State.RESUMING
        move.begin()
    assert len(move.target.all(r.Attach)) == (wrong == "under way")
    assert move.stage.client.counters["moves_passed_over"] == 1
    assert move.subscriber.current.port.edge == "e"


def test_the_target_asks_in_vain_for_a_move(move: Any):
    move.begin()
    move.target.tell(r.MoveTo("4.8", [r.MoveToItem(move.next, move.subscriber.epoch)], "e", "tcp://edge", ""))
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
    assert set(move.stage.client.ports) == {"e"}
    assert move.stage.app.of(Detached) == []


# -- END


def test_the_target_takes_over_where_the_source_ends(move: Any, kit: Any):
    move.begin()
    move.held()
    n = move.subscriber.number
    move.source.tell(r.Deliver(move.id, kit.pub(15)))
    move.end()
    assert (move.subscriber.token, move.subscriber.number) == (move.cut, n + 1)
    assert move.target.last_of(r.Go) == r.Go(move.session, [r.GoItem(move.next, ("h", 5, 10), [])])
    assert move.source.all(r.Detach) == [r.Detach([move.id], False)]
    assert move.subscriber.current.id == move.next
    assert move.subscriber.handover is None
    move.target.tell(r.Deliver(move.next, kit.pub(21)), r.Deliver(move.next, kit.pub(22)))
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
    assert len(move.target.all(r.Go)) == 1


def test_the_link_to_the_source_is_closed_behind_it(move: Any):
    move.begin()
    move.end()
    move.run(3.0)
    assert set(move.stage.client.ports) == {"o"}


def test_the_stream_may_go_on_at_another_head(move: Any, kit: Any):
    move.begin()
    move.held()
    move.source.tell(r.Deliver(move.id, kit.pub(15, offset=3, head="g", epoch=9)))
    move.end(("g", 9, 4))
    move.target.tell(
        r.Deliver(move.next, kit.pub(5, offset=3, head="g", epoch=9)),
        r.Deliver(move.next, kit.pub(6, offset=6, head="g", epoch=9)),
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
        r.Deliver(move.next, kit.pub(12)),
        r.Deliver(move.next, r.Gap("h", 5, 11, 5, 18, [], "test")),
        r.Progress(19),
        r.Epoch(move.next, r.Gap("h", 5, 11, 6, 1, [], "restart")),
    )
    move.run()
    assert move.stage.app.of(Delivery) == []
    assert move.subscriber.token == ("h", 5, 10)
    assert move.stage.client.counters["records_for_nobody"] == 2
    assert move.stage.client.counters["records_refused_misplaced"] == 1


def test_progress_of_the_target_counts_after_the_end(move: Any):
    move.begin()
    move.target.tell(r.Progress(15))
    move.end()
    move.target.tell(r.Progress(25))
    move.run()
    assert move.subscriber.token == ("h", 5, 25)


def test_what_still_comes_from_the_source_behind_the_end_is_of_no_concern(move: Any, kit: Any):
    move.begin()
    move.end()
    move.source.tell(r.Deliver(move.id, kit.pub(25)), r.Progress(90), r.Shut(move.id, "head", "late"))
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
    said = [each for each in move.target.heard if isinstance(each, r.Pause | r.Go)]
    assert said == [r.Pause(move.next), r.Go(move.session, [r.GoItem(move.next, ("h", 5, 10), [])])]
    move.subscriber.resume()
    move.run()
    assert move.target.last_of(r.Continue).attachment == move.next
    assert move.source.all(r.Continue) == []


def test_the_target_is_not_paused_before_it_delivers(move: Any):
    move.begin()
    move.subscriber.pause()
    move.run()
    move.subscriber.resume()
    move.run()
    move.end()
    assert move.target.all(r.Pause) == []
    assert len(move.source.all(r.Pause)) == len(move.source.all(r.Continue)) == 1


# -- END without a target


def test_without_a_target_it_resumes_there(move: Any):
    move.begin()
    n = move.subscriber.number
    move.target.tell(r.Shut(move.next, "hold", "full"))
    move.run()
    move.end()
    resume = move.target.last_of(r.Resume)
    assert (resume.token, resume.session) == (move.cut, move.session)
    assert resume.epoch[1] == n + 3
    assert move.source.last_of(r.Detach) == r.Detach([move.id], False)
    assert move.target.all(r.Go) == []
    move.stage.answer(20, move.target)
    assert move.stage.app.of(Attached)[-1] == Attached("o", "h", True)
    assert move.subscriber.session is None


@pytest.mark.parametrize("how", ["link lost", "leaving", "moved"])
def test_a_target_that_is_gone_is_not_asked_again(move: Any, kit: Any, how: str):
    move.begin()
    if how == "link lost":
        move.lose_target()
    else:
        code = r.Shut(move.next, "leaving", "") if how == "leaving" else r.Moved([move.next], "", "", "")
        move.target.tell(code)
        move.run()
    assert move.subscriber.current.id == move.id
    assert move.stage.app.of(Detached) == []
    move.end(("g", 9, 4))
    join = move.stage.head.last_of(r.Join)
    assert (join.exclude, join.head) == (["o"], "g")
    resume = move.source.last_of(r.Resume)
    assert (resume.token, resume.session) == (("g", 9, 4), move.session)


def test_an_end_before_it_could_ask_the_target(move: Any, kit: Any):
    move.stage.wire.cut.add(kit.other)
    move.begin()
    move.end()
    move.stage.wire.cut.clear()
    move.run(3.0)
    assert move.target.last_of(r.Resume).token == move.cut
    assert move.target.all(r.Attach) == []


def test_an_end_that_nobody_asked_for_ends_the_stream_all_the_same(move: Any):
    move.begin()
    move.held()
    move.end(session="4.9")
    assert move.target.last_of(r.Detach) == r.Detach([move.next], False)
    resume = move.source.last_of(r.Resume)
    assert (resume.token, resume.session) == (move.cut, "4.9")


def test_a_target_that_fails_after_the_end_is_left_with_the_session_named(move: Any, kit: Any):
    move.begin()
    move.end()
    move.stage.wire.remove(move.target)
    move.run(10.0)
    resume = move.source.last_of(r.Resume)
    assert (resume.token, resume.session) == (move.cut, move.session)
    assert move.stage.head.last_of(r.Join).exclude == ["o"]


def test_a_full_hold_that_the_end_has_crossed_is_resumed_there(move: Any):
    move.begin()
    move.source.tell(r.End(move.session, move.cut, [move.id]))
    move.target.tell(r.Shut(move.next, "hold", "full"))
    move.run()
    resume = move.target.last_of(r.Resume)
    assert (resume.token, resume.session) == (move.cut, move.session)
    assert len(move.stage.head.all(r.Join)) == 1


# -- the hand-over is off


def test_stay_ends_it(move: Any, kit: Any):
    move.begin()
    move.stay("4.8")
    assert move.target.all(r.Detach) == []
    move.stay()
    assert move.target.all(r.Detach) == [r.Detach([move.next], False)]
    move.source.tell(r.Deliver(move.id, kit.pub(11)))
    move.run(3.0)
    assert move.stage.app.seqs() == [11]
    assert set(move.stage.client.ports) == {"e"}
    assert move.stage.app.of(Detached) == []
    assert move.subscriber.statistics()["moves"] == 0


def test_after_stay_it_can_be_asked_again(move: Any):
    move.begin()
    move.stay()
    move.begin("4.8")
    assert [each.session for each in move.target.all(r.Attach)] == [move.session, "4.8"]


def test_a_target_that_refuses_changes_nothing(move: Any, kit: Any):
    move.begin()
    move.target.tell(r.Shut(move.next, "session", "no slot"))
    move.run()
    move.begin("4.8")
    move.source.tell(r.Deliver(move.id, kit.pub(11)))
    move.run()
    assert move.stage.app.seqs() == [11]
    assert len(move.target.all(r.Attach)) == 1
    move.run(3.0)
    assert set(move.stage.client.ports) == {"e"}
    assert move.stage.app.of(Detached) == []


@pytest.mark.parametrize("code", ["epoch", "slow", "released"])
def test_no_code_of_the_target_is_meant_for_the_subscriber(move: Any, code: str):
    move.begin()
    move.target.tell(r.Shut(move.next, code, ""))
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
        move.source.tell(r.Shut(move.id, "parted", "too long"))
    elif how == "moved":
        move.source.tell(r.Moved([move.id], "", "", ""))
    else:
        move.stage.wire.remove(move.source)
    move.run(10.0)
    resume = move.target.last_of(r.Resume)
    assert (resume.session, resume.token, resume.epoch[1]) == (None, ("h", 5, 10), n + 2)
    heard = [each for each in move.target.heard if isinstance(each, r.Detach | r.Resume)]
    assert [type(each) for each in heard] == [r.Detach, r.Resume]
    assert move.subscriber.handover is None


def test_a_restart_of_the_head_ends_it(move: Any):
    move.begin()
    move.source.tell(r.Epoch(move.id, r.Gap("h", 5, 11, 6, 2, [], "restart")))
    move.run()
    assert move.target.last_of(r.Detach) == r.Detach([move.next], False)
    assert move.subscriber.token == ("h", 6, 2)
    assert move.subscriber.current.id == move.id
    move.begin("5.1")
    assert move.target.last_of(r.Attach).session == "5.1"


def test_who_is_moved_by_replay_names_the_session(move: Any, kit: Any):
    move.source.tell(r.Moved([move.id], "o", kit.other, "", "4.9"))
    move.run()
    assert move.target.last_of(r.Resume).session == "4.9"
    assert [move.subscriber.statistics()[each] for each in ("moves", "redirects")] == [1, 1]


def test_a_redirect_without_a_session_does_not_forget_one(move: Any):
    move.begin()
    move.end()
    move.target.tell(r.Moved([move.next], "", "", ""))
    move.run()
    assert move.source.last_of(r.Resume).session == move.session


@pytest.mark.parametrize("withdraw", [True, False])
def test_closing_detaches_from_both(move: Any, withdraw: bool):
    move.begin()
    move.subscriber.close(withdraw=withdraw)
    move.run(3.0)
    assert move.source.all(r.Detach) == [r.Detach([move.id], withdraw)]
    assert move.target.all(r.Detach) == [r.Detach([move.next], withdraw)]
    assert move.stage.client.ports == {}


def test_closing_before_the_target_was_asked_says_nothing_there(move: Any, kit: Any):
    move.stage.wire.cut.add(kit.other)
    move.begin()
    move.subscriber.close()
    move.stage.wire.cut.clear()
    move.run(5.0)
    assert move.target.heard == []
    assert move.stage.client.ports == {}


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
    wrong = r.MoveToItem(ids[2], (1, 99))
    items = [*map(r.MoveToItem, ids[:2], epochs), wrong, r.MoveToItem(77, (1, 2))]
    move.source.tell(r.MoveTo(move.session, items, "o", kit.other, ""))
    move.run()
    assert stage.client.counters["moves_passed_over"] == stage.client.counters["records_for_nobody"] == 1
    (attach,) = move.target.all(r.Attach)
    assert [item.subscriber for item in attach.members] == [one.name for one in subscribers[:2]]
    nexts = [item.attachment for item in attach.members]
    move.target.tell(r.Held([r.HeldItem(number, 1) for number in nexts]))
    move.source.tell(r.End(move.session, move.cut, [*ids[:2], 77]))
    move.run()
    assert [item.attachment for item in move.target.last_of(r.Go).members] == nexts
    assert move.source.all(r.Detach) == [r.Detach(ids[:2], False)]
    assert [one.current.port.edge for one in subscribers] == ["o", "o", "e"]


def test_of_those_that_end_together_some_may_have_no_target(stage: Any, kit: Any):
    move, subscribers = of_several(stage, kit, 3)
    ids = [one.current.id for one in subscribers]
    items = [r.MoveToItem(one.current.id, one.epoch) for one in subscribers]
    move.source.tell(r.MoveTo(move.session, items, "o", kit.other, ""))
    move.run()
    first, second, third = (item.attachment for item in move.target.last_of(r.Attach).members)
    move.target.tell(r.Shut(second, "hold", "full"))
    move.run()
    move.source.tell(r.End(move.session, move.cut, ids))
    move.run()
    assert [item.attachment for item in move.target.last_of(r.Go).members] == [first, third]
    assert move.source.all(r.Detach) == [r.Detach(ids, False)]
    resume = move.target.last_of(r.Resume)
    assert (resume.subscriber, resume.token, resume.session) == (subscribers[1].name, move.cut, move.session)


def test_lists_that_do_not_fit_together_go_in_several_records(stage: Any, kit: Any):
    move, subscribers = of_several(stage, kit, 4)
    for one in subscribers[:3]:
        one.subscribe(f"[text,=,'{'x' * 30_000}']")
    stage.run()
    items = [r.MoveToItem(one.current.id, one.epoch) for one in subscribers]
    move.source.tell(r.MoveTo(move.session, items, "o", kit.other, ""))
    move.run()
    said = move.target.all(r.Attach)
    assert [[item.subscriber for item in each.members] for each in said] == [["s", "s1"], ["s2", "s3"]]
