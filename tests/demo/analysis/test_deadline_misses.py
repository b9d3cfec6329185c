"""Late deliveries, by topic and second, from journals."""

from __future__ import annotations

from pathlib import Path

from plimsoll.core.verify import observations as seen
from plimsoll.demo.analysis.deadline_misses import late_in_all, late_over_time, misses_of
from plimsoll.demo.journal import DeliveryJournal

START = 100.0
REQUIRED = {"fast": 0.5, "slow": 5.0}


def journals(folder: Path, *delays: tuple[str, float, float]) -> tuple[list[Path], list[Path]]:
    """A publication of a topic at each time, with what its delivery takes."""
    publishing, subscribing = folder / "p", folder / "s"
    with DeliveryJournal(publishing) as said, DeliveryJournal(subscribing) as got:
        for number, (topic, at, delay) in enumerate(delays):
            said.note(seen.PublicationObserved("p", 1, number, {"topic": topic}, START + at))
            place = ("h", 1, number)
            got.delivered((f"s/{topic}", 1), ("p", 1, number), place, place, START + at + delay)
    return [publishing], [subscribing]


def test_a_delivery_is_late_if_it_took_longer_than_its_topic_requires(tmp_path: Path):
    given = (("fast", 0.2, 0.4), ("fast", 1.0, 0.6), ("slow", 1.0, 0.6), ("fast", 2.0, 1.5), ("other", 0.0, 9.0))
    found = misses_of(REQUIRED, START, *journals(tmp_path, *given))
    assert found.keys() == REQUIRED.keys(), "topics without a deadline are not counted"
    fast, slow = found["fast"], found["slow"]
    assert (fast.delivered, fast.late, round(fast.longest_seconds, 6)) == (3, 2, 1.5)
    assert (slow.delivered, slow.late) == (1, 0)
    assert dict(fast.late_by_second) == {1: 1, 3: 1}
    assert late_in_all(found) == 2
    assert late_over_time(found) == [(0.0, 0.0), (1.0, 1.0), (2.0, 0.0), (3.0, 1.0)]


def test_a_topic_without_deliveries_has_none_late(tmp_path: Path):
    found = misses_of(REQUIRED, START, *journals(tmp_path))
    assert [(each.delivered, each.late) for each in found.values()] == [(0, 0), (0, 0)]
    assert late_over_time(found) == []
