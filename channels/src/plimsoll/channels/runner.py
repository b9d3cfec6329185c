"""One channel under way: its ledger, its publisher, its batches, one after the other, and what they count.

A batch is one query of Spark over the rows behind the last commit. The ledger is the only record of what was done:
Spark keeps no checkpoint, so places, parameters and results cannot disagree.

A fault of one channel stops that channel alone: it begins again behind its last commit, after a growing pause.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from plimsoll.channels.batch import BatchCommit, RowCounts, RowRange, first_commit, next_commit, planned_ranges
from plimsoll.channels.batch_clock import BatchClock
from plimsoll.channels.config import ChannelDefinition, ChannelFigures, FeedView
from plimsoll.channels.feed_rows import KeptRows, feed_schema, kept_rows, last_row, oldest_sent_us, read_rows
from plimsoll.channels.ledger import ChannelLedger
from plimsoll.channels.publisher import OpenPublisher, ResultPublisher
from plimsoll.channels.query import ChannelQuery, QueryError, located
from plimsoll.channels.results import results_of
from plimsoll.channels.subscriptions import ChannelSubscriptions
from plimsoll.feeds.commit_log import FeedDatasetError, KnownCommits
from plimsoll.feeds.object_path import DatasetPath, ObjectPath, ObjectStoreError, dataset_root
from plimsoll.feeds.schema import FeedSchema
from plimsoll.sparkjobs.job_errors import is_spark_error

POLL_SECONDS: Final = 0.1
"""How often a channel looks for new rows, or whether its period is over."""
STORE_POLL_SECONDS: Final = 1.0
"""The same with a feed in an object store, of which each look is a request that costs money."""
RETRY_SECONDS: Final = (1.0, 2.0, 5.0, 15.0, 30.0)
LOOK_SECONDS: Final = 1.0

SubscriptionsOf = Callable[[ChannelDefinition], ChannelSubscriptions]


class ChannelRunner:
    """Runs one channel. `root`: of its ledger. `fail`: called with an error that all channels share: fleet or disk."""

    def __init__(
        self,
        query: ChannelQuery,
        channel: ChannelDefinition,
        root: DatasetPath,
        opened: OpenPublisher,
        subscriptions_of: SubscriptionsOf,
        most_bytes: int,
        fail: Callable[[Exception], None],
    ) -> None:
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
        self._clock = BatchClock(channel.every_seconds, time.time())
        self._schemas: dict[str, FeedSchema] = {}
        self._state, self._message = "ChannelStarting", "its query is about to be checked"
        self._failures = self._failures_in_a_row = 0
        self._delay_milliseconds = 0
        self._is_checked = False
        self._stop = threading.Event()
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
                return
            except (FeedDatasetError, ObjectStoreError) as error:
                pause = self._failed(str(error))
            except Exception as error:  # noqa: BLE001  # an error that is not one of Spark ends the driver
                if not is_spark_error(error):  # the fleet, the disk, or a fault of ours: the driver ends
                    self._fail(error)
                    return
                pause = self._failed(located(error))

    def _step(self) -> float:
        """Check the query, or compute the batch that is due; returns how long to wait before the next step."""
        self._begin()
        if not self._is_checked:
            return 0.0 if self._check() else LOOK_SECONDS
        now = time.time()
        if wait := self._clock.wait_seconds(now):
            return wait
        ranges = planned_ranges(self._last_commit.places, self._ends())
        if self._clock.is_due(ranges.values(), now):
            self.run_batch(ranges, self._clock.late_seconds(now))
            self._clock.begun(now)
            self._failures_in_a_row = 0
        return self._clock.wait_seconds(time.time()) or self._poll_seconds

    def _begin(self) -> None:
        """Note where a channel begins: with what is recorded from now on."""
        if self.ledger.last is None:
            self.ledger.commit(first_commit(self._ends(), _now_us()))

    def _ends(self) -> dict[str, int]:
        return {feed: last_row(self._roots[feed], self._known[feed]) for feed in self.channel.new_feeds}

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

    def _check(self) -> bool:
        schemas = {each.feed: feed_schema(self._roots[each.feed]) for each in self.channel.feeds}
        if missing := sorted(name for name, schema in schemas.items() if schema is None):
            self._tell("FeedNotRecorded", f"feed {missing[0]} has no schema: nothing is recorded, and none declared")
            return False
        self._schemas = {name: schema for name, schema in schemas.items() if schema is not None}
        self._query.check(self._schemas)
        self._is_checked = True
        self._tell("ChannelRunning", "its query is checked")
        return True

    def run_batch(self, ranges: dict[str, RowRange], late_seconds: float) -> None:
        """Compute, commit and publish a batch. Raises as Spark, the fleet and the disk do."""
        last, began = self._last_commit, time.monotonic()
        asked = self._subscriptions_of(self.channel)
        new = {feed: read_rows(self._roots[feed], each, self._known[feed]) for feed, each in ranges.items()}
        rows: list[dict[str, Any]] = []
        if asked.rows:
            kept = {each.feed: self._kept(each) for each in self.channel.feeds if not each.is_new}
            rows = self._query.run(asked.rows, {feed: table for feed, (table, _) in new.items()}, kept)
        found = results_of(rows, self.channel, asked.rows, last.number + 1, self._most_bytes)
        counts = sum((each for _, each in new.values()), RowCounts())
        commit = next_commit(
            last, ranges, counts, tuple(sorted(asked.rows)), found.results, unasked=found.unasked,
            invalid=found.invalid, at_us=_now_us(), query_us=round((time.monotonic() - began) * 1e6),
            late_us=round(late_seconds * 1e6),
        )  # fmt: skip
        with self._lock:
            self.ledger.commit(commit)
            self._publisher.publish(commit.results)
        if (sent_us := oldest_sent_us(table for table, _ in new.values())) is not None:
            self._delay_milliseconds = max(0, commit.at_us - sent_us) // 1000
        self._tell("ChannelRunning", f"{len(commit.results)} results in batch {commit.number}")

    def _kept(self, view: FeedView) -> KeptRows:
        since_us = _since(view.within_seconds)
        return kept_rows(self._roots[view.feed], self._schemas[view.feed], since_us, self._known[view.feed])

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
            failures=self._failures, delay_milliseconds=self._delay_milliseconds,
            late_milliseconds=round(last.late_us / 1000), period_seconds=self.channel.every_seconds or 0.0,
            periods_kept=self._clock.kept, periods_late=self._clock.late, periods_missed=self._clock.missed,
        )  # fmt: skip

    def close(self) -> None:
        """End behind the batch under way, and save how far its results are published."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._publisher.close()
        self.ledger.close()


def _since(seconds: float | None) -> int | None:
    return None if seconds is None else _now_us() - round(seconds * 1e6)


def _now_us() -> int:
    return time.time_ns() // 1000
