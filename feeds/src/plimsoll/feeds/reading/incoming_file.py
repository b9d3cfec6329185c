"""A file of a feed while it is received: its parts in any order, and the check that it is what its recorder lists."""

from __future__ import annotations

from pathlib import Path

from plimsoll.core.protocol import messages as msg
from plimsoll.feeds import parquet
from plimsoll.feeds.commit_log import Table
from plimsoll.feeds.reading.table_reader import FeedReadError, PartReceived


class IncomingFile:
    """Is written at `path`. Raises OSError: the disk fails."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("wb")

    def take(self, part: PartReceived) -> None:
        self._file.seek(part.offset)
        self._file.write(part.content)

    def complete(self, feed: str, table: Table, item: msg.FeedFileItem) -> None:
        """Close it, once all parts have come.

        Raises:
            FeedReadError: its rows are not where the recorder says; they would be lost or repeated silently.

        """
        self._file.close()
        rows = f"{table} {item.first_row} to {item.last_row}"
        try:
            rows_found, first, last = parquet.row_range(self.path)
        except ValueError as error:
            raise FeedReadError(f"the file of {feed} with {rows} is damaged: {error}") from error
        if (rows_found, first) != (item.rows, item.first_row) or last > item.last_row:
            found = f"{rows_found} rows, {first} to {last}"
            raise FeedReadError(f"the file of {feed} with {rows} has {found}: read it from its folder")

    def close(self) -> None:
        """Leave it as it is."""
        self._file.close()

    def discard(self) -> None:
        self._file.close()
        self.path.unlink(missing_ok=True)
