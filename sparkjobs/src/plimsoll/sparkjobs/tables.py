"""Tables of jobs other than telemetry, and how they are read and written.

`subscribers` and `items` have the items of each subscriber. An item is a sample of a profile (PADRES 2006, 4.1):
publications that the same subscriptions match, with their rate. A subscriber's bit vector is the set of its items, and
an item that several subscribers share counts once.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from plimsoll.sparkjobs.job_errors import JobInputError
from plimsoll.telemetry.schema import TelemetryColumn

SUBSCRIBERS: Final = "subscriber STRING, broker STRING, items ARRAY<INT>"
"""The broker of each subscriber and the items that match its subscriptions, in any order and without duplicates."""
ITEMS: Final = "item INT, rate DOUBLE"
"""Publications per second of each item."""
BROKERS: Final = "broker STRING, capacity DOUBLE"
"""The load of a broker at utilisation 1, in the unit of the costs of a plan."""


class JobTableError(JobInputError):
    """A table does not exist, or lacks rows that another one refers to."""


_TYPES: Final[dict[str, DataType]] = {
    "int32": IntegerType(), "int64": LongType(), "float64": DoubleType(), "string": StringType(), "bool": BooleanType(),
}  # fmt: skip


def telemetry_columns(fields: Sequence[TelemetryColumn]) -> StructType:
    """Columns of telemetry as Spark reads them: all nullable. Made here, since Spark's parser takes 0.5 s to start."""
    return StructType([StructField(field.name, _spark_type(field)) for field in fields])


def _spark_type(field: TelemetryColumn) -> DataType:
    if isinstance(field.type, str):
        return _TYPES[field.type]
    inner = [each for each in field.type if isinstance(each, TelemetryColumn)]
    return ArrayType(telemetry_columns(inner) if inner else StringType())


def struct_type(columns: str) -> StructType:
    """The columns of a table from their DDL text. Needs a session, since Spark parses the text."""
    found = StructType.fromDDL(columns)
    if not isinstance(found, StructType):
        raise TypeError(f"not the columns of a table: {columns}")
    return found


def read_table(spark: SparkSession, path: str | Path, columns: str | StructType) -> DataFrame:
    """A folder or file of Parquet. Its columns are selected by name and not inferred.

    Raises:
        JobTableError: the path does not exist.

    """
    if not Path(path).exists():
        raise JobTableError(f"there is no table at {path}: docs/jobs.md says which tables the job reads")
    schema = struct_type(columns) if isinstance(columns, str) else columns
    return spark.read.schema(schema).parquet(str(path))


def items_from_bits(rows: DataFrame, bits: str = "bits") -> DataFrame:
    """Replace a bit vector (bytes, the first item in the lowest bit of the first byte) by `items`.

    Brokers send such vectors as `RowItem.bits` in PROFILE_REPLY.
    """
    byte = f"cast(conv(hex(substring(`{bits}`, cast(i div 8 as int) + 1, 1)), 16, 10) as int)"
    places = f"if(length(`{bits}`) = 0, cast(array() as array<int>), sequence(0, length(`{bits}`) * 8 - 1))"
    items = F.expr(f"filter({places}, i -> ({byte} & shiftleft(1, cast(i % 8 as int))) != 0)")
    return rows.withColumn("items", items).drop(bits)


def write_json(path: Path, value: object) -> None:
    """Replace the file atomically: a reader sees the old file or the new one, also after a crash."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with beside.open("wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(value), indent=1))
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
