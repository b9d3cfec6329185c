"""The rows of a feed's dataset by number, whatever files they are in now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from plimsoll.channels.batch import RowCounts, RowRange
from plimsoll.feeds import parquet
from plimsoll.feeds.commit_log import (
    STAGING,
    FeedDatasetError,
    FeedFile,
    FeedState,
    KnownCommits,
    Table,
    read_last_commit,
    read_state,
)
from plimsoll.feeds.object_path import DatasetPath
from plimsoll.feeds.schema import FeedSchema

ATTEMPTS: Final = 5
"""How often files are looked up again that compaction has replaced meanwhile."""


def feed_schema(root: DatasetPath) -> FeedSchema | None:
    """The schema of a feed's dataset; None if it has none yet. Raises FeedDatasetError."""
    last = read_last_commit(root)
    return last.schema if last is not None else None


class FeedEnd(NamedTuple):
    """The newest row of a feed, dead letters included: its number, and the name of the dataset that numbers it.

    The name is empty if its recorder was of an earlier version.
    """

    row: int = 0
    dataset: str = ""


def feed_end(root: DatasetPath, known: KnownCommits | None = None) -> FeedEnd | None:
    """Where a feed ends; None for a dataset that is still to be made.

    `known`: its commits that were read before, here and below.

    Raises:
        FeedDatasetError: its newest commit cannot be read.

    """
    last = read_last_commit(root, known)
    return FeedEnd(last.counts.received, last.dataset) if last is not None else None


def read_rows(
    root: DatasetPath, wanted: RowRange, known: KnownCommits | None = None, dataset: str = ""
) -> tuple[pa.Table, RowCounts]:
    """The rows of a range that fit the schema, and what became of all of the range.

    `dataset`: the name of the dataset that numbers them; empty: whichever there is.

    Raises:
        FeedDatasetError: there is no dataset, or another one, or its files change too fast.

    """
    for _ in range(ATTEMPTS):
        state = read_state(root, known)
        if dataset and state.last is not None and state.last.dataset != dataset:
            raise FeedDatasetError(f"{root}: the feed was deleted and recorded again while it was read")
        try:
            rows = _read(root, state, "rows", wanted)
            dead = _read(root, state, "dead-letters", wanted).num_rows
        except FileNotFoundError:
            continue  # merged or expired meanwhile
        late = wanted.count - rows.num_rows - dead
        return rows, RowCounts(wanted.count, rows.num_rows, late, dead)
    raise FeedDatasetError(f"{root}: its files change too fast to be read")


def _read(root: DatasetPath, state: FeedState, table: Table, wanted: RowRange) -> pa.Table:
    schema = state.last.schema if state.last is not None and state.last.schema is not None else FeedSchema(())
    kind = parquet.rows_schema(schema) if table == "rows" else parquet.dead_letters_schema()
    parts = []
    for file in files_of(state.table(table), wanted):
        found = _table(parquet.readable(_place(root, file)), kind)
        numbers = found.column("_row")
        is_wanted = pc.and_(pc.greater_equal(numbers, wanted.first), pc.less_equal(numbers, wanted.last))
        parts.append(found.filter(is_wanted))
    return pa.concat_tables(parts) if parts else kind.empty_table()


def _table(source: Any, kind: pa.Schema) -> pa.Table:
    """The rows of a file in these columns; those that it has not are null.

    Arrow's datasets would do the same, at 30 MB more in each process that reads.
    """
    with pq.ParquetFile(source) as file:
        found = file.read()
    columns = [
        found.column(each.name).cast(each.type) if each.name in found.column_names else pa.nulls(len(found), each.type)
        for each in kind
    ]
    return pa.Table.from_arrays(columns, schema=kind)


def files_of(files: Sequence[FeedFile], wanted: RowRange) -> list[FeedFile]:
    """The files of a table, in the order of recording, that may have rows of a range: none reaches into the next."""
    found = []
    for index, file in enumerate(files):
        ends = files[index + 1].first_row - 1 if index + 1 < len(files) else wanted.last
        if wanted.count and file.first_row <= wanted.last and ends >= wanted.first:
            found.append(file)
    return found


def oldest_sent_us(tables: Iterable[pa.Table]) -> int | None:
    """When the oldest row of these was sent, in microseconds since 1970; None without a row."""
    oldest = [pc.min(each.column("_sent").cast(pa.int64())).as_py() for each in tables if each.num_rows]
    return min(oldest, default=None)


class KeptRows(NamedTuple):
    """The rows that a feed keeps: its files, and since when rows are wanted, in microseconds since 1970; None: all."""

    root: DatasetPath
    schema: FeedSchema
    files: Sequence[FeedFile]
    since_us: int | None = None

    def places(self) -> list[DatasetPath]:
        """Where its files are now."""
        return [_place(self.root, each) for each in self.files]


def kept_rows(
    root: DatasetPath, schema: FeedSchema, since_us: int | None, known: KnownCommits | None = None
) -> KeptRows:
    """All rows of a feed, or those recorded since then. Raises FeedDatasetError."""
    files = read_state(root, known).table("rows")
    return KeptRows(root, schema, [each for each in files if since_us is None or each.last_us >= since_us], since_us)


def _place(root: DatasetPath, file: FeedFile) -> DatasetPath:
    path, staged = root / file.path, root / STAGING / file.staged_name
    return staged if not path.exists() and staged.exists() else path
