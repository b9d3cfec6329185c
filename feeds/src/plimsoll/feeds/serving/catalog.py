"""What of a dataset can be read: its committed files by their rows, as of one commit. A frozen value."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from plimsoll.core.protocol import messages as msg
from plimsoll.feeds.commit_log import TABLES, FeedFile, FeedState, Table


@dataclass(frozen=True)
class FeedCatalog:
    """The files of a feed by table, in the order of their rows, and how far the feed had come."""

    feed: str
    dataset: str
    subscription: str
    received: int
    gaps: int
    expired_to: Mapping[Table, int]
    tables: Mapping[Table, tuple[FeedFile, ...]]

    @classmethod
    def of(cls, feed: str, state: FeedState) -> FeedCatalog:
        """What the commits of a dataset say."""
        last = state.last
        return cls(
            feed=feed, dataset=last.dataset if last is not None else "",
            subscription=last.subscription if last is not None else "",
            received=last.counts.received if last is not None else 0, gaps=last.counts.gaps if last is not None else 0,
            expired_to={table: state.expired_to(table) for table in TABLES},
            tables={table: tuple(state.table(table)) for table in TABLES},
        )  # fmt: skip

    @cached_property
    def _last_rows(self) -> Mapping[Table, list[int]]:
        return {table: [file.last_row for file in files] for table, files in self.tables.items()}

    def page(self, request: msg.ListFeedFiles) -> msg.FeedFilesPage:
        """The first files that hold rows from the one asked for on."""
        files = self.tables[request.table]
        start = bisect_left(self._last_rows[request.table], request.from_row)
        items = [
            msg.FeedFileItem(each.first_row, each.last_row, each.rows, each.size_bytes, each.first_us, each.last_us)
            for each in files[start : start + msg.FILES_AT_MOST]
        ]
        return msg.FeedFilesPage(
            request.id, self.dataset, self.subscription, self.received, self.gaps, self.expired_to[request.table],
            items, start + len(items) < len(files),
        )  # fmt: skip

    def file(self, request: msg.ReadFeedFile) -> FeedFile | None:
        """The file with exactly these rows; None if it is gone."""
        files = self.tables[request.table]
        index = bisect_left(self._last_rows[request.table], request.last_row)
        if self.dataset != request.dataset or index == len(files):
            return None
        found = files[index]
        return found if (found.first_row, found.last_row) == (request.first_row, request.last_row) else None
