"""`python -m plimsoll.sparkjobs audit`: compares due deliveries with actual ones, over tables of any size.

It joins accepted publications, subscriptions in force and deliveries (`audit_tables` describes the tables), and counts
losses, duplicates and disorder. The rules are those of `plimsoll.core.verify`, which audits a run in one process; its
oracle decides whether a filter matches. A delivery that may still have been in flight when its subscription ended is
counted as undecided. A delivery that may not have been due is not counted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere

from plimsoll.core.printable import printable_lines
from plimsoll.core.verify.oracle import FilterKey, filter_key, holds
from plimsoll.sparkjobs import audit_tables, tables
from plimsoll.sparkjobs.spark_session import make_spark_session

SUBSCRIBER_KEY: Final = ["subscriber", "incarnation"]
PUBLICATION_KEY: Final = ["publisher", "publisher_incarnation", "seq"]
DELIVERY_KEY: Final = [*SUBSCRIBER_KEY, *PUBLICATION_KEY]
ORIGIN_COLUMNS: Final = ["head", "head_epoch"]
ABSENT: Final = -1
"""The code of an attribute that a publication does not have."""
MATCH_COLUMNS: Final = "publisher STRING, publisher_incarnation BIGINT, seq BIGINT, predicates STRING"


def matching_publications(accepted: DataFrame, subscriptions: DataFrame) -> DataFrame:
    """MATCH_COLUMNS: each accepted publication with every distinct filter that matches it."""
    distinct = [row["predicates"] for row in subscriptions.select("predicates").distinct().collect()]
    asked = accepted.select("publisher", F.col("incarnation").alias("publisher_incarnation"), "seq", "attributes")
    return asked.mapInArrow(filter_matcher(sorted(distinct)), MATCH_COLUMNS)


def filter_matcher(predicates: Sequence[str]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Matches batches of publications by columns, with the audit's oracle: it uses only the operators' definition."""
    schema = audit_tables.arrow_schema(MATCH_COLUMNS)

    def match(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        filters = [(text, filter_key(msgspec.json.decode(text))) for text in predicates]
        for batch in batches:
            columns = AttributeColumns.of(batch.column("attributes").to_pylist())
            matched = [(columns.matching(rule), text) for text, rule in filters]
            rows = np.concatenate([rows for rows, _ in matched]) if matched else np.empty(0, np.int64)
            texts = pa.array([text for _, text in matched], pa.string())
            which = np.repeat(np.arange(len(matched)), [len(rows) for rows, _ in matched])
            keys = batch.select(schema.names[:-1]).take(pa.array(rows))
            yield pa.RecordBatch.from_arrays([*keys.columns, texts.take(pa.array(which))], schema=schema)

    return match


class AttributeColumns:
    """The attributes of a batch of publications: for each name its distinct values, and their rows.

    A predicate is evaluated once for each distinct value of its attribute, and not for each publication.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: dict[str, list[Any]] = {}
        self._codes: dict[str, np.ndarray[Any, np.dtype[np.int32]]] = {}
        self._found: dict[str, np.ndarray[Any, np.dtype[np.bool_]]] = {}

    @classmethod
    def of(cls, attributes: Sequence[str]) -> AttributeColumns:
        """From the attributes of each publication as JSON."""
        columns = cls(len(attributes))
        numbers: dict[str, dict[tuple[type, Any], int]] = {}
        decoded = msgspec.json.decode(f"[{','.join(attributes)}]")
        for row, one in enumerate(decoded):
            for name, value in one.items():
                if name not in numbers:
                    numbers[name] = {}
                    columns._codes[name] = np.full(columns._size, ABSENT, dtype=np.int32)
                known = numbers[name]
                columns._codes[name][row] = known.setdefault((type(value), value), len(known))
        columns._values = {name: [value for _, value in known] for name, known in numbers.items()}
        return columns

    def matching(self, rule: FilterKey) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The rows of the publications that match every predicate, ascending."""
        rows: np.ndarray[Any, np.dtype[np.int64]] = np.arange(self._size, dtype=np.int64)
        for predicate in sorted(rule, key=lambda each: each[1] != "="):  # an equality leaves the fewest
            if not len(rows):
                break
            rows = rows[self._holds(*predicate)[rows]]
        return rows

    def _holds(self, name: str, operator: str, wanted: Any) -> np.ndarray[Any, np.dtype[np.bool_]]:
        key = repr((name, operator, wanted))  # 1, 1.0 and True are equal, and different constants
        if key not in self._found:
            if name not in self._codes:
                self._found[key] = np.zeros(self._size, dtype=np.bool_)
            else:
                of_values = [holds(operator, value, wanted) for value in self._values[name]]
                # The last place is that of publications without the attribute.
                self._found[key] = np.array([*of_values, False], dtype=np.bool_)[self._codes[name]]
        return self._found[key]


def due_deliveries(accepted: DataFrame, subscriptions: DataFrame, matched: DataFrame) -> DataFrame:
    """DELIVERY_KEY, origin, due_until: the deliveries that are due, and until when each may have been in flight."""
    items = accepted.withColumnRenamed("incarnation", "publisher_incarnation").drop("attributes")
    in_force = (F.col("at") >= F.col("live_from")) & (F.col("at") < F.col("live_until"))
    reached = F.col("head").isNull() & (F.size("not_from") == 0) | ~F.array_contains("not_from", F.col("head"))
    return (
        matched.join(subscriptions, "predicates")
        .join(items, PUBLICATION_KEY)
        .where(in_force & F.coalesce(reached, F.lit(False)))
        .groupBy(*DELIVERY_KEY, *ORIGIN_COLUMNS, "origin_offset")
        .agg(F.max("due_until").alias("due_until"))
    )


def first_deliveries(delivered: DataFrame, accepted: DataFrame) -> DataFrame:
    """DELIVERY_KEY, place, at, copies, origin: each delivery's first time, and the number of its copies."""
    items = accepted.select(
        "publisher", F.col("incarnation").alias("publisher_incarnation"), "seq", *ORIGIN_COLUMNS, "origin_offset",
        F.col("at").alias("accepted_at"),
    )  # fmt: skip
    first = delivered.groupBy(*DELIVERY_KEY).agg(
        F.min("place").alias("place"), F.min_by("at", "place").alias("at"), F.count(F.lit(1)).alias("copies")
    )
    return first.join(items, PUBLICATION_KEY, "left")


def reordered_deliveries(came: DataFrame) -> DataFrame:
    """Deliveries that came after a later one of the same origin, or of the same publisher at that origin."""
    by_origin = (
        Window.partitionBy(*SUBSCRIBER_KEY, *ORIGIN_COLUMNS).orderBy("place").rowsBetween(Window.unboundedPreceding, -1)
    )
    by_publisher = (
        Window.partitionBy(*SUBSCRIBER_KEY, *ORIGIN_COLUMNS, "publisher", "publisher_incarnation")
        .orderBy("place")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    return (
        came.where("head is not null")
        .withColumn("_offset", F.max("origin_offset").over(by_origin))
        .withColumn("_seq", F.max("seq").over(by_publisher))
        .where("origin_offset <= _offset or seq <= _seq")
    )


def unwanted_deliveries(came: DataFrame, subscriptions: DataFrame, matched: DataFrame) -> DataFrame:
    """Deliveries that match no subscription of their time."""
    lives = subscriptions.select(*SUBSCRIBER_KEY, "predicates", "requested_at", "forgotten_at").distinct()
    soon = F.least("at", F.coalesce("accepted_at", F.lit(float("inf"))))
    could = (
        matched.join(lives, "predicates")
        .join(came.select(*DELIVERY_KEY, "at", "accepted_at"), DELIVERY_KEY)
        .where((F.col("requested_at") <= F.col("at")) & (soon <= F.col("forgotten_at")))
        .select(*DELIVERY_KEY)
        .distinct()
    )
    return came.join(could, DELIVERY_KEY, "left_anti")


def missing_deliveries(owed: DataFrame, came: DataFrame, gaps: DataFrame) -> DataFrame:
    """DELIVERY_KEY, origin, verdict of missing deliveries: `excused` by a reported gap, `lost`, or `undecided`.

    A missing delivery is undecided if it may still have been in flight when its subscription ended. It was not if a
    later delivery of the same origin had come before that: deliveries of an origin keep their order.
    """
    absent = owed.join(came.select(*DELIVERY_KEY), DELIVERY_KEY, "left_anti")
    reads = came.where("head is not null").select(
        *SUBSCRIBER_KEY, *ORIGIN_COLUMNS, "place", F.col("at").alias("came_at"), F.col("origin_offset").alias("reached")
    )
    reported = _excusing_gaps(gaps, reads)
    origin = [*SUBSCRIBER_KEY, *ORIGIN_COLUMNS]
    excused = (
        absent.join(reported, origin)
        .where("origin_offset <= last_offset and (reached is null or reached < origin_offset)")
        .select(*DELIVERY_KEY)
        .distinct()
        .withColumn("is_excused", F.lit(True))
    )
    overtaken = (
        absent.join(reads, origin)
        .where("came_at < due_until and reached > origin_offset")
        .select(*DELIVERY_KEY)
        .distinct()
        .withColumn("is_overtaken", F.lit(True))
    )
    verdict: Column = (
        F.when(F.col("is_excused"), "excused")
        .when((F.col("due_until") == float("inf")) | F.col("is_overtaken"), "lost")
        .otherwise("undecided")
    )
    decided = (
        absent.join(excused, DELIVERY_KEY, "left").join(overtaken, DELIVERY_KEY, "left").withColumn("verdict", verdict)
    )
    return decided.select(*DELIVERY_KEY, *ORIGIN_COLUMNS, "origin_offset", "verdict")


def _excusing_gaps(gaps: DataFrame, reads: DataFrame) -> DataFrame:
    """Each gap with the highest offset of its origin that was delivered before it."""
    before = reads.select(*SUBSCRIBER_KEY, *ORIGIN_COLUMNS, "place", "reached")
    keys = [*SUBSCRIBER_KEY, *ORIGIN_COLUMNS, "after", "last_offset"]
    inside = (F.col("g.after") > F.col("b.place")) & _columns_equal("g", "b", [*SUBSCRIBER_KEY, *ORIGIN_COLUMNS])
    joined = gaps.alias("g").join(before.alias("b"), inside, "left")
    return joined.groupBy(*(F.col(f"g.{key}").alias(key) for key in keys)).agg(F.max("b.reached").alias("reached"))


def _columns_equal(one: str, other: str, names: Sequence[str]) -> Column:
    equal = F.lit(True)
    for name in names:
        equal = equal & (F.col(f"{one}.{name}") == F.col(f"{other}.{name}"))
    return equal


def audit_counts(
    accepted: DataFrame, subscriptions: DataFrame, delivered: DataFrame, gaps: DataFrame
) -> tuple[dict[str, int], DataFrame]:
    """The counts, and the missing deliveries with their verdicts."""
    matched = matching_publications(accepted, subscriptions).cache()
    owed = due_deliveries(accepted, subscriptions, matched).cache()
    came = first_deliveries(delivered, accepted).cache()
    absent = missing_deliveries(owed, came, gaps).cache()
    verdicts = {row["verdict"]: row["count"] for row in absent.groupBy("verdict").count().collect()}
    lost, excused = verdicts.get("lost", 0), verdicts.get("excused", 0)
    arrived = owed.join(came.select(*DELIVERY_KEY), DELIVERY_KEY, "left_semi").count()
    copies = came.agg(F.sum(F.col("copies") - 1)).first()
    stray = unwanted_deliveries(came, subscriptions, matched).count()
    counts = {
        "accepted": accepted.count(),
        "expected": arrived + lost + excused,
        "delivered": came.count() - stray,
        "lost": lost,
        "excused": excused,
        "undecided": verdicts.get("undecided", 0),
        "duplicated": int(copies[0] or 0) if copies else 0,
        "reordered": reordered_deliveries(came).count(),
        "unwanted": stray,
    }
    return counts, absent


def run(spark: SparkSession, folder: Path, output: Path) -> dict[str, int]:
    """Read the tables below a folder; write `audit.json` and `missing` (Parquet)."""
    frames = [tables.read_table(spark, folder / name, columns) for name, columns in audit_tables.TABLES.items()]
    counts, absent = audit_counts(*frames)
    absent.write.mode("overwrite").parquet(str(output / "missing"))
    tables.write_json(output / "audit.json", counts)
    return counts


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m plimsoll.sparkjobs audit", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder of the tables accepted, subscriptions, delivered and gaps")
    parser.add_argument("output", type=Path, help="folder for audit.json and missing")
    asked = parser.parse_args(arguments)
    with make_spark_session("plimsoll-audit") as spark:
        counts = run(spark, asked.folder, asked.output)
    sys.stdout.write(printable_lines(", ".join(f"{name} {value}" for name, value in counts.items()) + "\n"))
    return 1 if counts["lost"] or counts["duplicated"] or counts["reordered"] or counts["unwanted"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
