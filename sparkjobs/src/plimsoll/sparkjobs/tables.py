"""The tables that jobs read and write beside telemetry itself, by column; and the ways between tables, files and plans.

`subscribers` and `items` say who takes what. An item is a sample of a profile (PADRES 2006, 4.1): publications that the
same subscriptions match, at so many a second. A subscriber's bit vector is then the set of its items, and what several
subscribers share counts once.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere
from pyspark.sql.types import StructType

SUBSCRIBERS: Final = "subscriber STRING, broker STRING, items ARRAY<INT>"
"""Who is served where, and which items match its subscriptions; `items` has no duplicates and any order."""
ITEMS: Final = "item INT, rate DOUBLE"
"""Publications per second of each item."""
BROKERS: Final = "broker STRING, capacity DOUBLE"
"""Load that a broker may carry at utilisation 1, in the unit of the costs that a plan is made with."""
RATES: Final = "publisher STRING, at_us BIGINT, publications_per_second DOUBLE"
"""What a publisher sent per interval, from `publisher_rates` of load reports."""


class JobTableError(ValueError):
    """A table is not there, or lacks what a job asks for."""


def struct_type(columns: str) -> StructType:
    """The columns of a table that is written as text. Needs a session, as Spark reads the text itself."""
    found = StructType.fromDDL(columns)
    if not isinstance(found, StructType):
        raise TypeError(f"not the columns of a table: {columns}")
    return found


def read_table(spark: SparkSession, path: str | Path, columns: str | StructType) -> DataFrame:
    """A folder or file of Parquet with these columns, which are asked for and never guessed.

    Raises:
        TableError: there is nothing at that path.

    """
    if not Path(path).exists():
        raise JobTableError(f"there is no table at {path}")
    schema = struct_type(columns) if isinstance(columns, str) else columns
    return spark.read.schema(schema).parquet(str(path))


def items_from_bits(rows: DataFrame, bits: str = "bits") -> DataFrame:
    """Replaces a bit vector (bytes, the first item in the lowest bit of the first byte) by `items`.

    Of the bytes of ProfileReply: `RowItem.bits`, as brokers send it.
    """
    byte = f"cast(conv(hex(substring(`{bits}`, cast(i div 8 as int) + 1, 1)), 16, 10) as int)"
    places = f"if(length(`{bits}`) = 0, cast(array() as array<int>), sequence(0, length(`{bits}`) * 8 - 1))"
    items = F.expr(f"filter({places}, i -> ({byte} & shiftleft(1, cast(i % 8 as int))) != 0)")
    return rows.withColumn("items", items).drop(bits)


def write_json(path: Path, value: object) -> None:
    """The whole file or none of it: written beside, flushed to disk, then put in place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with beside.open("wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(value), indent=1))
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
