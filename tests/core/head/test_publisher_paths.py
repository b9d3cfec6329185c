"""How far publishers are: what heads remember of them, and what they tell one another along a tree."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.core.head import publisher_paths as module
from plimsoll.core.head.publisher_paths import REMEMBERED_SECONDS, FarthestPublishers, seconds_here
from plimsoll.core.protocol.topic_units import topic_hash


def told(farthest: FarthestPublishers) -> tuple[float, dict[int, float]]:
    longest, topics = farthest.told()
    return longest, dict(topics)


def test_the_farthest_publisher_counts_and_topics_with_nearer_ones_are_told_apart():
    known = FarthestPublishers()
    for topic, seconds in (("a", 0.1), ("a", 0.3), ("a", 0.2), ("b", 0.04), (None, 0.5)):
        known.note(topic, seconds)
    assert told(known) == (0.25, {topic_hash("a"): 0.15, topic_hash("b"): 0.02})


def test_topics_as_far_as_the_farthest_need_no_place():
    known = FarthestPublishers()
    for number in range(10):
        known.note(f"t{number}", 0.2)
    assert told(known) == (0.1, {})


def test_a_publisher_is_forgotten_after_two_periods_at_most():
    known = FarthestPublishers()
    known.turn(0.0)
    known.note("a", 0.4)
    known.turn(REMEMBERED_SECONDS)
    known.note("a", 0.1)
    assert told(known) == (0.2, {}), "it may publish again"
    known.turn(2 * REMEMBERED_SECONDS)
    assert told(known) == (0.05, {})
    known.turn(3 * REMEMBERED_SECONDS)
    assert told(known) == (0.0, {})


def test_booleans_and_numbers_share_a_place_and_the_farther_counts_for_both():
    known = FarthestPublishers()
    known.note("far", 9.0)
    known.note(True, 0.1)
    known.note(1, 0.3)
    assert told(known)[1] == {topic_hash(1): 0.15, topic_hash(True): 0.15}


def test_memory_and_messages_are_bounded_whatever_is_published(monkeypatch: Any):
    monkeypatch.setattr(module, "REMEMBERED_TOPICS", 20)
    monkeypatch.setattr(module, "TOLD_TOPICS", 5)
    known = FarthestPublishers()
    known.note("x" * 1000, 1.0)
    for number in range(1000):
        known.note(f"t{number}", 0.001 * (number + 1))
    assert len(known._now) == 20
    longest, topics = known.told()
    assert longest == 0.5, "what has no place of its own counts as far as the farthest"
    assert [topic for topic, _ in topics] == [topic_hash(f"t{number}") for number in range(5)]
    assert [seconds for _, seconds in topics] == pytest.approx([0.0005 * (number + 1) for number in range(5)])


def test_the_time_in_a_head_is_waits_matching_and_departure():
    report = {
        "input_queue_delay_seconds": 0.02, "match_delay_seconds": 0.003, "output_queue_delay_seconds": 0.004,
        "output_bytes_per_second": 20_000.0, "output_rate": 100.0,
    }  # fmt: skip
    assert seconds_here(report, None) == pytest.approx(0.027)
    assert seconds_here(report, 100_000.0) == pytest.approx(0.029)
    assert seconds_here({}, 100_000.0) == 0.0
