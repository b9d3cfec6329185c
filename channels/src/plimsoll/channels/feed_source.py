"""The new rows of a channel's feeds as a source of Spark's structured streaming, whose offsets are numbers of rows.

Spark's own source of files takes each name of a file once, and a feed merges files and deletes them. Numbers of rows
stay, so each row is read once, or counted as late.

Spark runs the reader in a process of its own beside the driver. A batch is read when its end is decided, so that its
rows and its counts are those of one look at the datasets.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec
import pyarrow as pa
from msgspec import Struct
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from plimsoll.channels.batch import BATCH_ROWS, RowCounts, RowRange, planned_ranges
from plimsoll.channels.batch_clock import period_at
from plimsoll.channels.feed_rows import FeedEnd, feed_end, oldest_sent_us, read_rows
from plimsoll.channels.stream_offset import StreamOffset
from plimsoll.feeds.commit_log import FeedDatasetError, KnownCommits
from plimsoll.feeds.object_path import dataset_root

SOURCE: Final = "plimsoll-feeds"
OPTION: Final = "request"
"""The option with a `StreamRequest` as JSON."""
CHUNK_ROWS: Final = 10_000
"""Rows are handed to Spark in parts of this many."""


class StreamRequest(Struct, frozen=True):
    """What a query reads: the paths of its feeds by their names, from where on, and its period in seconds, if any.

    `most_rows`: of one feed in a batch.
    """

    feeds: dict[str, str]
    start: StreamOffset
    every_seconds: float | None = None
    most_rows: int = BATCH_ROWS


class FeedSource(DataSource):
    """The source as Spark knows it. Its schema is one struct for each feed; a row has the one of its feed."""

    @classmethod
    def name(cls) -> str:
        return SOURCE

    def simpleStreamReader(self, schema: StructType) -> FeedReader:  # noqa: N802  # its name in Spark
        request = msgspec.json.decode(self.options[OPTION], type=StreamRequest)
        return FeedReader(request, to_arrow_schema(schema, timezone="UTC"))


class FeedReader(SimpleDataSourceStreamReader):
    """Reads the rows of one query's batches. `kind`: of its rows; `clock`: seconds since 1970.

    Raises:
        FeedDatasetError: a dataset cannot be read.
        ObjectStoreError: the store fails.

    """

    def __init__(self, request: StreamRequest, kind: pa.Schema, clock: Callable[[], float] = time.time) -> None:
        self._request, self._kind, self._clock = request, kind, clock
        self._roots = {feed: dataset_root(path) for feed, path in request.feeds.items()}
        self._known = {feed: KnownCommits() for feed in self._roots}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # its name in Spark
        return self._request.start.as_json()

    def read(self, start: dict[str, Any]) -> tuple[Iterator[pa.RecordBatch], dict[str, Any]]:
        """The batch behind `start`, if one is due, and where it ends."""
        before = StreamOffset.of_json(start)
        every = self._request.every_seconds
        now = self._clock()
        period = period_at(every, now)
        if every is not None and period <= before.period:  # below it if the clock was set back a little
            return iter(()), start
        ends = {feed: self._end(feed) for feed in self._roots}
        datasets = {feed: each.dataset for feed, each in ends.items()}
        newest = {feed: each.row for feed, each in ends.items()}
        ranges = planned_ranges(before.places_in(datasets), newest, self._request.most_rows)
        if every is None and not any(each.count for each in ranges.values()):
            return iter(()), start
        tables, counts = self._tables(ranges, datasets)
        places = {**before.places, **{feed: each.last for feed, each in ranges.items()}}
        after = StreamOffset(
            places, period, before.counts + counts, round(now * 1e6), oldest_sent_us(tables.values()) or 0, datasets,
            is_cut=any(each.last < newest[feed] for feed, each in ranges.items()),
        )  # fmt: skip
        return self._rows(tables), after.as_json()

    def _end(self, feed: str) -> FeedEnd:
        if (found := feed_end(self._roots[feed], self._known[feed])) is None:
            raise FeedDatasetError(f"{self._roots[feed]}: the dataset is gone: put it back, or record the feed again")
        return found

    def readBetweenOffsets(  # noqa: N802  # its name in Spark
        self, start: dict[str, Any], end: dict[str, Any]
    ) -> Iterator[pa.RecordBatch]:
        """The rows between two offsets again."""
        before, after = StreamOffset.of_json(start), StreamOffset.of_json(end)
        ranges = planned_ranges(before.places_in(after.datasets), after.places, self._request.most_rows)
        return self._rows(self._tables(ranges, after.datasets)[0])

    def _tables(
        self, ranges: Mapping[str, RowRange], datasets: Mapping[str, str]
    ) -> tuple[dict[str, pa.Table], RowCounts]:
        found = {
            feed: read_rows(self._roots[feed], each, self._known[feed], datasets.get(feed, ""))
            for feed, each in ranges.items()
        }
        return {feed: table for feed, (table, _) in found.items()}, sum(
            (each for _, each in found.values()), RowCounts()
        )

    def _rows(self, tables: Mapping[str, pa.Table]) -> Iterator[pa.RecordBatch]:
        parts = [
            self._row_batch(feed, part)
            for feed, table in tables.items() for part in table.to_batches(max_chunksize=CHUNK_ROWS)
        ]  # fmt: skip
        return iter(parts)  # Spark copies the iterator, which a generator does not allow

    def _row_batch(self, feed: str, rows: pa.RecordBatch) -> pa.RecordBatch:
        columns = [
            rows.to_struct_array().cast(each.type) if each.name == feed else pa.nulls(len(rows), each.type)
            for each in self._kind
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._kind)


def request_text(request: StreamRequest) -> str:
    """A request as the option has it."""
    return json.dumps(msgspec.to_builtins(request))
