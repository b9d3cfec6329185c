"""Which changes of subscriptions count while a subscriber is handed over, and when."""

from __future__ import annotations

from typing import Any

from plimsoll.core.client import Acknowledged, Forgotten, SubscriptionRefused
from plimsoll.core.protocol import messages as msg


def test_changes_go_to_both(move: Any):
    move.begin()
    new = move.change()
    for edge, at in ((move.source, move.id), (move.target, move.next)):
        subs = edge.last_of(msg.Subs)
        assert (subs.attachment, subs.version) == (at, move.subscriber.subscription_list.version)
        assert [item.id for item in subs.adds] == [new]


def test_a_change_counts_when_both_have_it(move: Any):
    move.begin()
    move.held()
    new = move.change()
    move.suback()
    assert new not in {i for ids in move.acknowledged() for i in ids}
    move.held()
    assert move.acknowledged()[-1] == (new,)


def test_a_change_that_only_the_target_has_does_not_count(move: Any):
    move.begin()
    new = move.change()
    move.held()
    move.suback(edge=move.target)
    assert (new,) not in move.acknowledged()
    move.suback()
    assert move.acknowledged()[-1] == (new,)


def test_an_acknowledgement_of_the_target_is_as_good_as_held(move: Any):
    move.begin()
    new = move.change()
    move.suback()
    move.suback(edge=move.target)
    assert move.acknowledged()[-1] == (new,)


def test_an_older_acknowledgement_does_not_take_a_newer_one_back(move: Any):
    move.begin()
    new = move.change()
    move.suback()
    move.suback(move.subscriber.subscription_list.version - 1)
    move.held()
    assert move.acknowledged()[-1] == (new,)


def test_an_older_version_at_the_target_is_not_enough(move: Any):
    move.begin()
    first = move.change()
    version = move.subscriber.subscription_list.version
    second = move.change()
    move.suback()
    move.held(version)
    assert move.acknowledged()[-1] == (first,)
    move.held()
    assert move.acknowledged()[-1] == (second,)


def test_a_withdrawal_counts_when_both_have_it(move: Any):
    move.begin()
    move.subscriber.unsubscribe(1)
    move.run()
    move.suback()
    assert move.stage.app.of(Forgotten) == []
    move.held()
    assert move.stage.app.of(Forgotten) == [Forgotten((1,))]


def test_after_the_end_only_the_acknowledgement_of_the_target_counts(move: Any):
    move.begin()
    new = move.change()
    move.end()
    move.held()
    assert (new,) not in move.acknowledged()
    move.suback(edge=move.target)
    assert move.acknowledged()[-1] == (new,)


def test_what_the_source_has_acknowledged_counts_no_more_after_the_end(move: Any):
    move.begin()
    new = move.change()
    move.suback()
    move.end()
    assert (new,) not in move.acknowledged()
    move.suback(edge=move.target)
    assert move.acknowledged()[-1] == (new,)


def test_what_the_target_has_acknowledged_before_the_end_counts_at_the_end(move: Any):
    move.begin()
    new = move.change()
    move.suback(edge=move.target)
    assert (new,) not in move.acknowledged()
    move.end()
    assert move.acknowledged()[-1] == (new,)


def test_what_counts_is_not_told_again_after_the_end(move: Any):
    move.begin()
    move.held()
    move.end()
    move.suback(edge=move.target)
    assert move.acknowledged() == [(1,)]


def test_a_change_before_it_could_ask_the_target_is_in_its_list(move: Any, kit: Any):
    move.stage.wire.cut.add(kit.other)
    move.begin()
    new = move.change()
    move.stage.wire.cut.clear()
    move.run(3.0)
    attach = move.target.last_of(msg.Attach).members[0]
    assert (attach.version, attach.subscriptions[-1].id) == (move.subscriber.subscription_list.version, new)
    assert move.target.all(msg.Subs) == []


def test_a_change_in_the_round_of_the_question_is_said_once_to_each(stage: Any, kit: Any):
    move = kit.move(stage)
    stage.head.edge = ("o", kit.other)
    stage.client.subscriber("other")
    stage.run()
    first = move.subscriber.subscribe("[n,=,7]")
    stage.client.edge_records.on_record(
        move.subscriber.current.port,
        msg.MoveTo(move.session, [msg.MoveToItem(move.id, move.subscriber.epoch)], "o", kit.other, ""),
    )
    second = move.subscriber.subscribe("[n,=,8]")
    stage.run()
    attach = move.target.last_of(msg.Attach).members[0]
    assert [item.id for item in attach.subscriptions] == [1, first]
    assert [[item.id for item in each.adds] for each in move.target.all(msg.Subs)] == [[second]]
    assert [[item.id for item in each.adds] for each in move.source.all(msg.Subs)] == [[first], [second]]
    assert move.target.last_of(msg.Subs).version == attach.version + 1 == move.subscriber.subscription_list.version


def test_a_change_in_the_round_of_the_end_reaches_the_target(move: Any):
    move.begin()
    new = move.subscriber.subscribe("[n,=,7]")
    move.stage.client.edge_records.on_record(move.subscriber.current.port, msg.End(move.session, move.cut, [move.id]))
    later = move.subscriber.subscribe("[n,=,8]")
    move.run()
    assert [[item.id for item in each.adds] for each in move.target.all(msg.Subs)] == [[new], [later]]
    move.suback(edge=move.target)
    assert move.acknowledged()[-1] == (new, later)


def test_without_the_target_a_change_waits_for_stay_or_the_end(move: Any):
    """The cut may have happened: then the source sends no more requests, and the target never had the change."""
    move.begin()
    move.held()
    new = move.change()
    move.target.tell(msg.AttachmentClosed(move.next, "hold", "full"))
    move.run()
    move.suback()
    assert (new,) not in move.acknowledged()
    move.stay()
    assert move.acknowledged()[-1] == (new,)


def test_what_the_target_had_counts_although_it_has_gone(move: Any):
    move.begin()
    new = move.change()
    move.held()
    move.target.tell(msg.AttachmentClosed(move.next, "hold", "full"))
    move.run()
    move.suback()
    assert move.acknowledged()[-1] == (new,)


def test_a_restart_of_the_head_leaves_it_to_the_source_what_counts(move: Any):
    move.begin()
    new = move.change()
    move.suback()
    move.source.tell(msg.Epoch(move.id, msg.Gap("h", 5, 11, 6, 2, [], "restart")))
    move.run()
    assert move.acknowledged()[-1] == (new,)


def test_unreached_heads_are_those_of_the_edge_that_serves(move: Any):
    move.begin()
    new = move.change()
    move.suback(unreached=("far",))
    move.suback(edge=move.target, unreached=("other",))
    assert move.stage.app.of(Acknowledged)[-1] == Acknowledged((new,), "h", ("far",))
    move.end(("g", 9, 4))
    assert not move.subscriber.subscription_list.is_settled
    move.suback(edge=move.target)
    assert move.stage.app.of(Acknowledged)[-1] == Acknowledged((new,), "g", ())
    assert move.subscriber.subscription_list.is_settled


def test_an_older_list_that_has_arrived_everywhere_says_nothing_of_a_newer_one(move: Any):
    move.begin()
    version = move.subscriber.subscription_list.version
    new = move.change()
    move.held()
    move.suback(unreached=("far",))
    move.end()
    move.suback(version, edge=move.target)
    assert not move.subscriber.subscription_list.is_settled
    move.suback(edge=move.target)
    assert move.stage.app.of(Acknowledged)[-1] == Acknowledged((new,), "h", ())


def test_a_subscription_that_only_the_target_refuses_is_kept(move: Any):
    move.begin()
    move.target.tell(msg.SubRefused(move.next, move.subscriber.subscription_list.version, 1, "too many"))
    move.run()
    assert move.stage.app.of(SubscriptionRefused) == []
    assert move.target.last_of(msg.Detach) == msg.Detach([move.next], False)
    assert list(move.subscriber.subscriptions) == [1]
    assert move.subscriber.current.id == move.id


def test_a_subscription_that_the_source_refuses_is_taken_from_the_target(move: Any):
    move.begin()
    new = move.change()
    version = move.subscriber.subscription_list.version
    move.source.tell(msg.SubRefused(move.id, version, new, "too many"))
    move.run()
    assert move.stage.app.of(SubscriptionRefused) == [SubscriptionRefused(new, "too many")]
    subs = move.target.last_of(msg.Subs)
    assert (subs.adds, subs.removes, subs.version) == ([], [new], version + 1)
    move.target.tell(msg.SubRefused(move.next, version, new, "too many"))
    move.run()
    assert move.target.all(msg.Detach) == []


def test_a_lapse_makes_every_change_wait_again(move: Any):
    move.begin()
    move.held()
    move.target.tell(msg.AttachmentClosed(move.next, "hold", "full"))
    move.run()
    move.end()
    move.stage.answer(20, move.target, lapsed=True)
    assert move.acknowledged() == [(1,), (1,)]
