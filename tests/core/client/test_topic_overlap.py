"""Publications that two units of a subscriber are sent."""

from __future__ import annotations

from collections import Counter
from typing import Any

from plimsoll.core.client import topic_overlap as module
from plimsoll.core.client.limits import ClientLimits
from plimsoll.core.client.stream import SubscriberStream
from plimsoll.core.client.topic_overlap import TopicOverlap


class Quiet:
    """An owner that is told nothing."""

    current: Any = None

    def mark_ready(self) -> None: ...
    def tell(self, event: Any) -> None: ...
    def steer(self) -> None: ...
    def retake(self) -> None: ...


def stream(position: int, head: str = "h") -> SubscriberStream:
    return SubscriberStream(Quiet(), [], Counter(), ClientLimits(), (head, 5, position))


def test_the_second_of_the_two_is_dropped(kit: Any):
    overlap, one, other = TopicOverlap(), stream(10), stream(10)
    assert overlap.is_new(kit.pub(11), one, other)
    assert not overlap.is_new(kit.pub(11), other, one)
    assert overlap.suppressed == 1
    assert len(overlap) == 0


def test_what_the_other_side_has_passed_is_not_remembered(kit: Any):
    overlap, one, other = TopicOverlap(), stream(10), stream(11)
    assert overlap.is_new(kit.pub(11), one, other)
    assert len(overlap) == 0


def test_what_it_passes_later_is_forgotten(kit: Any):
    overlap, one, other = TopicOverlap(), stream(10), stream(10)
    for position in range(11, 31):
        assert overlap.is_new(kit.pub(position), one, other)
    assert len(overlap) == 20
    other.position = 29
    assert overlap.is_new(kit.pub(31), one, other)
    assert len(overlap) == 2, "the last, and one that it has not passed"


def test_streams_of_two_heads_are_compared_by_watermark(kit: Any):
    overlap, one, other = TopicOverlap(), stream(10), stream(500, "g")
    assert overlap.is_new(kit.pub(11), one, other)
    assert len(overlap) == 1
    other.watermarks["h", 5] = 12
    assert overlap.is_new(kit.pub(13), one, other)
    assert len(overlap) == 1, "the last alone: what is below the watermark has come"


def test_it_is_bounded(kit: Any, monkeypatch: Any):
    monkeypatch.setattr(module, "REMEMBERED_AT_MOST", 5)
    overlap, one, other = TopicOverlap(), stream(10), stream(10)
    for position in range(11, 41):
        overlap.is_new(kit.pub(position), one, other)
    assert len(overlap) == 5
