"""The old generation is collected when it is due, and not in between."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from plimsoll.broker.garbage_collection import (
    LONGEST_SECONDS,
    LOST_CONNECTIONS,
    SHORTEST_SECONDS,
    GarbageCollectionSchedule,
)


@pytest.fixture
def collector() -> Iterator[GarbageCollectionSchedule]:
    made = GarbageCollectionSchedule(0.0)
    made.start()
    yield made
    made.stop()


def old_collections() -> int:
    return int(gc.get_stats()[2]["collections"])


def test_the_old_generation_is_not_collected_by_itself(collector: GarbageCollectionSchedule):
    before = old_collections()
    held = [[n] for n in range(300_000)]
    assert old_collections() == before
    del held


def test_what_a_lost_link_leaves_behind_is_collected(collector: GarbageCollectionSchedule):
    class Cycle:
        def __init__(self) -> None:
            self.me = self

    Cycle()
    gc.collect(1)
    before = old_collections()
    assert not collector.collect_if_due(SHORTEST_SECONDS, LOST_CONNECTIONS - 1)
    assert not collector.collect_if_due(SHORTEST_SECONDS - 1, LOST_CONNECTIONS)
    assert old_collections() == before
    assert collector.collect_if_due(SHORTEST_SECONDS, LOST_CONNECTIONS)
    assert old_collections() == before + 1
    assert not any(isinstance(each, Cycle) for each in gc.get_objects())
    assert not collector.collect_if_due(2 * SHORTEST_SECONDS, LOST_CONNECTIONS)


def test_it_is_collected_in_the_end_even_when_nothing_is_lost(collector: GarbageCollectionSchedule):
    assert not collector.collect_if_due(LONGEST_SECONDS - 1, 0)
    assert collector.collect_if_due(LONGEST_SECONDS, 0)
    assert not collector.collect_if_due(LONGEST_SECONDS + 1, 0)
    assert collector.collections == 1


def test_the_interpreter_is_left_as_it_was():
    before = gc.get_threshold()
    collector = GarbageCollectionSchedule(0.0)
    collector.start()
    assert gc.get_threshold()[:2] == before[:2]
    collector.stop()
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0
