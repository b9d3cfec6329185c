"""A slice of a member: what is marked as given before, and what is never given."""

from __future__ import annotations

from typing import Any

from tests.core.group_play import GroupPlay

from plimsoll.core.client.slice_subscriber import places


def handed(given_to: Any) -> list[bool]:
    play = GroupPlay(count=1)
    consumer = play.join("a")
    play.run(1.0)
    consumer.is_paused = True
    for _ in range(3):
        play.publish(0)
    play.run(0.5)
    owned = consumer.member.slices[0]
    owned._given_to = given_to and given_to(owned)  # as an assignment says it
    return [each.is_redelivered for each in consumer.member.items.take(3)]


def test_items_up_to_where_another_may_have_come_are_marked() -> None:
    assert handed(None) == [False, False, False]
    assert handed(lambda owned: owned.events[1].token) == [True, True, False]
    assert handed(lambda owned: ("h", 1, 10**9)) == [False, False, False], "positions of another log say nothing"


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
