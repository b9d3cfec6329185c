"""Slices of a member: which assignment counts, what is released when, and what is said again over a new link."""

from __future__ import annotations

from typing import Any

from tests.core.client.members import SpokenClient, member_of
from tests.core.group_play import GROUP, GroupPlay

from plimsoll.core.client import SlicesChanged
from plimsoll.core.client.events import Failed
from plimsoll.core.protocol import messages as msg


def said_places(client: SpokenClient) -> list[tuple[int, bool, bool]]:
    """(slice, whether it was released, whether by itself) of each place in the last GROUP_JOIN."""
    places = client.said_last(msg.GroupJoin).places
    return [(place.number, place.is_released, place.was_cut_off) for place in places]


def test_a_slice_is_released_behind_what_is_finished_without_a_break() -> None:
    play = GroupPlay(count=1)
    consumer = play.join("a")
    play.run(1.0)
    consumer.is_paused = True
    for _ in range(3):
        play.publish(0)
    play.run(0.5)
    first, second, third = consumer.member.items.take(3)
    owned = first.owned
    before = owned.place().token
    consumer.member.items.finish(third)
    assert owned.place().token == before
    consumer.member.items.finish(first)
    consumer.member.items.finish(first)
    assert owned.place().token == first.item.token
    consumer.member.items.finish(second)
    assert owned.finished == 3
    assert owned.place().token is not None
    assert owned.place().token[2] >= third.item.token[2]  # type: ignore[index]  # just asserted


def test_what_was_released_is_said_again_over_a_new_link() -> None:
    play = GroupPlay(count=1)
    play.join("a")
    play.join("b")
    play.run(1.0)
    holder = "a" if play.has("a") else "b"
    for _ in range(5):
        play.publish(0)
    play.run(0.1)
    # The head asks, and the answer is lost with the link.
    play.fleet.cut(holder, "h")
    each = play.group.slices[0]
    play.consumers[holder].member.on_record(msg.SliceRevoked(GROUP, 0, each.epoch))
    play.group.revoke(each, "b" if holder == "a" else "a")  # as a plan of one move
    play.run(0.5)
    play.fleet.mend(holder, "h")
    play.run(3.0)
    assert each.holder != holder
    play.check()


def test_a_new_epoch_replaces_an_older_assignment_and_an_older_one_is_ignored() -> None:
    client = SpokenClient()
    member = member_of(client, 2)
    member.on_record(msg.SliceAssigned("g", 2, 12, ("h", 1, 7)))
    member.on_record(msg.SliceAssigned("g", 2, 11, ("h", 1, 6)))
    owned: Any = member.slices[2]
    assert (owned.assignment, owned.acked, owned.epoch) == (12, ("h", 1, 7), (12, 0))
    assert list(client.subscribers) == ["g@@2"]
    whys = [event.why for event in member.events if isinstance(event, SlicesChanged)]
    assert whys == ["assigned", "lost", "assigned"]  # its head has taken it to have lost the slice in between


def test_a_member_that_has_stopped_by_itself_says_so_with_how_far_it_had_got() -> None:
    client = SpokenClient()
    member = member_of(client, 2)
    client.now += 4.1
    assert member.items.take() == []
    member.join()
    assert said_places(client) == [(2, True, True)]


def test_what_was_given_up_while_a_join_was_on_its_way_is_said_when_it_is_answered() -> None:
    client = SpokenClient()
    member = member_of(client, 2)
    member.join()
    assert said_places(client) == [(2, False, False)]
    client.now += 4.1
    member.on_tick()
    assert not member.slices
    client.said.clear()
    member.on_record(msg.GroupJoined("g", msg.GroupDefinition("", 4, "Modulo", "s"), 1.0, 4.0, "h"))
    place = client.said_last(msg.SliceReleased).place
    assert (place.number, place.is_released, place.was_cut_off) == (2, True, True)


def test_what_a_member_has_released_is_part_of_its_next_join() -> None:
    client = SpokenClient()
    member = member_of(client, 2)
    member.on_record(msg.SliceRevoked("g", 2, 10))
    assert not member.slices
    member.join()
    assert said_places(client) == [(2, True, False)]


def test_a_release_is_said_again_until_a_beat_behind_it_is_answered() -> None:
    client = SpokenClient()
    member = member_of(client, 2, 3)
    member.on_tick()  # says beat 1
    member.on_record(msg.SliceRevoked("g", 2, 10))
    member.on_record(msg.GroupBeatAnswer("g", 1))
    member.join()
    assert said_places(client) == [(3, False, False), (2, True, False)]
    client.said.clear()
    member.on_record(msg.SliceRevoked("g", 2, 10))
    assert client.said_last(msg.SliceReleased).place.number == 2, "who asks again is answered again"
    client.now += 1.0
    member.on_tick()
    member.on_record(msg.GroupBeatAnswer("g", 2))
    member.join()
    assert said_places(client) == [(3, False, False)]


def test_a_slice_that_brokers_refuse_is_lost_and_the_head_decides_again() -> None:
    client = SpokenClient()
    member = member_of(client, 2, 3)
    client.said.clear()
    member.slice_failed(member.slices[2], Failed("owner", "another has it"))
    assert (list(member.slices), member.last_error) == ([3], "slice 2: owner: another has it")
    assert [event.went for event in member.events if isinstance(event, SlicesChanged) and event.why == "lost"] == [(2,)]
    client.now += 1.0
    member.on_tick()
    assert said_places(client) == [(3, False, False)]
