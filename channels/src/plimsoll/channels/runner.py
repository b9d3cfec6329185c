"""One channel under way: its ledger, its publisher, its batches, one after the other, and what they count.

A channel is a streaming query of Spark over the rows behind the last commit of its ledger. The ledger is the only
record of what was done: the checkpoint of a query ends with it, so places, parameters and results cannot disagree.

Rows that came while no driver ran may have results for parameters that were dropped meanwhile. The first batch of
a life counts these, as unasked results, and says so: what no subscriber got is not passed over in silence.

A fault of one channel stops that channel alone: it begins again behind its last commit, after a growing pause.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame

from plimsoll.channels.batch import BatchCommit, RowCounts, first_commit, next_commit
from plimsoll.channels.batch_clock import BatchClock
from plimsoll.channels.channel_stream import ChannelStream, ChannelStreamError
from plimsoll.channels.config import ChannelDefinition, ChannelFigures, FeedView
from plimsoll.channels.feed_rows import FeedEnd, KeptRows, feed_end, feed_schema, kept_rows
from plimsoll.channels.feed_source import StreamRequest
from plimsoll.channels.ledger import ChannelLedger
from plimsoll.channels.publisher import OpenPublisher, ResultPublisher
from plimsoll.channels.query import ChannelQuery, QueryError, TableError, located
from plimsoll.channels.results import results_of
from plimsoll.channels.start_turn import StartTurn
from plimsoll.channels.stream_offset import StreamOffset
from plimsoll.channels.subscriptions import ChannelSubscriptions, ParameterRow, typed_value
from plimsoll.feeds.commit_log import FeedDatasetError, KnownCommits
from plimsoll.feeds.object_path import DatasetPath, ObjectPath, ObjectStoreError, dataset_root
from plimsoll.feeds.schema import FeedSchema
from plimsoll.sparkjobs.job_errors import is_java_gone, is_spark_error

POLL_SECONDS: Final = 0.1
"""How often a channel looks for new rows, or whether its period is over."""
STORE_POLL_SECONDS: Final = 1.0
"""The same with a feed in an object store, of which each look is a request that costs money."""
RETRY_SECONDS: Final = (1.0, 2.0, 5.0, 15.0, 30.0)
LOOK_SECONDS: Final = 1.0
CHECK_SECONDS: Final = 30.0
"""After how long a query that cannot be used is checked again: feeds and tables may have other columns by then."""

SubscriptionsOf = Callable[[ChannelDefinition], ChannelSubscriptions]


class ChannelRunner:
    """Runs one channel. `root`: of its ledger; `checkpoint`: the folder of its queries' checkpoints.

    `fail`: called with an error that all channels share: fleet, disk, or a Spark that has ended.
    """

    def __init__(
        self,
        query: ChannelQuery,
        channel: ChannelDefinition,
        root: DatasetPath,
        opened: OpenPublisher,
        subscriptions_of: SubscriptionsOf,
        most_bytes: int,
        checkpoint: Path,
        fail: Callable[[Exception], None],
    ) -> None:
        self._checkpoint = checkpoint
        self._query, self.channel, self._most_bytes, self._fail = query, channel, most_bytes, fail
        self._roots = {each.feed: dataset_root(each.path) for each in channel.feeds}
        self._known = {feed: KnownCommits() for feed in self._roots}
        in_store = any(isinstance(each, ObjectPath) for each in self._roots.values())
        self._poll_seconds = STORE_POLL_SECONDS if in_store else POLL_SECONDS
        self._subscriptions_of = subscriptions_of
        self.ledger = ChannelLedger(root)
        self._save_seconds, self._save_at = (STORE_POLL_SECONDS if isinstance(root, ObjectPath) else 0.0), 0.0
        try:
            with contextlib.suppress(FeedDatasetError, ObjectStoreError):  # its thread tries again, and says why
                self._begin()
            self._publisher = ResultPublisher(self.ledger, opened)
        except BaseException:
            self.ledger.close()
            raise
        self._lock = threading.Lock()
        last_us = self.ledger.last.last_due_us if self.ledger.last is not None else _now_us()
        self._clock, self._is_behind = BatchClock(channel.every_seconds, last_us / 1e6), False
        self._schemas: dict[str, FeedSchema] = {}
        self._state, self._message = "ChannelStarting", "its query is about to be checked"
        self._failures = self._failures_in_a_row = 0
        self._delay_milliseconds = 0
        self._stop = threading.Event()
        self._stopping = threading.Lock()
        self._stream: ChannelStream | None = None
        self._turn = StartTurn()
        self._parameters_before = () if self.ledger.last is None else self.ledger.last.parameters
        self._missed = 0
        self._thread = threading.Thread(target=self._run, name=f"channel-{channel.name}", daemon=True)

    def start(self) -> None:
        """Begin, on a thread of its own."""
        self._thread.start()

    def save(self) -> None:
        """Count the answers to its results, and save how far they are published; in a store once a second at most."""
        if (now := time.monotonic()) < self._save_at:
            return
        self._save_at = now + self._save_seconds
        with self._lock:
            try:
                self._publisher.save()
            except ObjectStoreError as error:
                self._tell("BatchFailed", f"{error}; tried again")

    def _run(self) -> None:
        pause = 0.0
        while not self._stop.wait(pause):
            try:
                pause = self._step()
            except QueryError as fault:
                self._tell("QueryUnkeyed" if fault.is_unkeyed else "QueryInvalid", str(fault))
                pause = CHECK_SECONDS
            except (ChannelStreamError, FeedDatasetError, ObjectStoreError, TableError) as error:
                pause = self._failed(str(error))
            except Exception as error:  # noqa: BLE001  # all that is not of one query ends the driver
                if is_java_gone(error) or not is_spark_error(error):  # or the fleet, the disk, a fault of ours
                    self._fail(error)
                    return
                pause = self._failed(located(error))

    def _step(self) -> float:
        """Check the query, and have batches until the channel is stopped; returns how long to wait before the next."""
        self._begin()
        if (schemas := self._checked()) is None:
            return LOOK_SECONDS
        last, feeds = self._last_commit, self.channel.new_feeds
        self._clock.follow(time.time())
        start = StreamOffset(
            {feed: last.places[feed] for feed in feeds}, self._clock.period - self._is_behind,
            datasets={feed: last.datasets.get(feed, "") for feed in feeds},
        )  # fmt: skip
        request = StreamRequest({each.feed: each.path for each in self.channel.new_feeds.values()}, start,
                                self.channel.every_seconds)  # fmt: skip
        if not self._turn.take(self._stop.is_set):
            return 0.0
        try:
            self._run_stream(request, schemas)
        finally:
            self._turn.give_back()
        return 0.0

    def _run_stream(self, request: StreamRequest, schemas: Mapping[str, FeedSchema]) -> None:
        with self._stopping:
            if self._stop.is_set():
                return
            self._stream = ChannelStream(
                self._query.session, request, self._query.kinds(schemas),
                self.channel.every_seconds or self._poll_seconds, self._checkpoint, self._on_batch,
                self._on_nothing, self._turn.give_back,
            )  # fmt: skip
        self._stream.wait()

    def _begin(self) -> None:
        """Note where a channel begins, or a feed of it that an earlier one of its name did not read: from now on."""
        last = self.ledger.last
        new = [feed for feed in self.channel.new_feeds if last is None or feed not in last.places]
        if last is not None and not new:
            return
        ends = {feed: feed_end(self._roots[feed], self._known[feed]) or FeedEnd() for feed in new}
        places, datasets = (
            {feed: each.row for feed, each in ends.items()},
            {feed: each.dataset for feed, each in ends.items()},
        )
        if last is None:
            self.ledger.commit(first_commit(places, _now_us(), datasets))
        else:
            self.ledger.commit(next_commit(
                last, places, RowCounts(), (), (), unasked=0, invalid=0, at_us=_now_us(), query_us=0, datasets=datasets
            ))  # fmt: skip

    def _failed(self, why: str) -> float:
        pause = RETRY_SECONDS[min(self._failures_in_a_row, len(RETRY_SECONDS) - 1)]
        self._failures += 1
        self._failures_in_a_row += 1
        self._tell("BatchFailed", f"{why}; tried again after {pause:.0f} s")
        return pause

    @property
    def _last_commit(self) -> BatchCommit:
        if self.ledger.last is None:
            raise AssertionError("a ledger has its first commit before its channel starts")
        return self.ledger.last

    def _checked(self) -> dict[str, FeedSchema] | None:
        """The schemas of its feeds, for which its query is good; None: a feed has none yet."""
        schemas: dict[str, FeedSchema] = {}
        for view in self.channel.feeds:
            if (schema := feed_schema(self._roots[view.feed])) is None:
                text = f"feed {view.feed} has no schema: nothing is recorded, and none declared"
                self._tell("FeedNotRecorded", text)
                return None
            schemas[view.feed] = schema
        self._query.check(schemas)
        self._schemas = schemas
        if not self._failures_in_a_row:
            self._tell("ChannelRunning", "its query is checked")
        return schemas

    def _on_batch(self, new: DataFrame, start: StreamOffset, end: StreamOffset) -> None:
        """Compute, commit and publish a batch. Raises as Spark, the fleet and the disk do."""
        began = time.monotonic()
        last, asked = self._last_commit, self._subscriptions_of(self.channel)
        dropped = self._dropped(asked.rows)
        rows: list[dict[str, Any]] = []
        missed = 0
        if asked.rows or dropped:
            kept = {each.name: self._kept(each) for each in self.channel.feeds if not each.is_new}
            rows = self._query.run(asked.rows, new, kept) if asked.rows else rows
            missed = self._results_for(dropped, new, kept)
        found = results_of(rows, self.channel, asked.rows, last.number + 1, self._most_bytes)
        commit = next_commit(
            last, end.places, end.counts - start.counts, tuple(sorted(asked.rows)), found.results,
            unasked=found.unasked + missed, invalid=found.invalid, at_us=_now_us(),
            query_us=round((time.monotonic() - began) * 1e6),
            late_us=round(self._clock.late_seconds(end.period, end.begun_us / 1e6) * 1e6),
            due_us=self._clock.due_us(end.period) or end.begun_us, datasets=end.datasets,
        )  # fmt: skip
        with self._lock:
            self.ledger.commit(commit)
            self._publisher.publish(commit.results)
        self._clock.begun(end.period, end.begun_us / 1e6)
        self._failures_in_a_row, self._is_behind = 0, end.is_cut
        self._missed += missed
        if not end.is_cut:  # all that came while no driver ran has had its batch
            self._parameters_before = ()
        if end.oldest_sent_us:
            self._delay_milliseconds = max(0, commit.at_us - end.oldest_sent_us) // 1000
        self._tell("ChannelRunning", f"{len(commit.results)} results in batch {commit.number}")

    def _dropped(self, asked: frozenset[ParameterRow]) -> frozenset[ParameterRow]:
        """Parameters that the life before had and that are not in force; of the types that they have now."""
        types = [each.type for each in self.channel.parameters]
        return frozenset(
            row for row in self._parameters_before
            if row not in asked and len(row) == len(types) and None not in map(typed_value, row, types)
        )  # fmt: skip

    def _results_for(self, dropped: frozenset[ParameterRow], new: DataFrame, kept: Mapping[str, KeptRows]) -> int:
        """How many results there are for them; in a query of their own, which changes nothing for the others."""
        if not dropped:
            return 0
        return len(results_of(self._query.run(dropped, new, kept), self.channel, dropped, 0, self._most_bytes).results)

    def _on_nothing(self) -> None:
        self._failures_in_a_row = 0
        if self.channel.every_seconds is None:  # nothing came while no driver ran; with a period it may have
            self._parameters_before = ()
        self._tell("ChannelRunning", "no batch is due")

    def _kept(self, view: FeedView) -> KeptRows:
        since_us = _since(view.within_seconds)
        return kept_rows(self._roots[view.feed], self._schemas[view.feed], since_us, self._known[view.feed])

    def _tell(self, state: str, message: str) -> None:
        if self._missed and state == "ChannelRunning":
            message = f"{message}; {self._missed} results for parameters that were dropped while no driver ran"
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
            failures=self._failures, delay_milliseconds=self._delay_milliseconds,
            late_milliseconds=round(last.late_us / 1000), period_seconds=self.channel.every_seconds or 0.0,
            periods_kept=self._clock.kept, periods_late=self._clock.late, periods_missed=self._clock.missed,
        )  # fmt: skip

    def close(self) -> None:
        """End behind the batch under way, and save how far its results are published."""
        with contextlib.ExitStack() as ends:  # each is taken, whatever comes of the one before
            ends.callback(self.ledger.close)
            ends.callback(self._publisher.close)
            ends.callback(self._join)
            with self._stopping:
                self._stop.set()
                if self._stream is not None:
                    self._stream.stop()

    def _join(self) -> None:
        if self._thread.ident is not None:
            self._thread.join()


def _since(seconds: float | None) -> int | None:
    return None if seconds is None else _now_us() - round(seconds * 1e6)


def _now_us() -> int:
    return time.time_ns() // 1000
