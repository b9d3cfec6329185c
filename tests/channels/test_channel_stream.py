"""Streaming queries in a real Spark: batches between offsets, faults, and an end behind the batch under way."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.channels.datasets import REPORTS, RecordedFeed
from tests.sparkjobs import needs  # noqa: F401  # skips this module by name where Spark cannot run

from plimsoll.channels.batch_clock import ClockWatch
from plimsoll.channels.channel_stream import ChannelStream, ChannelStreamError, OnBatch
from plimsoll.channels.feed_source import StreamRequest
from plimsoll.channels.stream_offset import StreamOffset
from plimsoll.feeds import parquet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DEADLINE_SECONDS = 300.0
Batch = tuple[list[int], StreamOffset, StreamOffset]


class Noted:
    """Notes the batches of a query; `during` is called in each of them."""

    def __init__(self, during: Callable[[], None] = lambda: None) -> None:
        self.batches: list[Batch] = []
        self.during = during
        self._changed = threading.Condition()

    def __call__(self, rows: DataFrame, start: StreamOffset, end: StreamOffset) -> None:
        numbers = [row[0] for row in rows.select("reports._row").orderBy("_row").collect()]
        self.during()
        with self._changed:
            self.batches.append((numbers, start, end))
            self._changed.notify_all()

    def wait(self, count: int) -> list[Batch]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.batches) >= count, DEADLINE_SECONDS)
        return self.batches


class Stand:
    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self.feed = RecordedFeed(folder / "reports")
        self.streams: list[ChannelStream] = []

    def stream(
        self, on_batch: OnBatch, place: int = 0, on_nothing: Callable[[], None] = lambda: None, **more: Any
    ) -> ChannelStream:
        session = self.spark.newSession()
        kind = session.createDataFrame(parquet.rows_schema(REPORTS).empty_table()).schema
        request = StreamRequest({"reports": str(self.feed.root)}, StreamOffset({"reports": place}), **more)
        look = more.get("every_seconds", 0.05)
        # A home may have any name, and Spark takes folders as texts.
        folder = self.folder / "my plan 100%20"
        made = ChannelStream(session, request, {"reports": kind}, look, folder, on_batch, on_nothing)
        self.streams.append(made)
        return made


@pytest.fixture
def stand(spark: SparkSession, tmp_path: Path) -> Iterator[Stand]:
    made = Stand(spark, tmp_path)
    yield made
    for stream in made.streams:
        stream.stop()
    made.feed.close()


@pytest.mark.sweep
def test_batches_follow_one_another_and_a_later_query_begins_where_it_is_told_to(stand: Stand) -> None:
    first = Noted()
    stream = stand.stream(first)
    stand.feed.record([{"kind": "fire"}, {"kind": "flood"}])
    assert first.wait(1)[0][0] == [1, 2]
    stand.feed.record([{"kind": 3}])
    numbers, start, end = first.wait(2)[1]
    assert (numbers, start, end.places, end.counts.invalid) == ([], first.batches[0][2], {"reports": 3}, 1)
    stream.stop()
    stream.wait()
    stand.feed.record([{"kind": "storm"}])
    second = Noted()
    stand.stream(second, place=3)
    assert second.wait(1)[0][0] == [4], "its checkpoint is its own"
    assert len(first.batches) == 2


@pytest.mark.sweep
def test_a_query_for_which_no_batch_is_due_says_so_and_one_that_left_rows_behind_ends(stand: Stand) -> None:
    waits = threading.Event()
    idle = stand.stream(Noted(), on_nothing=waits.set)
    assert waits.wait(DEADLINE_SECONDS)
    idle.stop()
    stand.feed.record([{"kind": "fire"}, {"kind": "flood"}])
    noted = Noted()
    stream = stand.stream(noted, every_seconds=86_400.0, most_rows=1)
    stream.wait()  # not until tomorrow
    assert [numbers for numbers, _, _ in noted.batches] == [[1]]


def test_a_clock_that_was_set_back_ends_it_since_spark_would_wait_until_it_has_caught_up(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ClockWatch, "was_set_back", lambda self: True)
    stand.stream(Noted()).wait()


def test_a_batch_that_fails_ends_the_query_with_its_error(stand: Stand) -> None:
    class PlannedError(Exception):
        pass

    def fail() -> None:
        raise PlannedError

    stream = stand.stream(Noted(fail))
    stand.feed.record([{"kind": "fire"}])
    with pytest.raises(PlannedError):
        stream.wait()


def test_rows_that_cannot_be_read_end_it_with_the_reason_in_one_line(stand: Stand) -> None:
    stand.feed.record([{"kind": "fire"}])
    newest = max((stand.feed.root / "_commits").glob("*.json"))
    newest.write_bytes(b"not a commit")
    with pytest.raises(ChannelStreamError) as caught:
        stand.stream(Noted()).wait()
    assert newest.name in str(caught.value)
    assert "\n" not in str(caught.value)


class ToldQuery:
    """A query that notes when it is stopped."""

    def __init__(self, query: Any, order: list[str]) -> None:
        self._query, self._order = query, order

    def __getattr__(self, name: str) -> Any:
        return getattr(self._query, name)

    def stop(self) -> None:
        self._order.append("stopped")
        self._query.stop()


def test_a_stop_waits_for_the_batch_under_way(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, finish, order = threading.Event(), threading.Event(), list[str]()

    def during() -> None:
        begun.set()
        assert finish.wait(DEADLINE_SECONDS)
        order.append("computed")

    noted = Noted(during)
    stream = stand.stream(noted)
    monkeypatch.setattr(stream, "_query", ToldQuery(stream._query, order))
    stand.feed.record([{"kind": "fire"}])
    assert begun.wait(DEADLINE_SECONDS)
    stopping = threading.Thread(target=stream.stop)
    stopping.start()
    stopping.join(0.2)  # time for a stop that does not wait
    stand.feed.record([{"kind": "flood"}])
    finish.set()
    stopping.join()
    stream.wait()
    assert (order[0], order[-1]) == ("computed", "stopped"), "another batch may come first"
    assert noted.batches[0][0] == [1]
