"""What waits for a unit: depths, rates and waits, compared with a queue that is played message by message."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.edge.unit_queue import LOOKS_REMEMBERED, UnitQueue


def look(queue: UnitQueue, comes: int, depth: int, now: float, *, passed_by: bool = False) -> None:
    queue.look(queue.matched + comes, depth, now, is_passed_by=passed_by)


def test_what_leaves_is_what_came_and_does_not_wait():
    queue = UnitQueue(0, 0, 0.0)
    look(queue, 200, 25, 1.0)
    assert (queue.arrived, queue.left, queue.depth) == (200, 175, 25)
    look(queue, 200, 50, 2.0)
    assert (queue.arrived, queue.left, queue.depth) == (200, 175, 50)


def test_the_wait_is_that_of_a_fluid_queue():
    queue = UnitQueue(0, 0, 0.0)
    for second in range(1, 5):
        look(queue, 200, 25 * second, float(second))
        # What leaves at t came when arrivals were 175 t: at 175 t / 200.
        assert queue.wait_seconds == pytest.approx(second * (1 - 175 / 200))
    look(queue, 0, 0, 5.0)
    assert queue.wait_seconds == 0.0


def test_deliveries_are_late_by_the_part_of_the_interval_in_which_the_wait_was_too_long():
    queue = UnitQueue(0, 0, 0.0)
    look(queue, 200, 100, 1.0)  # waits rise from 0 to 0.5 s
    assert queue.wait_seconds == pytest.approx(0.5)
    assert queue.late(0.25) == 50
    assert queue.late(0.5) == queue.late(9.0) == 0
    assert queue.late(-0.1) == queue.left == 100, "no wait is allowed at all: the way alone takes too long"


def test_an_empty_queue_is_late_only_if_the_way_alone_takes_too_long():
    queue = UnitQueue(0, 0, 0.0)
    look(queue, 10, 0, 1.0)
    assert queue.late(0.0) == 0
    assert queue.late(-1e-9) == 10


def test_what_passes_a_full_queue_by_waits_in_the_log():
    queue = UnitQueue(0, 0, 0.0)
    look(queue, 100, 60, 1.0)
    look(queue, 100, 60, 2.0, passed_by=True)
    assert (queue.depth, queue.left) == (160, 0)
    look(queue, 100, 30, 3.0, passed_by=True)
    assert (queue.depth, queue.left) == (230, 30)
    look(queue, 100, 40, 4.0)
    assert queue.depth == 40, "it is in the stream again"


def test_a_replay_from_the_log_arrives_though_the_stream_has_not_brought_it():
    queue = UnitQueue(0, 0, 0.0)
    look(queue, 0, 50, 1.0)
    assert (queue.arrived, queue.left, queue.depth) == (50, 0, 50)


def test_looks_are_bounded():
    queue = UnitQueue(0, 1, 0.0)
    for second in range(1, 20 * LOOKS_REMEMBERED):
        look(queue, 1, second + 1, float(second))
    assert len(queue._came) <= LOOKS_REMEMBERED
    assert queue.wait_seconds == pytest.approx(second), "nothing has left since the beginning"


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=30))
def test_waits_are_those_of_a_queue_played_message_by_message_within_a_look(steps: list[tuple[int, int]]):
    """Each second some come and some leave, evenly: the wait of the last that left, off by at most two looks."""
    queue, waiting, now = UnitQueue(0, 0, 0.0), deque[float](), 0.0
    for comes, leaves in steps:
        events = sorted([(now + (i + 1) / comes, 1) for i in range(comes)] +
                        [(now + (i + 1) / leaves, 2) for i in range(leaves)])  # fmt: skip
        left = 0
        for at, kind in events:
            if kind == 1:
                waiting.append(at)
            elif waiting:
                waiting.popleft()
                left += 1
        now += 1.0
        look(queue, comes, len(waiting), now)
        assert (queue.depth, queue.left) == (len(waiting), left)
        oldest = now - waiting[0] if waiting else 0.0
        assert queue.wait_seconds == pytest.approx(oldest, abs=2.0)
        assert 0.0 <= queue.wait_seconds <= now
