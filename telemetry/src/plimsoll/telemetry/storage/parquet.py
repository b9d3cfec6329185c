"""The Arrow schema, and rows as Parquet files. Only this module imports pyarrow."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from plimsoll.telemetry.schema import MAJOR, TableRow, TelemetryColumn, TelemetryTable

COMPRESSION: Final = "zstd"
PARTIAL: Final = ".partial"
VERSION_KEY: Final = b"plimsoll.schema"

_SCALARS: Final = {
    "int32": pa.int32(), "int64": pa.int64(), "float64": pa.float64(), "string": pa.string(), "bool": pa.bool_(),
}  # fmt: skip


class ParquetFileError(ValueError):
    """A file of an unknown table or version; says which."""


@lru_cache
def arrow_schema(table: TelemetryTable) -> pa.Schema:
    """Columns with their units and meanings; the metadata names table and version."""
    return pa.schema([_arrow_field(field) for field in table.fields], {VERSION_KEY: file_version(table)})


def file_version(table: TelemetryTable) -> bytes:
    """The metadata of a file."""
    return f"plimsoll.{table.name}/{MAJOR}".encode()


def write_values(path: Path, table: TelemetryTable, rows: Sequence[TableRow]) -> int:
    """Write rows as one Parquet file, which appears at `path` whole or not at all; returns its size in bytes.

    A row has the values of the table's columns in their order.

    Raises:
        OSError: the file could not be written; the partial file is removed.
        ValueError, TypeError: a row is not of the table.

    """
    columns = zip(*rows, strict=True) if rows else ((),) * len(table.fields)
    kinds = arrow_schema(table)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, kinds, strict=True)]
    partial = path.with_name(f".{path.name}{PARTIAL}")  # readers of folders skip names with a dot
    try:
        with partial.open("wb") as file:
            pq.write_table(pa.Table.from_arrays(arrays, schema=kinds), file, compression=COMPRESSION)
            file.flush()
            os.fsync(file.fileno())
        size = partial.stat().st_size
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    return size


def read_rows(path: Path, table: TelemetryTable, names: Iterable[str] | None = None) -> list[dict[str, Any]]:
    """The rows of a file, or some of their columns. Columns that the file is too old to have are null.

    Raises:
        ParquetFileError: it is not Parquet, or of another table or major version.

    """
    try:
        with pq.ParquetFile(path) as file:
            found = (file.schema_arrow.metadata or {}).get(VERSION_KEY, b"")
            if found != file_version(table):
                raise ParquetFileError(
                    f"{path}: holds {found.decode() or 'something else'}, not {file_version(table).decode()}"
                )
            wanted = list(table.names if names is None else names)
            there = [name for name in wanted if name in file.schema_arrow.names]
            rows: list[dict[str, Any]] = file.read(columns=there).to_pylist()
    except pa.ArrowInvalid as error:
        raise ParquetFileError(f"{path}: {error}") from error
    absent: dict[str, Any] = dict.fromkeys(set(wanted) - set(there))
    return [{**absent, **row} for row in rows] if absent else rows


def _arrow_field(field: TelemetryColumn) -> pa.Field:
    about = {"unit": field.unit, "about": field.about}
    return pa.field(field.name, _arrow_type(field), nullable=field.nullable, metadata=about)


def _arrow_type(field: TelemetryColumn) -> pa.DataType:
    if isinstance(field.type, str):
        return _SCALARS[field.type]
    inner = [each for each in field.type if isinstance(each, TelemetryColumn)]
    return pa.list_(pa.struct([_arrow_field(each) for each in inner]) if inner else pa.string())
