"""Raw telemetry as jobs read it: the columns of the shared schema, and whether each row is valid.

Invalid rows must be counted, so `valid` is a column and not a filter.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere
from pyspark.sql.types import LongType, StructType

from plimsoll.sparkjobs import tables
from plimsoll.sparkjobs.job_errors import JobInputError
from plimsoll.telemetry.metric_statistics import NANO
from plimsoll.telemetry.schema import (
    EXPECTED,
    LOADS,
    MAJOR,
    METRICS,
    OUTCOMES,
    SKEW_SECONDS,
    ExpectedBrokers,
)

LARGEST_METRIC: Final = 9.2e9
"""Billionths of a larger metric would not fit into 63 bits; such a row is invalid."""
POINT_COLUMNS: Final = ("cluster", "broker", "role", "state", "epoch", "seq", "received_us", "collector", "at_us")


def loads_schema() -> StructType:
    """Columns of the table `loads`."""
    return tables.telemetry_columns(LOADS.fields)


def outcomes_schema() -> StructType:
    """Columns of the table `sessions`."""
    return tables.telemetry_columns(OUTCOMES.fields)


def read_files(spark: SparkSession, files: Sequence[str | Path], schema: StructType) -> DataFrame:
    """The rows of these Parquet files; without files, an empty frame."""
    if not files:
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).parquet(*map(str, files))


def finished_files(folder: Path) -> list[Path]:
    """The finished files of a collectors' folder; names of unfinished ones begin with a dot or underscore."""
    return sorted(path for path in folder.glob("*.parquet") if not path.name.startswith((".", "_")))


def is_valid(fleet: str) -> Column:
    """Whether a row is of this schema and fleet, complete, finite, and dated close to its receipt."""
    skew = int(SKEW_SECONDS * 1e6)
    rules = [
        F.col("schema") == MAJOR,
        F.col("fleet") == fleet,
        F.col("role").isin("head", "edge"),
        *(F.length(name) > 0 for name in ("cluster", "broker", "state", "collector")),
        *(F.col(name) >= low for name, low in (("epoch", 0), ("seq", 1))),
        F.abs(F.col("at_us") - F.col("received_us")) <= skew,
        *(F.abs(F.col(name)) <= LARGEST_METRIC for name in METRICS),  # NaN is greater than any number here
    ]
    met = rules[0]
    for rule in rules[1:]:
        met = met & rule
    return F.coalesce(met, F.lit(False))


def report_points(loads: DataFrame, fleet: str) -> DataFrame:
    """The input of aggregates: `valid`, POINT_COLUMNS, and METRICS in billionths (whole numbers, half to even).

    An invalid row keeps its cluster if it has one, and may have nulls.
    """
    # A value too large for `try_cast` is invalid anyway; testing it first would double the work for each metric.
    nanos = [F.rint(F.col(name) * F.lit(float(NANO))).try_cast(LongType()).alias(name) for name in METRICS]
    cluster = F.coalesce(F.col("cluster"), F.lit("")).alias("cluster")
    return loads.select(is_valid(fleet).alias("valid"), cluster, *POINT_COLUMNS[1:], *nanos)


def read_expected(folder: Path, fleet: str) -> dict[str, list[str]]:
    """The brokers of each cluster that should send reports; empty if the file does not exist.

    Raises:
        JobInputError: the file is of another fleet or schema, or cannot be read.

    """
    path = folder / EXPECTED
    if not path.exists():
        return {}
    try:
        expected = msgspec.json.decode(path.read_bytes(), type=ExpectedBrokers)
    except msgspec.MsgspecError as error:
        raise JobInputError(
            f"{path} does not list the expected brokers ({error}): delete it, and restart the first collector"
        ) from error
    if (expected.schema, expected.fleet) != (MAJOR, fleet):
        raise JobInputError(
            f"{path} is of fleet {expected.fleet}, schema {expected.schema}; expected {fleet}, {MAJOR}: check --fleet"
        )
    return expected.clusters
