"""Rows of feeds as Parquet, and back. Only this module of the room imports pyarrow."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from plimsoll.core.spec.types.feed import RESERVED_COLUMNS, ColumnType
from plimsoll.feeds.object_path import DatasetPath
from plimsoll.feeds.schema import FeedColumn, FeedSchema

COMPRESSION: Final = "zstd"
READ_ROWS: Final = 4096

TYPES: Final[Mapping[ColumnType, pa.DataType]] = {
    "String": pa.string(),
    "Integer": pa.int64(),
    "Number": pa.float64(),
    "Boolean": pa.bool_(),
}
_TIME: Final = pa.timestamp("us", tz="UTC")
_IDENTITY: Final = (
    ("_row", pa.int64()), ("_publisher", pa.string()), ("_incarnation", pa.int64()), ("_seq", pa.int64()),
    ("_head", pa.string()), ("_head_epoch", pa.int64()), ("_offset", pa.int64()), ("_sent", _TIME),
    ("_recorded", _TIME),
)  # fmt: skip


@dataclass(frozen=True)
class FileRows:
    """What a file has. Times are of recording, in microseconds since 1970."""

    first_row: int
    last_row: int
    rows: int
    size_bytes: int
    first_us: int
    last_us: int


def rows_schema(schema: FeedSchema) -> pa.Schema:
    """The columns of the rows of a feed: its attributes, then the publication's identity, times and payload."""
    attributes = [pa.field(each.name, TYPES[each.type], nullable=not each.required) for each in schema.columns]
    return pa.schema([*attributes, *_identity_fields(), pa.field("_payload", pa.binary(), nullable=False)])


def dead_letters_schema() -> pa.Schema:
    """The columns of publications that did not fit. `_attributes` is a JSON object."""
    text = pa.string()
    more = [pa.field("_reason", text, nullable=False), pa.field("_attributes", text, nullable=False)]
    return pa.schema([*more, *_identity_fields(), pa.field("_payload", pa.binary(), nullable=False)])


def _identity_fields() -> list[pa.Field]:
    return [pa.field(name, kind, nullable=False) for name, kind in _IDENTITY]


def write_rows(path: DatasetPath, schema: pa.Schema, rows: Sequence[Mapping[str, Any]]) -> int:
    """Write rows to a file and sync it; returns its size in bytes. Raises OSError."""
    arrays = [pa.array([row.get(each.name) for row in rows], each.type) for each in schema]
    return _write(path, schema, iter([pa.Table.from_arrays(arrays, schema=schema)]))


def merge_files(path: DatasetPath, sources: Sequence[DatasetPath]) -> int:
    """Write the rows of files of one schema, in their order, to one file; returns its size in bytes. Raises OSError."""
    with pq.ParquetFile(readable(sources[0])) as first:
        schema = first.schema_arrow
    return _write(path, schema, (table for source in sources for table in _tables(source)))


def read_rows(path: DatasetPath) -> Iterator[dict[str, Any]]:
    """The rows of a file, in their order. Times are integers, in microseconds since 1970."""
    for table in _tables(path):
        for name in ("_sent", "_recorded"):
            index = table.schema.get_field_index(name)
            table = table.set_column(index, name, table.column(name).cast(pa.int64()))
        yield from table.to_pylist()


def row_range(path: Path) -> tuple[int, int, int]:
    """How many rows a file has, and the numbers of the first and the last.

    Raises:
        ValueError: it is not a file of a feed, or its rows are not in order.

    """
    try:
        with pq.ParquetFile(path) as file:
            numbers = file.read(columns=["_row"]).column("_row").combine_chunks()
        is_rising = pc.all(pc.less(numbers[:-1], numbers[1:]), min_count=0).as_py()
    except (pa.ArrowException, KeyError, OSError) as error:
        raise ValueError(f"it is not Parquet of a feed: {str(error).splitlines()[0]}") from error
    if not len(numbers) or not is_rising:
        raise ValueError("its rows are not in order")
    return len(numbers), numbers[0].as_py(), numbers[-1].as_py()


def keep_rows(path: Path, source: Path, from_row: int, since_us: int) -> FileRows | None:
    """Write those rows of a file that have this number or a higher one, and were recorded since; None: there are none.

    Raises OSError.
    """
    found: list[tuple[int, int, int, int, int]] = []

    def kept() -> Iterator[pa.Table]:
        for table in _tables(source):
            part = table.filter(_wanted(table, from_row, since_us))
            if part.num_rows:
                rows = pc.min_max(part.column("_row")).as_py()
                times = pc.min_max(part.column("_recorded").cast(pa.int64())).as_py()
                found.append((rows["min"], rows["max"], part.num_rows, times["min"], times["max"]))
                yield part

    with pq.ParquetFile(source) as file:
        schema = file.schema_arrow
    size = _write(path, schema, kept())
    if not found:
        path.unlink()
        return None
    firsts, lasts, counts, earliest, latest = zip(*found, strict=True)
    return FileRows(firsts[0], lasts[-1], sum(counts), size, min(earliest), max(latest))


def _wanted(table: pa.Table, from_row: int, since_us: int) -> pa.ChunkedArray:
    recent = pc.greater_equal(table.column("_recorded").cast(pa.int64()), since_us)
    return pc.and_(pc.greater_equal(table.column("_row"), from_row), recent)


def schema_of(path: Path) -> FeedSchema:
    """The schema of a feed, from a file with rows of it."""
    with pq.ParquetFile(path) as file:
        arrow = file.schema_arrow
    names = {kind: name for name, kind in TYPES.items()}
    columns = [
        FeedColumn(each.name, names[each.type], required=not each.nullable)
        for each in arrow
        if each.name not in RESERVED_COLUMNS
    ]
    return FeedSchema(tuple(columns))


def readable(path: DatasetPath) -> Path | pa.BufferReader:
    """What pyarrow reads a file from: an object is fetched as a whole. Raises FileNotFoundError."""
    return path if isinstance(path, Path) else pa.BufferReader(path.read_bytes())


def _tables(path: DatasetPath) -> Iterator[pa.Table]:
    with pq.ParquetFile(readable(path)) as file:
        for batch in file.iter_batches(READ_ROWS):
            yield pa.Table.from_batches([batch])


def _write(path: DatasetPath, schema: pa.Schema, tables: Iterator[pa.Table]) -> int:
    if not isinstance(path, Path):
        content = io.BytesIO()
        _fill(content, schema, tables)
        path.write_bytes(content.getvalue())
        return len(content.getvalue())
    with path.open("wb") as file:
        _fill(file, schema, tables)
        file.flush()
        os.fsync(file.fileno())
        return file.tell()


def _fill(file: BinaryIO, schema: pa.Schema, tables: Iterator[pa.Table]) -> None:
    with pq.ParquetWriter(file, schema, compression=COMPRESSION) as writer:
        for table in tables:
            writer.write_table(table)
