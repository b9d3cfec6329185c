"""Turns at starting queries."""

from __future__ import annotations

from plimsoll.channels.start_turn import STARTS, StartTurn


def test_few_have_a_turn_at_a_time_and_one_that_ends_gives_up_waiting():
    held = [StartTurn() for _ in range(STARTS)]
    assert all(each.take(lambda: False) for each in held)
    waiting, looks = StartTurn(), iter([False, False, True])
    assert not waiting.take(lambda: next(looks))
    for _ in range(2):
        waiting.give_back()
        held[0].give_back()  # twice, and one that had none
    assert waiting.take(lambda: False)
    looks = iter([False, True])
    assert not held[0].take(lambda: next(looks))
    for each in (waiting, *held):
        each.give_back()
