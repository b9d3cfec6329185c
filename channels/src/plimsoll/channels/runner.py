"""One channel under way: its ledger, its publisher, its stream; each batch in order, and what it counts.

A fault of one channel stops that channel alone: it begins again behind its last commit, after a growing pause.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from plimsoll.channels.batch import RowCounts, RowRange, first_commit, next_commit
from plimsoll.channels.config import ChannelDefinition, ChannelFigures
from plimsoll.channels.feed_rows import all_files, feed_schema, last_row, read_rows
from plimsoll.channels.ledger import ChannelLedger
from plimsoll.channels.publisher import OpenPublisher, ResultPublisher
from plimsoll.channels.query import ChannelQuery, QueryError, located
from plimsoll.channels.results import results_of
from plimsoll.channels.spark_source import OPTION, SOURCE, FeedRanges, SourceStart, ranges_of
from plimsoll.channels.subscriptions import ChannelSubscriptions
from plimsoll.client import errors
from plimsoll.feeds.commit_log import FeedDatasetError
from plimsoll.feeds.schema import FeedSchema
from plimsoll.sparkjobs.job_errors import is_spark_error

POLL_INTERVAL: Final = "100 milliseconds"
"""How often a continuous channel looks for new rows."""
RETRY_SECONDS: Final = (1.0, 2.0, 5.0, 15.0, 30.0)
LOOK_SECONDS: Final = 1.0

SubscriptionsOf = Callable[[ChannelDefinition], ChannelSubscriptions]


class ChannelRunner:
    """Runs one channel. `fail`: called with an error that all channels share: the fleet or the disk."""

    def __init__(
        self,
        spark: SparkSession,
        channel: ChannelDefinition,
        folder: Path,
        opened: OpenPublisher,
        subscriptions_of: SubscriptionsOf,
        most_bytes: int,
        fail: Callable[[Exception], None],
    ) -> None:
        self.channel, self._most_bytes, self._fail = channel, most_bytes, fail
        self._query = ChannelQuery(spark, channel)
        self._subscriptions_of = subscriptions_of
        self.ledger = ChannelLedger(folder)
        try:
            if self.ledger.last is None:
                ends = {feed: last_row(Path(view.path)) for feed, view in channel.new_feeds.items()}
                self.ledger.commit(first_commit(ends, _now_us()))
            self._publisher = ResultPublisher(self.ledger, opened)
        except BaseException:
            self.ledger.close()
            raise
        self._lock = threading.Lock()
        self._stream: StreamingQuery | None = None
        self._checkpoint = ""
        self._schemas: dict[str, FeedSchema] = {}
        self._state, self._message = "ChannelStarting", "its query is about to be checked"
        self._start_at, self._failures = 0.0, 0
        self._is_checked = self._is_over = False

    def poll(self, now: float) -> None:
        """Start it when that is due, and notice its end. `now`: monotonic seconds."""
        with self._lock:
            self._publisher.save()
        if self._stream is not None and not self._stream.isActive:
            self._on_end(self._stream, now)
        if self._stream is None and not self._is_over and now >= self._start_at:
            self._start_at = now + LOOK_SECONDS
            self._try_start(now)

    def _on_end(self, stream: StreamingQuery, now: float) -> None:
        error = stream.exception()
        self._drop_stream()
        pause = RETRY_SECONDS[min(self._failures, len(RETRY_SECONDS) - 1)]
        self._failures += 1
        self._start_at = now + pause
        text = located(error) if error is not None else "its stream has ended"
        self._tell("BatchFailed", f"{text}; tried again after {pause:.0f} s")

    def _try_start(self, now: float) -> None:
        try:
            if not self._is_checked and not self._check():
                return
            self._stream = self._started()
        except QueryError as fault:
            self._is_over = True
            self._tell("QueryUnkeyed" if fault.is_unkeyed else "QueryInvalid", str(fault))
        except Exception as error:
            if not isinstance(error, FeedDatasetError) and not is_spark_error(error):
                raise
            self._failures += 1
            self._start_at = now + RETRY_SECONDS[min(self._failures, len(RETRY_SECONDS) - 1)]
            self._tell("BatchFailed", located(error))

    def _check(self) -> bool:
        schemas = {each.feed: feed_schema(Path(each.path)) for each in self.channel.feeds}
        if missing := sorted(name for name, schema in schemas.items() if schema is None):
            self._tell("FeedNotRecorded", f"feed {missing[0]} has no schema: nothing is recorded, and none declared")
            return False
        self._schemas = {name: schema for name, schema in schemas.items() if schema is not None}
        self._query.check(self._schemas)
        self._is_checked = True
        return True

    def _started(self) -> StreamingQuery:
        last = self.ledger.last
        if last is None:
            raise AssertionError("a ledger has its first commit before its stream starts")
        paths = {feed: view.path for feed, view in self.channel.new_feeds.items()}
        start = SourceStart(paths, last.places, self.channel.every_seconds)
        self._checkpoint = tempfile.mkdtemp(prefix="plimsoll-channel-")
        session = self._query.session
        session.dataSource.register(FeedRanges)
        rows = session.readStream.format(SOURCE).option(OPTION, msgspec.json.encode(start).decode()).load()
        self._tell("ChannelRunning", "batches are computed")
        return (
            rows.writeStream.queryName(self.channel.name)
            .option("checkpointLocation", self._checkpoint)
            .foreachBatch(self._on_batch)
            .trigger(processingTime=POLL_INTERVAL)
            .start()
        )

    def _on_batch(self, frame: DataFrame, number: int) -> None:
        """A batch of Spark: its number is of the stream, which is younger than the ledger."""
        try:
            self.run_batch(ranges_of(frame.collect()))
        except (errors.ClientError, OSError) as error:
            self._fail(error)
            raise

    def run_batch(self, ranges: dict[str, RowRange]) -> None:
        """Compute, commit and publish a batch. Raises as Spark, the fleet and the disk do."""
        last, began = self.ledger.last, time.monotonic()
        if last is None:
            raise AssertionError("a ledger has its first commit before its stream starts")
        asked = self._subscriptions_of(self.channel)
        new = {feed: read_rows(Path(self.channel.new_feeds[feed].path), each) for feed, each in ranges.items()}
        rows: list[dict[str, Any]] = []
        if asked.rows:
            since = {
                each.feed: (all_files(Path(each.path), at := _since(each.within_seconds)), self._schemas[each.feed], at)
                for each in self.channel.feeds
                if not each.is_new
            }
            rows = self._query.run(asked.rows, {feed: table for feed, (table, _) in new.items()}, since)
        found = results_of(rows, self.channel, asked.rows, last.number + 1, self._most_bytes)
        counts = sum((each for _, each in new.values()), RowCounts())
        commit = next_commit(
            last, ranges, counts, tuple(sorted(asked.rows)), found.results, unasked=found.unasked,
            invalid=found.invalid, at_us=_now_us(), query_us=round((time.monotonic() - began) * 1e6),
        )  # fmt: skip
        with self._lock:
            self.ledger.commit(commit)
            self._publisher.publish(commit.results)
        self._failures = 0
        self._tell("ChannelRunning", f"{len(commit.results)} results in batch {commit.number}")

    def _tell(self, state: str, message: str) -> None:
        self._state, self._message = state, message

    def figures(self) -> ChannelFigures:
        """What it has done so far."""
        asked, last, counts = self._subscriptions_of(self.channel), self.ledger.last, self._publisher.counts
        if last is None:
            return ChannelFigures(self._state, self._message)
        totals = last.totals
        return ChannelFigures(
            state=self._state, message=self._message, subscriptions=len(asked.rows), open_subscriptions=asked.open,
            invalid_subscriptions=asked.invalid, batch=last.number, batch_us=last.at_us,
            batch_milliseconds=round(last.query_us / 1000), rows_in=totals.rows.rows_in, rows_used=totals.rows.used,
            late_rows=totals.rows.late, invalid_rows=totals.rows.invalid, results=totals.results,
            accepted_results=counts.accepted, unknown_results=counts.unknown, refused_results=counts.refused,
            unasked_results=totals.unasked, invalid_results=totals.invalid_results,
        )  # fmt: skip

    def close(self) -> None:
        """End the stream behind the batch under way, and save how far its results are published."""
        if self._stream is not None:
            self._stream.stop()
            self._drop_stream()
        self._publisher.close()
        self.ledger.close()

    def _drop_stream(self) -> None:
        self._stream = None
        shutil.rmtree(self._checkpoint, ignore_errors=True)  # it may be gone, and a rest of it does no harm


def _since(seconds: float | None) -> int | None:
    return None if seconds is None else _now_us() - round(seconds * 1e6)


def _now_us() -> int:
    return time.time_ns() // 1000
