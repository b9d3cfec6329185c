"""A channel as a structured stream of Spark: a source that says which rows a batch has, and what becomes of each batch.

The source's offsets are places in feeds. They begin at the last commit of the channel's ledger, which is the only
record that counts: Spark's own checkpoint lasts no longer than the driver. So a batch whose commit was not made is
computed again from the same places, and one whose commit was made never is.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.types import StructType

from plimsoll.channels.batch import RowRange, planned_ranges
from plimsoll.channels.feed_rows import last_row

SOURCE: Final = "plimsoll_feeds"
OPTION: Final = "start"
"""The one option of the source: a `SourceStart` as JSON."""
COLUMNS: Final = "ranges STRING"


class SourceStart(msgspec.Struct, frozen=True):
    """Where a stream begins. `paths`: of the feeds' datasets. `places`: the last rows of the last commit.

    `every_seconds`: a batch in each period, with or without new rows; None: a batch as soon as there are new rows.
    """

    paths: dict[str, str]
    places: dict[str, int]
    every_seconds: float | None = None


class FeedRanges(DataSource):
    """The source `plimsoll_feeds`: one row in each batch, with the ranges of rows as JSON."""

    @classmethod
    def name(cls) -> str:
        return SOURCE

    def schema(self) -> str:
        return COLUMNS

    def simpleStreamReader(self, schema: StructType) -> RangeReader:  # noqa: N802  # Spark's name
        return RangeReader(msgspec.json.decode(self.options[OPTION], type=SourceStart))


class RangeReader(SimpleDataSourceStreamReader):
    """Looks where the feeds end. An offset is {"places": {feed: row}, "period": number}."""

    def __init__(self, start: SourceStart) -> None:
        self._start = start

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's name
        return {"places": json.dumps(self._start.places), "period": self._period()}

    def read(self, start: dict[str, Any]) -> tuple[Iterator[tuple[Any, ...]], dict[str, Any]]:
        places = json.loads(start["places"])
        ends = {feed: last_row(Path(path)) for feed, path in self._start.paths.items()}
        ranges = planned_ranges(places, ends)
        period = self._period()
        if not any(each.count for each in ranges.values()) and period == start["period"]:
            return iter(()), start
        if self._start.every_seconds is not None and period == start["period"]:
            return iter(()), start
        after = {**places, **{feed: each.last for feed, each in ranges.items() if each.count}}
        row = (msgspec.json.encode(ranges).decode(),)
        return iter([row]), {"places": json.dumps(after), "period": period}

    def readBetweenOffsets(  # noqa: N802  # Spark's name
        self, start: dict[str, Any], end: dict[str, Any]
    ) -> Iterator[tuple[Any, ...]]:
        before, after = json.loads(start["places"]), json.loads(end["places"])
        ranges = {feed: RowRange(before.get(feed, 0) + 1, last) for feed, last in after.items()}
        return iter([(msgspec.json.encode(ranges).decode(),)])

    def _period(self) -> int:
        every = self._start.every_seconds
        return 0 if every is None else int(time.time() / every)


def ranges_of(rows: list[Any]) -> dict[str, RowRange]:
    """The ranges of a batch, from the rows of the source."""
    found: dict[str, RowRange] = {}
    for row in rows:
        found |= msgspec.json.decode(row["ranges"], type=dict[str, RowRange])
    return found
