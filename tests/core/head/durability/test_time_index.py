"""Positions by time: never behind what was asked for, bounded, and finer for what is recent."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.head.durability.time_index import MARKS_AT_MOST, TimeIndex


def test_the_position_of_a_time_is_that_of_the_last_mark_before_it():
    index = TimeIndex([(10.0, 1), (20.0, 5), (30.0, 9)])
    assert [index.position_at(at) for at in (5.0, 10.0, 19.0, 20.0, 99.0)] == [0, 1, 1, 5, 9]


def test_a_mark_is_due_once_a_second_in_a_log_that_grows():
    index = TimeIndex()
    assert index.is_due(0.0, 0)
    index.note(0.0, 3)
    assert not index.is_due(0.5, 4)
    assert not index.is_due(2.0, 3)
    assert index.is_due(1.0, 4)


def test_a_clock_that_was_set_back_moves_no_mark():
    index = TimeIndex([(100.0, 5)])
    index.note(40.0, 8)
    assert index.marks == [(100.0, 5), (100.0, 8)]


def test_marks_are_bounded_and_the_recent_ones_stay_close():
    index = TimeIndex()
    for second in range(100_000):
        index.note(float(second), 10 * second)
        assert len(index.marks) <= MARKS_AT_MOST
    for age in (5, 60, 600, 3_600, 36_000, 86_400):
        asked = 99_999 - age
        assert 0 <= 10 * asked - index.position_at(float(asked)) <= 10 * (1 + age / 40)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60), st.integers(0, 300))
def test_nothing_that_came_since_a_time_is_passed_over(steps: list[int], asked: int):
    index, at, position = TimeIndex(), 0, 0
    logged = []
    for step in steps:
        at, position = at + step, position + 1
        logged.append((at, position))
        if index.is_due(at, position):
            index.note(float(at), position)
    start = index.position_at(float(asked))
    assert all(where > start for when, where in logged if when > asked)


def test_of_what_is_evicted_only_the_last_mark_stays():
    index = TimeIndex([(1.0, 10), (2.0, 20), (3.0, 30)])
    index.evicted(25)
    assert index.marks == [(2.0, 20), (3.0, 30)]
