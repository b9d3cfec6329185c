"""Items between a member and its application: what was not taken is taken back, and what was finished counts."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

import pytest
from tests.core.group_play import GroupPlay

from plimsoll.core.client import GroupMember, HandedItem
from plimsoll.core.protocol import messages as msg


def member_with_items(count: int = 2, items: int = 8) -> tuple[GroupPlay, GroupMember]:
    """One with all slices of a group, whose application has not taken anything."""
    play = GroupPlay(count=count, sensors=count)
    consumer = play.join("a")
    play.run(1.0)
    consumer.is_paused = True
    for n in range(items):
        play.publish(n)
    play.run(0.5)
    return play, consumer.member


def numbers(member: GroupMember) -> list[Any]:
    return [handed.item.attributes["n"] for handed in member.items.buffer.ready]  # type: ignore[union-attr]  # publications


def test_what_is_finished_counts_when_the_member_is_looked_at() -> None:
    play, member = member_with_items()
    member.items.refill(8)
    assert numbers(member) == [1, 3, 5, 7, 2, 4, 6, 8]
    for _ in range(3):
        handed = member.items.buffer.ready.popleft()
        handed.finished_at = handed.taken_at + 0.5
        member.items.buffer.finished.append(handed)
    owned = member.slices[0]
    assert (owned.finished, len(owned.handed)) == (0, 4)
    play.run(1.2)  # a beat says how far it has got
    (said,) = [each.token for each in play.group.slices if each.number == 0]
    assert said == owned.acked == handed.item.token
    assert len(owned.handed) == 1


def test_a_slice_that_is_revoked_is_released_at_once_unless_the_application_has_some_of_it() -> None:
    play, member = member_with_items()
    member.items.refill(8)
    first = member.items.buffer.ready.popleft()
    for number in (0, 1):
        owned = member.slices[number]
        member.on_record(msg.SliceRevoked(play.group.name, number, owned.assignment))
    assert sorted(member.slices) == [0]
    assert not member.items.buffer.ready
    assert list(owned.handed) == []
    assert list(member.slices[0].handed) == [first]
    member.items.buffer.finished.append(first)
    assert member.items.settle()
    assert member.slices == {}
    assert member.assigned._released[0][0].token == first.item.token


def test_what_is_taken_back_waits_again_in_its_order() -> None:
    _, member = member_with_items(count=2, items=6)
    member.items.refill(6)
    member.items.buffer.ready.popleft()
    member.items.buffer.take_back(member.slices[0])
    assert numbers(member) == [2, 4, 6]
    member.items.buffer.take_back()
    assert numbers(member) == []
    member.items.refill(6)
    assert sorted(numbers(member), key=lambda n: (n % 2, n)) == [2, 4, 6, 3, 5]


class SharedItems(deque[HandedItem]):
    """The application takes one, in its thread, whenever the member does."""

    def __init__(self, items: Iterable[HandedItem]) -> None:
        super().__init__(items)
        self.taken: list[HandedItem] = []

    def pop(self) -> HandedItem:  # type: ignore[override]  # a deque has no index here
        found = super().pop()
        self._take()
        return found

    def popleft(self) -> HandedItem:
        found = super().popleft()
        self._take()
        return found

    def _take(self) -> None:
        if self:
            self.taken.append(super().popleft())


@pytest.mark.parametrize("number", [0, 1, None])
def test_the_application_may_take_items_in_the_middle_of_a_recall(number: int | None) -> None:
    _, member = member_with_items()
    member.items.refill(8)
    member.items.buffer.ready = shared = SharedItems(member.items.buffer.ready)
    member.items.buffer.take_back(None if number is None else member.slices[number])
    for owned in member.slices.values():
        taken = [handed for handed in shared.taken if handed.owned is owned]
        waits = [handed for handed in shared if handed.owned is owned]
        assert list(owned.handed) == [*taken, *waits]
        order = [*(handed.item.token for handed in (*taken, *waits)), *(item.token for item in owned.events)]  # type: ignore[union-attr]  # publications
        assert order == sorted(order)
        assert len(order) == 4
        assert not waits or owned.slice != number


def test_one_whose_lease_is_over_gives_nothing_that_was_not_taken() -> None:
    play, member = member_with_items()
    member.items.refill(8)
    member.items.buffer.ready.popleft()
    until = member.beats.lease_until
    play.fleet.crash("h")
    play.run(until - play.fleet.now + 0.2)
    assert not member.items.buffer.ready
    assert member.slices == {}


def test_an_item_that_is_finished_before_its_slice_is_revoked_is_behind_the_place() -> None:
    play, member = member_with_items(count=1, items=3)
    member.items.refill(3)
    for _ in range(3):
        member.items.buffer.finished.append(member.items.buffer.ready.popleft())
    owned = member.slices[0]
    member.on_record(msg.SliceRevoked(play.group.name, 0, owned.assignment))
    assert member.slices == {}
    assert len([event for event in member.events if getattr(event, "why", "") == "revoked"]) == 1
