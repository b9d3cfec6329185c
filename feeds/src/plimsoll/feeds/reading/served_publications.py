"""The publications of a feed, read from its recorder file by file, for a replay that needs no copy of the dataset.

One file at a time is kept, and deleted behind its last row. It ends at the last row that the feed had when it began:
what is replayed into the fleet that records it is recorded again, and would otherwise be replayed without end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, assert_never

from plimsoll.feeds import parquet
from plimsoll.feeds.commit_log import Table
from plimsoll.feeds.reading.fetch_run import FetchRun
from plimsoll.feeds.reading.incoming_file import IncomingFile
from plimsoll.feeds.reading.table_reader import (
    AllRead,
    FileAbandoned,
    FileBegins,
    FileComplete,
    PartReceived,
    ReadEvent,
    RowsGone,
    TableReader,
)
from plimsoll.feeds.replay import RecordedPublication, publications_of

TABLE: Final[Table] = "rows"
"""Dead letters are not replayed."""


class ServedPublications:
    """Those from `from_row` on that were recorded since `since_us`, microseconds since 1970. `folder`: for one file."""

    remedy: Final = "what was published stays published"

    def __init__(self, feed: str, folder: Path, from_row: int = 1, since_us: int = 0) -> None:
        self.reader = TableReader(feed, TABLE, from_row, since_us=since_us)
        self._place = folder / "incoming.parquet"
        self._incoming: IncomingFile | None = None
        self._ready: FileComplete | None = None
        self._last_row: int | None = None
        self._is_past_end = False

    def read(self, run: FetchRun, stopped: Callable[[], bool] = lambda: False) -> Iterator[RecordedPublication]:
        """In the order of recording. `run`: has this as its taker.

        Raises:
            FeedReadError: reading cannot go on.
            OSError: the disk fails.

        """
        try:
            while (complete := self._next_file(run, stopped)) is not None:
                schema = parquet.schema_of(self._place)
                for each in publications_of(self._place, schema, complete.from_row, self.reader.since_us):
                    if self._last_row is not None and each.row > self._last_row:
                        return
                    yield each
        finally:
            self._drop()

    def _next_file(self, run: FetchRun, stopped: Callable[[], bool]) -> FileComplete | None:
        """Wait for one; None if there is none before the end."""
        self._ready = None
        run.run(lambda: stopped() or self._ready is not None or self._is_past_end)
        return self._ready

    def take(self, reader: TableReader, event: ReadEvent, now_us: int) -> None:
        """Take what the reader says; `now_us` is not needed."""
        if self._last_row is None:
            self._last_row = reader.received
        if isinstance(event, FileBegins):
            self._drop()
            self._is_past_end = event.file.first_row > self._last_row
            self._incoming = IncomingFile(self._place)
        elif isinstance(event, FileAbandoned):
            self._drop()
        elif self._incoming is not None and isinstance(event, PartReceived):
            self._incoming.take(event)
        elif self._incoming is not None and isinstance(event, FileComplete):
            self._incoming.complete(reader.feed, reader.table, event.file)
            self._ready = event
        elif isinstance(event, RowsGone | AllRead):
            self._is_past_end = reader.next_row > self._last_row
        elif not isinstance(event, PartReceived | FileComplete):
            assert_never(event)

    def compact(self, now_us: int) -> int:  # what a run asks of those that keep files
        """Nothing is kept. Returns 0."""
        return 0

    def _drop(self) -> None:
        if self._incoming is not None:
            self._incoming.discard()
            self._incoming = None
