"""A subscriber against scripted brokers: its place in the stream, what it has seen, and its list of subscriptions."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest

from plimsoll.core.client import (
    Acknowledged,
    Attached,
    ClosedError,
    Delivery,
    Forgotten,
    GapNotice,
    Lapsed,
    ListFullError,
    SubscriptionRefused,
)
from plimsoll.core.client import subscriber as subscribers
from plimsoll.core.client.stream import ORIGINS_AT_MOST
from plimsoll.core.predicates import ParseError
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire


def deliver(stage: Any, *items: msg.PubOpen | msg.Gap) -> None:
    attachment = stage.edge.last_of(msg.Resume).attachment
    stage.edge.tell(*(msg.Deliver(attachment, item) for item in items))
    stage.run()


def gap(low: int, high: int, *last: tuple[str, int, int], low_epoch: int = 5, epoch: int = 5) -> msg.Gap:
    return msg.Gap("h", low_epoch, low, epoch, high, list(last), "test")


# -- the token


def test_it_is_raised_by_what_comes(stage: Any, kit: Any):
    subscriber = stage.attach(position=10)
    assert subscriber.token == ("h", 5, 10)
    deliver(stage, kit.pub(12))
    assert subscriber.token == ("h", 5, 12)
    deliver(stage, gap(13, 20))
    assert subscriber.token == ("h", 5, 20)
    stage.edge.tell(msg.Progress(30))
    stage.run()
    assert subscriber.token == ("h", 5, 30)


def test_progress_does_not_speak_for_those_it_names(stage: Any):
    first = stage.attach("first", 10)
    second = stage.attach("second", 10)
    stage.edge.tell(msg.Progress(30, [first.current.id]))
    stage.run()
    assert (first.token, second.token) == (("h", 5, 10), ("h", 5, 30))


def test_progress_does_not_speak_for_who_has_not_resumed(stage: Any):
    subscriber = stage.client.subscriber("s", token=("h", 5, 3))
    stage.run()
    stage.edge.tell(msg.Progress(30))
    stage.run()
    assert subscriber.token == ("h", 5, 3)


def test_nothing_lowers_it(stage: Any, kit: Any):
    subscriber = stage.attach(position=10)
    deliver(stage, kit.pub(9, offset=99), gap(1, 5))
    stage.edge.tell(msg.Progress(2))
    stage.run()
    assert subscriber.token == ("h", 5, 10)


def test_a_restart_of_the_head_moves_it_to_the_new_epoch(stage: Any, kit: Any):
    subscriber = stage.attach(position=10)
    stage.edge.tell(msg.Epoch(subscriber.current.id, gap(11, 2, low_epoch=5, epoch=6)))
    stage.run()
    assert subscriber.token == ("h", 6, 2)
    assert [(each.low_epoch, each.low, each.epoch, each.high) for each in stage.app.of(GapNotice)] == [(5, 11, 6, 2)]
    deliver(stage, kit.pub(3, epoch=6, offset=1))
    assert stage.app.of(Delivery)[-1].token == ("h", 6, 3)


def test_a_head_that_has_kept_its_log_changes_the_epoch_alone(stage: Any, kit: Any):
    subscriber = stage.attach(position=10)
    stage.edge.tell(msg.Epoch(subscriber.current.id, gap(12, 11, low_epoch=6, epoch=6)))
    stage.run()
    assert subscriber.token == ("h", 6, 10)
    assert stage.app.of(GapNotice) == []
    deliver(stage, kit.pub(12, epoch=6, offset=1))
    assert stage.app.of(Delivery)[-1].token == ("h", 6, 12)


def test_a_shorter_log_of_a_new_epoch_is_a_gap(stage: Any):
    subscriber = stage.attach(position=10)
    stage.edge.tell(msg.Epoch(subscriber.current.id, gap(11, 10, low_epoch=5, epoch=6)))
    stage.run()
    assert len(stage.app.of(GapNotice)) == 1


# -- what has been seen


def test_what_has_been_seen_is_suppressed_and_counted(stage: Any, kit: Any):
    subscriber = stage.attach()
    deliver(stage, kit.pub(11), kit.pub(12), kit.pub(11), kit.pub(12), kit.pub(13))
    assert stage.app.seqs() == [11, 12, 13]
    assert subscriber.statistics()["duplicates_suppressed"] == 2


def test_each_origin_has_its_own_watermark(stage: Any, kit: Any):
    subscriber = stage.attach()
    deliver(stage, kit.pub(11, offset=7), kit.pub(12, offset=7, head="g"), kit.pub(13, offset=7, epoch=6))
    assert len(stage.app.of(Delivery)) == 3
    assert subscriber.stream.marks() == [("h", 5, 7), ("g", 5, 7), ("h", 6, 7)]


def test_watermarks_are_bounded(stage: Any, kit: Any):
    subscriber = stage.attach()
    deliver(stage, *(kit.pub(10 + i, head=f"h{i}") for i in range(1, ORIGINS_AT_MOST + 10)))
    assert len(subscriber.stream.watermarks) == ORIGINS_AT_MOST
    assert (f"h{ORIGINS_AT_MOST + 9}", 5) in subscriber.stream.watermarks
    assert ("h1", 5) not in subscriber.stream.watermarks


# -- gaps


def test_a_gap_that_the_watermarks_have_is_not_told(stage: Any, kit: Any):
    subscriber = stage.attach()
    deliver(stage, kit.pub(11, offset=5), gap(8, 12, ("h", 5, 5)))
    assert stage.app.of(GapNotice) == []
    assert subscriber.statistics()["gaps_known"] == 1
    assert subscriber.token == ("h", 5, 12)


def test_a_gap_that_says_more_is_told_and_raises_the_watermarks(stage: Any, kit: Any):
    subscriber = stage.attach()
    deliver(stage, kit.pub(11, offset=5), gap(12, 14, ("h", 5, 5), ("g", 1, 3)))
    assert len(stage.app.of(GapNotice)) == 1
    assert subscriber.stream.marks() == [("h", 5, 5), ("g", 1, 3)]
    deliver(stage, kit.pub(15, offset=3, head="g", epoch=1))
    assert len(stage.app.of(Delivery)) == 1


def test_a_gap_that_names_nothing_is_told(stage: Any):
    stage.attach()
    deliver(stage, gap(11, 14))
    notice = stage.app.of(GapNotice)[0]
    assert (notice.head, notice.low, notice.high, notice.reason) == ("h", 11, 14, "test")
    assert notice.token == ("h", 5, 14)


def test_gaps_stand_between_deliveries_where_they_belong(stage: Any, kit: Any):
    stage.attach()
    deliver(stage, kit.pub(11), gap(12, 14), kit.pub(15))
    kinds = [type(event) for _, event in stage.app.told]
    assert kinds[-3:] == [Delivery, GapNotice, Delivery]


# -- resuming


def test_it_resumes_with_its_whole_state(stage: Any, kit: Any):
    subscriber = stage.attach(position=10, policy=msg.Policy(slow="drop-oldest"))
    deliver(stage, kit.pub(11, offset=4))
    stage.edge.tell(msg.AttachmentClosed(subscriber.current.id, "head", "again"))
    stage.run(1.0)
    first, second = stage.edge.all(msg.Resume)
    assert (first.token, first.watermarks) == (None, [])
    assert (second.token, second.watermarks) == (("h", 5, 11), [("h", 5, 4)])
    assert second.epoch == (first.epoch[0], first.epoch[1] + 2)
    assert second.subscriptions == first.subscriptions
    assert second.policy.slow == "drop-oldest"
    assert second.attachment != first.attachment


def test_where_the_edge_begins_is_the_token(stage: Any):
    subscriber = stage.attach(position=10)
    stage.edge.tell(msg.AttachmentClosed(subscriber.current.id, "head", "again"))
    stage.run(1.0)
    stage.answer(25, gap=gap(11, 25), lapsed=True, epoch=5)
    assert subscriber.token == ("h", 5, 25)
    assert len(stage.app.of(GapNotice)) == 1
    assert len(stage.app.of(Lapsed)) == 1
    assert [each.ids for each in stage.app.of(Acknowledged)] == [(1,), (1,)]
    assert [each.again for each in stage.app.of(Attached)] == [False, True]


def test_a_lapse_without_an_acknowledgement_to_void_is_not_told(stage: Any):
    stage.attach(position=10)
    for _ in range(2):
        resume = stage.edge.last_of(msg.Resume)
        stage.edge.tell(msg.AttachmentClosed(resume.attachment, "head", "again"))
        stage.run(1.0)
        resume = stage.edge.last_of(msg.Resume)
        stage.edge.tell(msg.Resumed(resume.attachment, "h", 5, 10, None, True))
        stage.run()
    assert len(stage.app.of(Lapsed)) == 1


def test_who_has_not_lapsed_is_not_acknowledged_twice(stage: Any):
    subscriber = stage.attach(position=10)
    stage.edge.tell(msg.AttachmentClosed(subscriber.current.id, "head", "again"))
    stage.run(1.0)
    stage.answer(10)
    assert [each.ids for each in stage.app.of(Acknowledged)] == [(1,)]


def test_what_comes_for_an_older_attachment_is_of_no_concern(stage: Any, kit: Any):
    subscriber = stage.attach(position=10)
    old = subscriber.current.id
    stage.edge.tell(msg.AttachmentClosed(old, "head", "again"))
    stage.run(1.0)
    stage.answer(10)
    stage.edge.tell(msg.Deliver(old, kit.pub(11)), msg.AttachmentClosed(old, "slow", ""), msg.Suback(old, 99, []))
    stage.run()
    assert stage.app.of(Delivery) == []
    assert subscriber.current is not None
    assert stage.client.counters["records_for_unknown_attachments"] == 3


# -- subscriptions


def test_changes_of_a_round_are_said_as_one(stage: Any):
    subscriber = stage.attach()
    second, third = subscriber.subscribe("[n,=,2]"), subscriber.subscribe("[n,=,3]")
    subscriber.unsubscribe(1)
    subscriber.unsubscribe(third)
    stage.run()
    (subs,) = stage.edge.all(msg.Subs)
    assert [item.id for item in subs.adds] == [second]
    assert subs.removes == [1, third]
    assert subs.version == stage.edge.last_of(msg.Resume).version + 1
    stage.edge.tell(msg.Suback(subs.attachment, subs.version, []))
    stage.run()
    assert stage.app.of(Acknowledged)[-1] == Acknowledged((second,), "h", ())
    assert stage.app.of(Forgotten) == [Forgotten((1, third))]
    assert subscriber.subscription_list.is_settled


def test_an_older_acknowledgement_is_not_one_of_newer_changes(stage: Any):
    subscriber = stage.attach()
    version = subscriber.subscription_list.version
    subscriber.subscribe("[n,=,2]")
    stage.run()
    stage.edge.tell(msg.Suback(subscriber.current.id, version, []))
    stage.run()
    assert [each.ids for each in stage.app.of(Acknowledged)] == [(1,)]
    assert not subscriber.subscription_list.is_settled


def test_heads_that_were_not_reached_are_named_and_then_come(stage: Any):
    subscriber = stage.attach()
    new = subscriber.subscribe("[n,=,2]")
    stage.run()
    stage.edge.tell(msg.Suback(subscriber.current.id, subscriber.subscription_list.version, ["far"]))
    stage.run()
    assert stage.app.of(Acknowledged)[-1] == Acknowledged((new,), "h", ("far",))
    assert not subscriber.subscription_list.is_settled
    stage.edge.tell(msg.Suback(subscriber.current.id, subscriber.subscription_list.version, []))
    stage.run()
    assert stage.app.of(Acknowledged)[-1] == Acknowledged((new,), "h", ())
    assert subscriber.subscription_list.is_settled


def test_a_withdrawn_subscription_does_not_arrive_anywhere(stage: Any):
    subscriber = stage.attach()
    new = subscriber.subscribe("[n,=,2]")
    stage.run()
    stage.edge.tell(msg.Suback(subscriber.current.id, subscriber.subscription_list.version, ["far"]))
    stage.run()
    subscriber.unsubscribe(new)
    stage.run()
    told = len(stage.app.of(Acknowledged))
    stage.edge.tell(msg.Suback(subscriber.current.id, subscriber.subscription_list.version, []))
    stage.run()
    assert len(stage.app.of(Acknowledged)) == told
    assert stage.app.of(Forgotten) == [Forgotten((new,))]


def test_a_refused_subscription_is_told_and_not_asked_for_again(stage: Any):
    subscriber = stage.attach()
    bad = subscriber.subscribe("[n,=,2]")
    stage.run()
    stage.edge.tell(
        msg.SubRefused(subscriber.current.id, subscriber.subscription_list.version, bad, "too many"),
        msg.Suback(subscriber.current.id, subscriber.subscription_list.version, []),
        msg.AttachmentClosed(subscriber.current.id, "head", "again"),
    )
    stage.run(1.0)
    assert stage.app.of(SubscriptionRefused) == [SubscriptionRefused(bad, "too many")]
    assert [item.id for item in stage.edge.last_of(msg.Resume).subscriptions] == [1]
    assert [each.ids for each in stage.app.of(Acknowledged)] == [(1,)]


def test_a_change_while_away_goes_with_the_resume(stage: Any):
    subscriber = stage.attach()
    stage.edge.tell(msg.AttachmentClosed(subscriber.current.id, "head", "again"))
    stage.run()
    new = subscriber.subscribe("[n,=,2]")
    subscriber.unsubscribe(1)
    stage.run(1.0)
    resume = stage.answer(10)
    assert [item.id for item in resume.subscriptions] == [new]
    assert stage.edge.all(msg.Subs) == []
    assert stage.app.of(Forgotten) == [Forgotten((1,))]
    assert stage.app.of(Acknowledged)[-1].ids == (new,)


def test_a_subscription_is_checked_before_it_is_sent(stage: Any):
    subscriber = stage.attach()
    with pytest.raises(ParseError, match="column 4"):
        subscriber.subscribe("[n,~,2]")
    with pytest.raises(KeyError, match="no subscription 7"):
        subscriber.unsubscribe(7)
    assert subscriber.subscription_list.version == stage.edge.last_of(msg.Resume).version


# -- the queue


def test_a_full_queue_pauses_this_subscriber_alone(stage: Any, kit: Any):
    slow = stage.attach("slow", 10, holds=True)
    slow.stream.queue.high_records = 4
    attachment = slow.current.id
    stage.edge.tell(*(msg.Deliver(attachment, kit.pub(n)) for n in range(11, 16)))
    stage.run()
    assert [each.attachment for each in stage.edge.all(msg.Pause)] == [attachment]
    assert len(stage.app.of(Delivery)) == 5
    slow.stream.queue.consumed(2)
    stage.run()
    assert stage.edge.all(msg.Continue) == []
    slow.stream.queue.consumed(1)
    stage.run()
    assert [each.attachment for each in stage.edge.all(msg.Continue)] == [attachment]


def test_the_queue_is_bounded_in_bytes_too(stage: Any, kit: Any):
    slow = stage.attach("slow", 10, holds=True)
    slow.stream.queue.high_bytes = 10_000
    deliver(stage, *(kit.pub(n, payload=b"x" * 3000) for n in range(11, 14)))
    assert stage.edge.all(msg.Pause) == []
    deliver(stage, kit.pub(14, payload=b"x" * 3000))
    assert len(stage.edge.all(msg.Pause)) == 1
    assert 12_000 < slow.stream.queue.depth_bytes < 13_000
    slow.stream.queue.consumed(4)
    assert slow.stream.queue.depth_bytes == 0


def test_a_pause_outlives_the_attachment(stage: Any):
    subscriber = stage.attach()
    subscriber.pause()
    stage.run()
    stage.edge.tell(msg.AttachmentClosed(subscriber.current.id, "head", "again"))
    stage.run(1.0)
    stage.answer(10)
    assert stage.edge.last_of(msg.Pause).attachment == subscriber.current.id
    subscriber.resume()
    stage.run()
    assert stage.edge.last_of(msg.Continue).attachment == subscriber.current.id


# -- the end


def test_closing_withdraws_unless_told_otherwise(stage: Any):
    for withdraw in (True, False):
        subscriber = stage.attach(f"s{withdraw}")
        attachment = subscriber.current.id
        subscriber.close(withdraw=withdraw)
        subscriber.close()
        stage.run()
        assert stage.edge.last_of(msg.Detach) == msg.Detach([attachment], withdraw)
        with pytest.raises(ClosedError, match="is closed"):
            subscriber.subscribe("[n,=,1]")
    assert stage.client.subscribers == {}
    assert len(stage.edge.all(msg.Detach)) == 2


# -- the size of the list


def test_a_list_that_does_not_fit_into_one_message_is_refused_at_once(stage: Any):
    subscriber = stage.attach()
    texts = [f"[name,=,'{number:04}{'x' * 9_990}']" for number in range(100)]
    for text in texts[:99]:
        subscriber.subscribe(text)
    stage.run()
    version, sent = subscriber.subscription_list.version, len(stage.edge.all(msg.Subs))
    with pytest.raises(ListFullError, match=r"'s' would take 10\d{5} bytes; at most 1000000 are sent in one message"):
        subscriber.subscribe(texts[99])
    stage.run()
    assert (subscriber.subscription_list.version, len(subscriber.subscriptions), len(stage.edge.all(msg.Subs))) == (
        version,
        100,
        sent,
    )  # with that of `attach`
    record = subscriber.resume_record(subscriber.current)
    assert 980_000 < len(wire.encode(record)) <= 1024 * 1024
    assert subscriber.subscription_list.bytes_taken == sum(len(wire.encode(item)) for item in record.subscriptions)


def test_a_list_has_as_many_subscriptions_as_a_record_may(stage: Any):
    subscriber = stage.attach()  # with one
    with mock.patch.object(subscribers, "LISTED_AT_MOST", 3):
        subscriber.subscribe("[a,=,1]")
        second = subscriber.subscribe("[a,=,2]")
        with pytest.raises(
            ListFullError, match="'s' has 3 subscriptions, as many as fit into one message: withdraw some"
        ):
            subscriber.subscribe("[a,=,3]")
        subscriber.unsubscribe(second)
        subscriber.subscribe("[a,=,3]")


def test_a_subscription_has_as_many_options_as_a_record_may(stage: Any):
    subscriber = stage.attach()
    subscriber.subscribe("[a,=,1]", {f"o{i}": i for i in range(4)})
    with pytest.raises(ListFullError, match="a subscription with 5 options; at most 4 are taken"):
        subscriber.subscribe("[a,=,1]", {f"o{i}": i for i in range(5)})


def test_what_is_withdrawn_makes_room(stage: Any):
    subscriber = stage.attach()
    taken = [subscriber.subscribe(f"[name,=,'{'x' * 60_000}{n}']") for n in range(10)]
    with pytest.raises(ListFullError):
        taken += [subscriber.subscribe(f"[name,=,'{'y' * 60_000}{n}']") for n in range(10)]
    before = len(subscriber.subscriptions)
    subscriber.unsubscribe(taken[0])
    subscriber.subscribe(f"[name,=,'{'z' * 60_000}']")
    assert len(subscriber.subscriptions) == before


def test_one_that_begins_in_the_past_waits_for_what_it_wants_from_there(stage: Any):
    subscriber = stage.client.subscriber("s", since=1.5, lease_seconds=100.0)
    stage.run()
    assert subscriber.current is None
    subscriber.subscribe("[n,>,0]")
    stage.run()
    asked = stage.edge.last_of(msg.Resume)
    assert (asked.token, asked.since, asked.lease_seconds, len(asked.subscriptions)) == (None, 1.5, 100.0, 1)
    stage.answer(10)
    assert subscriber.resume_record(subscriber.current).since is None, "from now on it has a token"


@pytest.mark.parametrize("wrong", [{"lease_seconds": -1.0}, {"lease_seconds": float("inf")}, {"since": float("nan")}])
def test_a_lease_or_a_beginning_that_is_no_time_is_refused(stage: Any, wrong: dict[str, float]):
    with pytest.raises(ValueError, match="finite"):
        stage.client.subscriber("s", **wrong)
