"""A copy of a feed's dataset in a folder of one's own: a dataset itself, with commits, which grows by what is read.

Each file of the feed comes in one commit, together with the row up to which the copy has its table. So a copy that is
interrupted goes on at its row, and no row comes twice: of a file that has been merged meanwhile, only the rows that the
copy lacks are kept.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any, Final, assert_never

from plimsoll.feeds import parquet
from plimsoll.feeds.commit_log import (
    TABLES,
    CommitLog,
    FeedCommit,
    FeedCounts,
    FeedDatasetError,
    FeedFile,
    FeedState,
    Table,
    sync_file,
)
from plimsoll.feeds.compaction import HOUR_US, compact, file_name, hour_folder
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

INCOMING: Final = "incoming"
"""How the files that are being received begin; the commit log deletes what is left of them."""


class DatasetCopy:
    """The copy in a folder, open for writing by one process. `since_us`: rows recorded before are left out.

    `now_us` is microseconds since 1970.

    Raises:
        FeedDatasetError: another process writes it, or the folder holds something else.
        OSError: the disk fails.

    """

    remedy: Final = "the copy keeps what it has, and the next fetch goes on"

    def __init__(self, root: Path, feed: str, since_us: int = 0) -> None:
        self._log = CommitLog(root)
        self._feed, self._since_us = feed, since_us
        self._incoming: dict[Table, IncomingFile] = {}
        last = self._log.state.last
        if last is not None and last.copy_of != feed:
            self._log.close()
            what = f"a copy of the feed {last.copy_of}" if last.copy_of else "a dataset that is recorded here"
            raise FeedDatasetError(f"{root} is {what}, not a copy of {feed}: choose another folder with --to")

    def close(self) -> None:
        """Let another process write; a file that was not complete is received again."""
        for file in self._incoming.values():
            file.close()
        self._log.close()

    @property
    def counts(self) -> FeedCounts:
        """Rows and dead letters that the copy has been given."""
        last = self._log.state.last
        return FeedCounts() if last is None else last.counts

    @property
    def state(self) -> FeedState:
        """The files of the copy."""
        return self._log.state

    @property
    def is_new(self) -> bool:
        return self._log.state.last is None

    def copied_to(self, table: Table) -> int:
        """The row of the feed up to which the copy has this table."""
        last = self._log.state.last
        return 0 if last is None else last.copied_to.get(table, 0)

    def readers(self, from_row: int = 1) -> list[TableReader]:
        """What reads on where the copy ends, table by table; a new copy begins at `from_row`."""
        last, numbers = self._log.state.last, count(1)
        dataset = "" if last is None else last.dataset
        return [
            TableReader(
                self._feed, table, max(from_row, self.copied_to(table) + 1), dataset, self._since_us, numbers=numbers
            )
            for table in TABLES
        ]

    def take(self, reader: TableReader, event: ReadEvent, now_us: int) -> None:
        """Take what a reader says.

        Raises:
            FeedReadError: what came is not what its recorder said.

        """
        table = reader.table
        if isinstance(event, FileBegins | FileAbandoned):
            self._drop(table)
            if isinstance(event, FileBegins):
                self._incoming[table] = IncomingFile(self._log_path(table))
        elif isinstance(event, PartReceived):
            self._incoming[table].take(event)
        elif isinstance(event, FileComplete):
            self._complete(reader, event, now_us)
        elif isinstance(event, RowsGone):
            text = f"{table} {event.first} to {event.last}: retention has deleted them before they were read"
            self._commit(reader, now_us, event.last, gaps=(text,))
        elif isinstance(event, AllRead):
            if self.is_new:
                self._commit(reader, now_us, 0)
        else:
            assert_never(event)

    def compact(self, now_us: int) -> int:
        """Merge small files; returns how many became one."""
        return 0 if self.is_new else compact(self._log, now_us)

    def _log_path(self, table: Table) -> Path:
        staged = self._log.staged(f"{INCOMING}-{table}")
        if not isinstance(staged, Path):
            raise AssertionError("a copy is in a folder")
        return staged

    def _drop(self, table: Table) -> None:
        if (file := self._incoming.pop(table, None)) is not None:
            file.discard()

    def _complete(self, reader: TableReader, event: FileComplete, now_us: int) -> None:
        table, item, incoming = reader.table, event.file, self._incoming[reader.table]
        incoming.complete(self._feed, table, item)
        source = incoming.path
        folder = f"{table}/{hour_folder(item.first_us // HOUR_US)}"
        name = file_name(table, self._log.next_number, max(item.first_row, event.from_row), "")
        staged = self._log.staged(name)
        if not isinstance(staged, Path):
            raise AssertionError("a copy is in a folder")
        if item.first_row >= event.from_row and item.first_us >= self._since_us:
            source.replace(staged)
            sync_file(staged)
            kept: parquet.FileRows | None = parquet.FileRows(
                item.first_row, item.last_row, item.rows, item.size_bytes, item.first_us, item.last_us
            )
        else:
            kept = parquet.keep_rows(staged, source, event.from_row, self._since_us)
        added = []
        if kept is not None:
            added = [
                FeedFile(
                    f"{folder}/{name}", table, kept.rows, kept.size_bytes, kept.first_row, kept.first_us, kept.last_us,
                    kept.last_row,
                )
            ]  # fmt: skip
        self._commit(reader, now_us, item.last_row, added=tuple(added), staged=staged)
        self._drop(table)

    def _commit(
        self,
        reader: TableReader,
        now_us: int,
        copied_to: int,
        *,
        added: tuple[FeedFile, ...] = (),
        gaps: tuple[str, ...] = (),
        staged: Path | None = None,
    ) -> None:
        last, table = self._log.state.last, reader.table
        before = self.counts
        rows, dead = (sum(each.rows for each in added if each.table == name) for name in TABLES)
        schema = last.schema if last is not None else None
        if schema is None and rows and staged is not None:
            schema = parquet.schema_of(staged)
        marks: dict[Table, int] = dict(last.copied_to) if last is not None else {}
        changes: dict[str, Any] = {
            "added": added, "gaps": gaps, "schema": schema,
            "counts": FeedCounts(
                received=before.received + rows + dead, rows=before.rows + rows,
                dead_letters=before.dead_letters + dead, gaps=reader.gaps,
            ),
            "copied_to": {**marks, table: max(copied_to, marks.get(table, 0))},
        }  # fmt: skip
        self._log.commit(
            FeedCommit(
                number=self._log.next_number,
                at_us=now_us,
                subscription=reader.subscription,
                dataset=reader.dataset,
                copy_of=self._feed,
                **changes,
            )
        )
