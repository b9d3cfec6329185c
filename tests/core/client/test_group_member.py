"""A member's machine by itself: turns of slices, what is released when, and what it says again over a new link."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from tests.core.group_play import GROUP, GroupPlay

from plimsoll.core.client import Address, Client, SlicesChanged
from plimsoll.core.protocol import messages as msg


def new_ids() -> Callable[[], int]:
    draw = random.Random(1)
    return lambda: draw.getrandbits(32)


def test_slices_take_turns() -> None:
    play = GroupPlay(sensors=4)
    consumer = play.join("a")
    play.run(1.0)
    consumer.is_paused = True
    for sensor in (0, 0, 0, 1, 2, 3):
        play.publish(sensor)
    play.run(0.5)
    taken = [consumer.member.take(1)[0].owned.slice for _ in range(6)]
    assert sorted(taken[:4]) == [0, 1, 2, 3]
    assert taken[4:] == [0, 0]


def test_a_slice_is_released_behind_what_is_finished_without_a_break() -> None:
    play = GroupPlay(count=1)
    consumer = play.join("a")
    play.run(1.0)
    consumer.is_paused = True
    for _ in range(3):
        play.publish(0)
    play.run(0.5)
    first, second, third = consumer.member.take(3)
    owned = first.owned
    before = owned.place().token
    consumer.member.finish(third)
    assert owned.place().token == before
    consumer.member.finish(first)
    consumer.member.finish(first)
    assert owned.place().token == first.item.token
    consumer.member.finish(second)
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
    play.consumers[holder].member.on_revoked(msg.SliceRevoked(GROUP, 0, each.epoch))
    play.group.revoke(each, "b" if holder == "a" else "a")  # as a plan of one move
    play.run(0.5)
    play.fleet.mend(holder, "h")
    play.run(3.0)
    assert each.holder != holder
    play.check()


def test_a_client_is_a_member_of_a_group_once() -> None:
    client = Client("app", 1, new_ids(), [Address("mem://h")])
    client.group_member("g", "m")
    with pytest.raises(ValueError, match="in use"):
        client.group_member("g", "n")
    client.group_member("h", "m")


def test_a_new_epoch_replaces_an_older_assignment_and_an_older_one_is_ignored() -> None:
    client = Client("app", 1, new_ids(), [Address("mem://h")])
    member = client.group_member("g", "m")
    member.on_joined(msg.GroupJoined("g", msg.GroupDefinition("", 4, "Publisher"), 1.0, 4.0))
    member.on_assigned(msg.SliceAssigned("g", 2, 10, ("h", 1, 5)))
    member.on_assigned(msg.SliceAssigned("g", 2, 12, ("h", 1, 7)))
    member.on_assigned(msg.SliceAssigned("g", 2, 11, ("h", 1, 6)))
    owned: Any = member.slices[2]
    assert (owned.assignment, owned.acked, owned.epoch) == (12, ("h", 1, 7), (12, 0))
    assert list(client.subscribers) == ["g@@2"]
    whys = [event.why for event in member.events if isinstance(event, SlicesChanged)]
    assert whys == ["assigned", "lost", "assigned"]  # its head has taken it to have lost the slice in between


def test_one_that_stood_still_for_longer_than_its_lease_does_not_claim_its_slices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    play = GroupPlay(count=1)
    play.join("a")
    play.run(1.0)
    member, client = play.consumers["a"].member, play.consumers["a"].client
    said: list[Any] = []
    monkeypatch.setattr(client, "say", lambda link, record: said.append(record))
    client.now += 2.1
    member.join()  # over a new link, before its own look at the time
    assert member.slices == {}
    [joining] = [record for record in said if isinstance(record, msg.GroupJoin)]
    assert [(place.is_released, place.was_cut_off) for place in joining.places] == [(True, True)]


def test_a_lease_without_an_answer_ends_all_slices() -> None:
    client = Client("app", 1, new_ids(), [Address("mem://h")])
    member = client.group_member("g", "m")
    member.on_joined(msg.GroupJoined("g", msg.GroupDefinition("", 4, "Publisher"), 1.0, 4.0))
    member.on_assigned(msg.SliceAssigned("g", 2, 10, ("h", 1, 5)))
    client.now += 3.9
    member.take()
    assert list(member.slices) == [2]
    client.now += 0.2
    assert member.take() == []
    assert not member.slices
    assert [event.why for event in member.events if hasattr(event, "why")] == ["assigned", "lost"]


class SpokenClient(Client):
    """A client whose link to its head is up; what it says is written down."""

    def __init__(self) -> None:
        self.said: list[Any] = []
        super().__init__("app", 1, new_ids(), [Address("mem://h")])

    @property
    def home_link(self) -> Any:
        return "h"

    def say(self, link: Any, /, *records: Any) -> None:
        self.said += records


def said_places(client: SpokenClient) -> list[tuple[int, bool, bool]]:
    """(slice, whether it was released, whether by itself) of each place in the last GROUP_JOIN."""
    joins = [each for each in client.said if isinstance(each, msg.GroupJoin)]
    return [(place.number, place.is_released, place.was_cut_off) for place in joins[-1].places]


def member_of_slice_2(client: SpokenClient) -> Any:
    member = client.group_member("g", "m")
    member.on_joined(msg.GroupJoined("g", msg.GroupDefinition("", 4, "Publisher"), 1.0, 4.0))
    member.on_assigned(msg.SliceAssigned("g", 2, 10, ("h", 1, 5)))
    return member


def test_a_member_that_has_stopped_by_itself_says_so_with_how_far_it_had_got() -> None:
    client = SpokenClient()
    member = member_of_slice_2(client)
    client.now += 4.1
    assert member.take() == []
    member.join()
    assert said_places(client) == [(2, True, True)]


def test_what_a_member_has_released_is_part_of_its_next_join() -> None:
    client = SpokenClient()
    member = member_of_slice_2(client)
    member.on_revoked(msg.SliceRevoked("g", 2, 10))
    assert not member.slices
    member.join()
    assert said_places(client) == [(2, True, False)]
