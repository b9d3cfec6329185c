"""The source of a channel's stream: its offsets are places in feeds, and periods."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.channels.datasets import RecordedFeed
from tests.sparkjobs import needs  # noqa: F401  # skips this module by name where Spark cannot run

from plimsoll.channels.batch import RowRange
from plimsoll.channels.spark_source import OPTION, FeedRanges, RangeReader, SourceStart, ranges_of


@pytest.fixture
def feed(tmp_path: Path) -> Iterator[RecordedFeed]:
    made = RecordedFeed(tmp_path / "feed")
    yield made
    made.close()


def reader(feed: RecordedFeed, place: int, every_seconds: float | None = None) -> RangeReader:
    start = SourceStart({"f": str(feed.root)}, {"f": place}, every_seconds)
    source = FeedRanges({OPTION: msgspec.json.encode(start).decode()})
    made = source.simpleStreamReader(None)  # type: ignore[arg-type]  # the schema is not used
    assert (source.name(), source.schema()) == ("plimsoll_feeds", "ranges STRING")
    return made


def ranges(rows: Iterator[tuple[Any, ...]]) -> list[dict[str, RowRange]]:
    return [ranges_of([{"ranges": row[0]}]) for row in rows]


def test_a_batch_is_what_came_since_the_place_and_may_be_asked_for_again(feed: RecordedFeed):
    feed.record([{"kind": "a"}] * 5)
    source = reader(feed, 2)
    start = source.initialOffset()
    rows, end = source.read(start)
    assert ranges(rows) == [{"f": RowRange(3, 5)}]
    assert json.loads(end["places"]) == {"f": 5}
    assert ranges(source.readBetweenOffsets(start, end)) == [{"f": RowRange(3, 5)}]
    rows, same = source.read(end)
    assert (list(rows), same) == ([], end)


def test_a_period_has_one_batch(feed: RecordedFeed, monkeypatch: pytest.MonkeyPatch):
    now = 100.0
    monkeypatch.setattr(time, "time", lambda: now)
    source = reader(feed, 0, 10.0)
    start = source.initialOffset()
    feed.record([{"kind": "a"}])
    now = 109.9
    assert list(source.read(start)[0]) == []
    now = 110.0
    rows, end = source.read(start)
    assert ranges(rows) == [{"f": RowRange(1, 1)}]
    now = 120.0
    rows, _ = source.read(end)
    assert ranges(rows) == [{"f": RowRange(2, 1)}], "without new rows there is a batch, too"
