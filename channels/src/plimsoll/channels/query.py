"""The query of a channel in Spark: its views, its check against their schemas, and one run for all parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FractionalType,
    IntegralType,
    LongType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from plimsoll.channels.config import ChannelDefinition, TableView
from plimsoll.channels.feed_rows import KeptRows
from plimsoll.channels.results import PAYLOAD_COLUMN
from plimsoll.channels.store_copies import StoreCopies
from plimsoll.channels.subscriptions import ParameterRow
from plimsoll.core.spec.types.channel import PARAMETERS_VIEW, RESULT_ATTRIBUTES
from plimsoll.core.spec.types.feed import ColumnType
from plimsoll.feeds import parquet
from plimsoll.feeds.object_path import ObjectPath, dataset_root, is_object_url
from plimsoll.feeds.schema import FeedSchema
from plimsoll.sparkjobs.job_errors import cause_of, is_java_gone, is_spark_error

COLUMN_TYPES: Final[Mapping[ColumnType, DataType]] = {
    "String": StringType(), "Integer": LongType(), "Number": DoubleType(), "Boolean": BooleanType(),
}  # fmt: skip
PUBLISHABLE: Final = (
    StringType, BooleanType, IntegralType, FractionalType, DecimalType, DateType, TimestampType, TimestampNTZType,
)  # fmt: skip
UNKEYED_PLANS: Final = ("CartesianProduct", "BroadcastNestedLoopJoin")
"""How Spark carries out a join without an equality."""
_PLACE: Final = re.compile(r"\bline (\d+),? ?(?:and )?pos(?:ition)? (\d+)")
_CHECK_SETTINGS: Final = {
    # Views are empty in a check, and Spark must not conclude from that how the query ends.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.PropagateEmptyRelation",
    "spark.sql.adaptive.enabled": "false",
}  # fmt: skip


class QueryError(Exception):
    """A query cannot be used; the text has line and column where Spark says. `is_unkeyed`: its cost is not bounded."""

    def __init__(self, text: str, *, is_unkeyed: bool = False) -> None:
        super().__init__(text)
        self.is_unkeyed = is_unkeyed


class TableError(Exception):
    """A table cannot be read now; says which, and why."""


class ChannelQuery:
    """One channel's query in a session of its own, so that views of channels do not meet.

    `copies`: of what it reads from object stores.
    """

    def __init__(self, spark: SparkSession, channel: ChannelDefinition, copies: StoreCopies) -> None:
        self._spark, self._channel, self._copies = spark.newSession(), channel, copies
        self._parameters = StructType(
            [StructField(each.name, COLUMN_TYPES[each.type], nullable=False) for each in channel.parameters]
        )

    def check(self, schemas: Mapping[str, FeedSchema]) -> None:
        """Analyse the query against the schemas of its feeds and tables, without reading a row of a feed.

        Raises:
            QueryError: it cannot be used.
            TableError: a table cannot be read.

        """
        for name, value in _CHECK_SETTINGS.items():
            self._spark.conf.set(name, value)
        try:
            _view(PARAMETERS_VIEW, self._spark.createDataFrame([], self._parameters))
            for feed in self._channel.feeds:
                empty = parquet.rows_schema(schemas[feed.feed]).empty_table()
                _view(feed.name, self._spark.createDataFrame(empty))
            for table in self._channel.tables:
                _view(table.name, self._table(self._spark, table))
            frame = self._spark.sql(self._channel.query)
            self._check_columns(frame.schema)
            plan = frame._jdf.queryExecution().sparkPlan().toString()
        except PySparkException as error:
            raise QueryError(located(error)) from error
        finally:
            for name in _CHECK_SETTINGS:
                self._spark.conf.unset(name)
        if not self._channel.allows_unkeyed and any(name in plan for name in UNKEYED_PLANS):
            text = "the query joins without an equality between columns: its cost is the product of the rows of both"
            raise QueryError(text, is_unkeyed=True)

    def _check_columns(self, schema: StructType) -> None:
        names = [each.name for each in schema.fields]
        types = {each.name: each.dataType for each in schema.fields}
        for name in names:
            if names.count(name) > 1:
                raise QueryError(f'the query returns two columns "{name}": give one another name')
            if name in RESULT_ATTRIBUTES:
                raise QueryError(f'every result has an attribute "{name}" of its own: rename this one')
        for parameter in self._channel.parameters:
            if parameter.name not in types:
                text = f'the query returns no column "{parameter.name}": it must return every parameter'
                raise QueryError(text)
            found = types[parameter.name]
            if not _is_of_type(found, parameter.type):
                text = f'column "{parameter.name}" is {found.simpleString()}, the parameter {parameter.type}: cast it'
                raise QueryError(text)
        for name, found in types.items():
            if name == PAYLOAD_COLUMN and isinstance(found, BinaryType | StringType):
                continue
            if not isinstance(found, PUBLISHABLE):
                text = f'column "{name}" is {found.simpleString()}, which no attribute can be: use to_json or a cast'
                raise QueryError(text)

    @property
    def session(self) -> SparkSession:
        """The session of this channel alone."""
        return self._spark

    def kinds(self, schemas: Mapping[str, FeedSchema]) -> dict[str, StructType]:
        """The columns of the feeds whose new rows it reads, as Spark has them."""
        return {
            feed: self._spark.createDataFrame(parquet.rows_schema(schemas[feed]).empty_table()).schema
            for feed in self._channel.new_feeds
        }

    def run(
        self, parameters: Iterable[ParameterRow], new_rows: DataFrame, all_rows: Mapping[str, KeptRows]
    ) -> list[dict[str, Any]]:
        """The rows of the query for a batch: its new rows, as `FeedSource` has them, and all that feeds keep, by view.

        It runs in the session of the new rows, which a streaming query has for itself.
        """
        spark = new_rows.sparkSession
        rows = sorted(parameters)
        columns = {field.name: [row[i] for row in rows] for i, field in enumerate(self._parameters.fields)}
        types = [(each.name, parquet.TYPES[each.type]) for each in self._channel.parameters]
        _view(PARAMETERS_VIEW, spark.createDataFrame(pa.table(columns, schema=pa.schema(types))))
        for feed in self._channel.feeds:
            if feed.is_new:
                own = F.col(f"`{feed.feed}`")
                _view(feed.name, new_rows.where(own.isNotNull()).select(f"`{feed.feed}`.*"))
            else:
                _view(feed.name, self._all_rows(spark, feed.name, all_rows[feed.name]))
        for table in self._channel.tables:
            _view(table.name, self._table(spark, table))
        found: list[dict[str, Any]] = spark.sql(self._channel.query).toArrow().to_pylist()
        return found

    def _all_rows(self, spark: SparkSession, view: str, rows: KeptRows) -> DataFrame:
        empty = spark.createDataFrame(parquet.rows_schema(rows.schema).empty_table())
        root = rows.root
        files = rows.places() if isinstance(root, Path) else self._copies.of_feed(view, root, rows.files)
        if not files:
            return empty
        frame = spark.read.schema(empty.schema).parquet(*map(str, files))
        return frame if rows.since_us is None else frame.where(F.unix_micros("_recorded") >= rows.since_us)

    def _table(self, spark: SparkSession, table: TableView) -> DataFrame:
        try:
            return self._read_table(spark, table)
        except Exception as error:
            if is_java_gone(error) or not is_spark_error(error):
                raise
            raise TableError(f"table {table.name}: {cause_of(error)}") from error

    def _read_table(self, spark: SparkSession, table: TableView) -> DataFrame:
        reader, path = spark.read, table.path
        if is_object_url(path):
            place = dataset_root(path)
            path = str(self._copies.of_table(table.name, place) if isinstance(place, ObjectPath) else place)
        if table.format == "Csv":
            return reader.csv(path, header=True, inferSchema=True)
        return reader.json(path) if table.format == "Json" else reader.parquet(path)


def _view(name: str, frame: DataFrame) -> None:
    frame.createOrReplaceTempView(name)


def _is_of_type(found: DataType, type_: ColumnType) -> bool:
    if isinstance(found, NullType):
        return False
    if type_ == "Number":
        return isinstance(found, IntegralType | FractionalType | DecimalType)
    return isinstance(found, {"String": StringType, "Integer": IntegralType, "Boolean": BooleanType}[type_])


def located(error: Exception) -> str:
    """Spark's message in one line, with line and column of the query, counted from 1, in front."""
    text = str(error)
    first = text.split("== SQL", 1)[0].split(";\n", 1)[0].split("\n'", 1)[0].replace("\n", " ").strip()
    place = _PLACE.search(text)
    if not isinstance(error, AnalysisException):
        return cause_of(error)
    if place is None:
        return first
    told = _PLACE.sub("", first).replace("()", "").rstrip("; ").strip()
    return f"line {place.group(1)}, column {int(place.group(2)) + 1}: {told}"
