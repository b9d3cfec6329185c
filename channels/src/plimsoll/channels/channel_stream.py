"""The streaming query of one channel: Spark decides when there is a batch, and calls for it.

Its checkpoint lasts as long as the query. Each query begins where the ledger ends, with an empty checkpoint, so there
is one record of what was done, and nothing that could disagree with it.
"""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from plimsoll.channels.batch_clock import ClockWatch
from plimsoll.channels.feed_source import OPTION, SOURCE, FeedSource, StreamRequest, request_text
from plimsoll.channels.stream_offset import StreamOffset
from plimsoll.sparkjobs.job_errors import cause_of

OFFSETS: Final = "offsets"
"""The folder of a checkpoint with the end of each batch, which Spark writes before the batch begins."""

WATCH_SECONDS: Final = 1
"""How often a query is looked at, which may have to begin again."""
START_SECONDS: Final = 15.0
"""A query that takes longer to start, such as one over a store that does not answer, lets others start meanwhile."""

OnBatch = Callable[[DataFrame, StreamOffset, StreamOffset], None]
"""Gets the rows of a batch, and the offsets in front of it and behind it."""


class ChannelStreamError(Exception):
    """A query has failed outside of a batch; says why."""


class ChannelStreamStoppedError(Exception):
    """A batch begins while its query is stopped."""


class ChannelStream:
    """A query under way. `kinds`: the schema of each feed; `look_seconds`: how often it looks for new rows.

    `checkpoint`: a folder of its own, whose content is deleted. `on_nothing`: called if no batch is due at its start.
    `on_started`: called when it works, or takes long to; maybe several times.
    """

    def __init__(
        self,
        session: SparkSession,
        request: StreamRequest,
        kinds: Mapping[str, StructType],
        look_seconds: float,
        checkpoint: Path,
        on_batch: OnBatch,
        on_nothing: Callable[[], None] = lambda: None,
        on_started: Callable[[], None] = lambda: None,
    ) -> None:
        if checkpoint.exists():
            shutil.rmtree(checkpoint)
        self._at, self._on_batch, self._on_nothing, self._checkpoint = request.start, on_batch, on_nothing, checkpoint
        self._on_started, self._begun = on_started, time.monotonic()
        self._is_repetitive, self._watch = request.every_seconds is not None, ClockWatch()
        self._fault: BaseException | None = None
        self._lock = threading.Lock()
        """Held during a batch, and while the query is being stopped."""
        self._is_stopped = False
        session.dataSource.register(FeedSource)
        schema = StructType([StructField(feed, kind) for feed, kind in kinds.items()])
        rows = session.readStream.format(SOURCE).schema(schema).option(OPTION, request_text(request)).load()
        writer = rows.writeStream.foreachBatch(self._batch).option("checkpointLocation", _location(checkpoint))
        self._query = writer.trigger(processingTime=f"{round(look_seconds * 1000)} milliseconds").start()

    def _batch(self, rows: DataFrame, number: int) -> None:
        if not self._lock.acquire(blocking=False):
            raise ChannelStreamStoppedError
        self._on_started()
        try:
            end = self._end_of(number)
            if end != self._at:  # Spark begins with a batch even if none is due
                self._on_batch(rows, self._at, end)
                self._at = end
            else:
                self._on_nothing()
        except BaseException as error:
            self._fault = error
            raise
        finally:
            self._lock.release()

    def _end_of(self, number: int) -> StreamOffset:
        last = (self._checkpoint / OFFSETS / str(number)).read_text().splitlines()[-1]
        return StreamOffset.of_json(json.loads(last))

    def wait(self) -> None:
        """Wait until the query is stopped, or has to begin again: Spark looks again when the clock says so.

        Spark would wait for the next period, while a batch was too large to take all rows; and until a clock that was
        set back has caught up.

        Raises:
            ChannelStreamError: new rows cannot be read, or Spark fails outside of a batch.
            Exception: what a batch has raised.

        """
        try:
            while not self._query.awaitTermination(WATCH_SECONDS):
                if self._watch.was_set_back() or (self._is_repetitive and self._at.is_cut):
                    self.stop()
                if time.monotonic() > self._begun + START_SECONDS:
                    self._on_started()
        except PySparkException as error:
            if self._fault is None and not self._is_stopped:
                raise ChannelStreamError(cause_of(error)) from error
        if self._fault is not None:
            raise self._fault

    def stop(self) -> None:
        """End behind the batch under way."""
        with self._lock:
            self._is_stopped = True
            self._query.stop()


def _location(folder: Path) -> str:
    """A folder as Spark takes it, which escapes nothing in it."""
    return f"file://{folder.absolute()}"
