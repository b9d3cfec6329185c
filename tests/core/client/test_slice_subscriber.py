"""A slice of a member: what is marked as given before, and what is never given."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from tests.core.group_play import GroupPlay

from plimsoll.core.client.slice_subscriber import places


def handed(given_to: Any, *epochs: tuple[str, int]) -> list[bool]:
    """Which of three items are marked. `epochs`: from one to the next the log has gone on."""
    play = GroupPlay(count=1)
    consumer = play.join("a")
    play.run(1.0)
    consumer.is_paused = True
    for _ in range(3):
        play.publish(0)
    play.run(0.5)
    owned = consumer.member.slices[0]
    owned._given_to = given_to and given_to(owned)  # as an assignment says it
    owned._given_in = {owned._given_to[:2]} if owned._given_to else set()
    for before, after in pairwise(epochs):
        owned.stream.log_goes_on(before, after)
    return [each.is_redelivered for each in consumer.member.items.take(3)]


def test_items_up_to_where_another_may_have_come_are_marked() -> None:
    assert handed(None) == [False, False, False]
    assert handed(lambda owned: owned.events[1].token) == [True, True, False]
    assert handed(lambda owned: ("h", 1, 10**9)) == [False, False, False], "positions of another log say nothing"


def test_marks_outlast_an_epoch_of_a_log_that_goes_on() -> None:
    """The head of these items is in epoch 11."""
    head = ("h", 11)
    assert handed(lambda owned: ("h", 9, owned.events[1].position), ("h", 9), head) == [True, True, False]
    assert handed(lambda owned: ("h", 9, owned.events[1].position), ("h", 8), ("h", 10), head) == [True, True, False]
    assert handed(lambda owned: ("h", 9, 10**9), ("h", 10), head) == [False] * 3, "it was another log then"
    assert handed(lambda owned: ("g", 9, 10**9), ("g", 9), head) == [False] * 3


def test_what_waits_is_dropped_and_the_place_stays_behind_what_is_finished() -> None:
    play = GroupPlay(count=1)
    consumer = play.join("a")
    play.run(1.0)
    consumer.is_paused = True
    for _ in range(3):
        play.publish(0)
    play.run(0.5)
    owned = consumer.member.slices[0]
    (before,) = places([owned])
    assert owned.backlog == 3
    assert before.token == owned.acked
    owned.drop()
    assert owned.backlog == 0
