"""The new rows of feeds as batches between offsets, as Spark asks for them, without a Spark."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.channels.datasets import REPORTS, RecordedFeed
from tests.sparkjobs import needs  # noqa: F401  # skips this module by name where Spark cannot run

from plimsoll.channels import feed_source
from plimsoll.channels.batch import RowCounts
from plimsoll.channels.feed_source import FeedReader, FeedSource, StreamRequest, request_text
from plimsoll.channels.stream_offset import StreamOffset
from plimsoll.feeds import parquet
from plimsoll.feeds.commit_log import FeedDatasetError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

FIRST_SECONDS = 1_000.0


def kind(*feeds: str) -> pa.Schema:
    own = pa.struct(list(parquet.rows_schema(REPORTS)))
    return pa.schema([(feed, own) for feed in feeds])


class Reading:
    """A reader, asked again and again as by a query, and the clock that it sees."""

    def __init__(
        self, feeds: dict[str, str], places: dict[str, int], every: float | None = None, most_rows: int = 1000
    ) -> None:
        self.now = FIRST_SECONDS
        start = StreamOffset(places, int(self.now / every) if every else 0)
        self.reader = FeedReader(StreamRequest(feeds, start, every, most_rows), kind(*feeds), lambda: self.now)
        self.at = self.reader.initialOffset()

    def next(self) -> list[dict[str, Any]]:
        """The rows of the next batch, by feed; the offset moves behind it."""
        rows, self.at = self.reader.read(json.loads(json.dumps(self.at)))
        return as_rows(rows)

    @property
    def offset(self) -> StreamOffset:
        return StreamOffset.of_json(self.at)


def as_rows(batches: Iterator[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]


def numbers(rows: list[dict[str, Any]], feed: str) -> list[int]:
    return [row[feed]["_row"] for row in rows if row[feed] is not None]


@pytest.fixture
def feed(tmp_path: Path) -> Iterator[RecordedFeed]:
    made = RecordedFeed(tmp_path / "reports")
    yield made
    made.close()


def test_each_row_comes_once_and_what_became_of_all_is_counted(feed: RecordedFeed):
    feed.record([{"kind": "fire"}])
    reading = Reading({"reports": str(feed.root)}, {"reports": 1})
    before = reading.at
    assert reading.next() == []
    assert reading.at == before, "no batch is due"
    feed.record([{"kind": "flood"}, {"kind": 3}, {"kind": "storm"}])
    rows = reading.next()
    assert [row["reports"]["kind"] for row in rows] == ["flood", "storm"]
    assert reading.offset.places == {"reports": 4}
    assert reading.offset.counts == RowCounts(3, 2, 0, 1)
    assert reading.offset.oldest_sent_us > 0
    assert reading.offset.begun_us == FIRST_SECONDS * 1e6
    feed.record([{"kind": "fire"}])
    assert numbers(reading.next(), "reports") == [5]
    assert reading.offset.counts == RowCounts(4, 3, 0, 1)


def test_a_batch_of_dead_letters_alone_moves_the_offset(feed: RecordedFeed):
    reading = Reading({"reports": str(feed.root)}, {"reports": 0})
    feed.record([{"kind": 3}])
    assert reading.next() == []
    assert (reading.offset.places, reading.offset.counts) == ({"reports": 1}, RowCounts(1, 0, 0, 1))


def test_a_feed_without_a_place_begins_at_its_end_and_one_begun_anew_at_its_first_row(
    feed: RecordedFeed, tmp_path: Path
):
    feed.record([{"kind": "fire"}, {"kind": "fire"}])
    other = RecordedFeed(tmp_path / "alarms")
    other.record([{"kind": "a"}])
    reading = Reading({"reports": str(feed.root), "alarms": str(other.root)}, {"alarms": 7})
    rows = reading.next()
    assert (numbers(rows, "reports"), numbers(rows, "alarms")) == ([], [1])
    assert reading.offset.places == {"reports": 2, "alarms": 1}
    other.close()


def test_a_period_has_a_batch_with_or_without_rows(feed: RecordedFeed):
    reading = Reading({"reports": str(feed.root)}, {"reports": 0}, every=10.0)
    feed.record([{"kind": "fire"}])
    before = reading.at
    assert (reading.next(), reading.at) == ([], before), "its period has had its batch"
    reading.now += 10.0
    assert numbers(reading.next(), "reports") == [1]
    reading.now += 20.0
    assert reading.next() == []
    assert (reading.offset.period, reading.offset.places) == (103, {"reports": 1})


def test_a_clock_that_is_set_back_gives_no_period_a_second_batch(feed: RecordedFeed):
    reading = Reading({"reports": str(feed.root)}, {"reports": 0}, every=10.0)
    reading.now += 10.0
    assert reading.next() == []
    feed.record([{"kind": "fire"}])
    for now in (FIRST_SECONDS + 9.5, FIRST_SECONDS + 10.0, FIRST_SECONDS + 19.9):
        reading.now = now
        assert reading.next() == []
    reading.now = FIRST_SECONDS + 20.0
    assert numbers(reading.next(), "reports") == [1]


def test_a_batch_that_cannot_take_all_rows_says_so(feed: RecordedFeed):
    reading = Reading({"reports": str(feed.root)}, {"reports": 0}, most_rows=2)
    feed.record([{"kind": "fire"}] * 3)
    assert (numbers(reading.next(), "reports"), reading.offset.is_cut) == ([1, 2], True)
    assert (numbers(reading.next(), "reports"), reading.offset.is_cut) == ([3], False)


def test_a_feed_that_was_made_anew_is_read_from_its_first_row_though_it_is_as_long(tmp_path: Path):
    feed = RecordedFeed(tmp_path / "reports")
    feed.record([{"kind": "old"}])
    reading = Reading({"reports": str(feed.root)}, {"reports": 0})
    assert numbers(reading.next(), "reports") == [1]
    feed.close()
    shutil.rmtree(tmp_path / "reports")
    with pytest.raises(FeedDatasetError, match="is gone: put it back"):
        reading.next()
    second = RecordedFeed(tmp_path / "reports")
    second.record([{"kind": "new"}, {"kind": "new"}])
    before = reading.at
    rows = reading.next()
    assert [row["reports"]["kind"] for row in rows] == ["new", "new"]
    assert as_rows(reading.reader.readBetweenOffsets(before, reading.at)) == rows
    assert reading.next() == []
    second.close()


def test_a_folder_that_was_moved_away_and_back_is_the_same_feed(feed: RecordedFeed, tmp_path: Path):
    feed.record([{"kind": "fire"}])
    reading = Reading({"reports": str(feed.root)}, {"reports": 0}, every=10.0)
    reading.now += 10.0
    assert numbers(reading.next(), "reports") == [1]
    reading.now += 10.0
    (tmp_path / "reports").rename(tmp_path / "away")
    with pytest.raises(FeedDatasetError):
        reading.next()
    (tmp_path / "away").rename(tmp_path / "reports")
    assert reading.next() == []
    assert reading.offset.counts == RowCounts(1, 1)


def test_rows_between_two_offsets_can_be_read_again(feed: RecordedFeed):
    reading = Reading({"reports": str(feed.root)}, {"reports": 0})
    feed.record([{"kind": "fire"}, {"kind": "flood"}])
    start = reading.at
    rows = reading.next()
    feed.record([{"kind": "storm"}])
    assert as_rows(reading.reader.readBetweenOffsets(start, reading.at)) == rows


def test_rows_come_in_parts_that_spark_may_iterate_twice(feed: RecordedFeed, monkeypatch: pytest.MonkeyPatch):
    import copy

    monkeypatch.setattr(feed_source, "CHUNK_ROWS", 2)
    reading = Reading({"reports": str(feed.root)}, {"reports": 0})
    feed.record([{"kind": "fire"}] * 5)
    batches, _ = reading.reader.read(reading.at)
    again = copy.copy(batches)
    assert [len(each) for each in batches] == [len(each) for each in again] == [2, 2, 1]


def test_a_dataset_that_cannot_be_read_is_an_error(feed: RecordedFeed):
    reading = Reading({"reports": str(feed.root)}, {"reports": 0})
    feed.record([{"kind": "fire"}])
    newest = max((feed.root / "_commits").glob("*.json"))
    newest.write_bytes(b"not a commit")
    with pytest.raises(FeedDatasetError):
        reading.next()


def test_spark_makes_the_reader_from_the_option(feed: RecordedFeed):
    from pyspark.sql.types import LongType, StructField, StructType

    own = StructType([StructField("_row", LongType())])
    schema: StructType = StructType([StructField("reports", own)])
    request = StreamRequest({"reports": str(feed.root)}, StreamOffset({"reports": 3}))
    reader = FeedSource({feed_source.OPTION: request_text(request)}).simpleStreamReader(schema)
    assert StreamOffset.of_json(reader.initialOffset()) == StreamOffset({"reports": 3})
