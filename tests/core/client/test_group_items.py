"""What an application is given of a member's slices: in turn, up to the lease, and what counts as finished."""

from __future__ import annotations

from tests.core.client.members import SpokenClient, member_of
from tests.core.group_play import GroupPlay

from plimsoll.core.protocol import messages as msg


def test_slices_take_turns() -> None:
    play = GroupPlay(sensors=4)
    consumer = play.join("a")
    play.run(1.0)
    consumer.is_paused = True
    for _ in range(3):
        play.publish(0)
    play.run(0.5)
    consumer.member.items.ready(consumer.member.slices[0])  # that is no second turn
    for sensor in (1, 2, 3):
        play.publish(sensor)
    play.run(0.5)
    taken = [consumer.member.items.take(1)[0].owned.slice for _ in range(6)]
    assert sorted(taken[:4]) == [0, 1, 2, 3]
    assert taken[4:] == [0, 0]


def test_a_lease_without_an_answer_ends_all_slices() -> None:
    client = SpokenClient()
    member = member_of(client, 2)
    client.now += 3.9
    member.items.take()
    assert list(member.slices) == [2]
    client.now += 0.2
    assert member.items.take() == []
    assert not member.slices
    assert [event.why for event in member.events if hasattr(event, "why")] == ["assigned", "lost"]


def test_an_item_counts_once_and_one_of_a_slice_that_is_gone_for_nothing() -> None:
    play = GroupPlay(count=1)
    consumer = play.join("a")
    play.run(1.0)
    consumer.is_paused = True
    for _ in range(2):
        play.publish(0)
    play.run(0.5)
    member = consumer.member
    has_some = member.items.has_any
    first, second = member.items.take(2)
    assert (has_some, member.items.has_any) == (True, False)
    member.items.finish(first)
    member.items.finish(first)
    owned = first.owned
    assert (owned.finished, owned.acked) == (1, first.item.token)
    member.on_record(msg.SliceRevoked(play.group.name, 0, owned.assignment))
    assert list(member.slices) == [0], "the application has the second"
    member.stop("lost")
    member.items.finish(second)
    assert [event.why for event in member.events if hasattr(event, "why")] == ["lost"]
