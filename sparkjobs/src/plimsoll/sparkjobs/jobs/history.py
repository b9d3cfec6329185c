"""`python -m plimsoll.sparkjobs history`: baselines of each hour, the trend, a forecast of the next day and its error.

The series has one value per cluster, metric and hour: the mean over the cluster's edges. A forecast is the level of the
hour of the week (of the day, with less than two weeks of history) plus the trend. Its error is measured on the last
day, with a forecast made without that day. The error of the naive forecast, which repeats the value of the last hour,
is reported beside it: a forecast that is not better than that is not worth using.

The means of hours are stored with the names of the files that they are from (`stored_hours`), so that a run reads only
hours with new files and those beside them.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere
from pyspark.sql.types import DoubleType, LongType

from plimsoll.sparkjobs import stored_hours, telemetry_source
from plimsoll.sparkjobs.jobs import oracle
from plimsoll.sparkjobs.jobs.compact import HOURLY_FOLDER
from plimsoll.sparkjobs.launch.local_process import SCAN_JVM_OPTIONS
from plimsoll.sparkjobs.spark_session import make_spark_session
from plimsoll.sparkjobs.tables import JobTableError, write_json
from plimsoll.telemetry.metric_statistics import NANO
from plimsoll.telemetry.schema import MAJOR, METRICS

HOUR_US: Final = 3_600_000_000
HELD_BACK_HOURS: Final = 24
TWO_WEEKS_HOURS: Final = 14 * 24
MODEL_FOLDER: Final = f"model/v{MAJOR}"
HISTORY_SETTINGS: Final = {"spark.driver.extraJavaOptions": SCAN_JVM_OPTIONS}


def hourly_table(points: DataFrame) -> DataFrame:
    """cluster, hour (hours since 1970), METRICS: the means over the reports of edges in that hour."""
    edges = oracle.first_copies(points).where(F.col("role") == "edge")
    return edges.groupBy("cluster", hour_of("at_us").alias("hour")).agg(*means_of(METRICS, NANO))


def hour_of(name: str) -> Column:
    """The hours since 1970 of a column of microseconds: whole numbers, and no text that Spark would have to parse."""
    return ((F.col(name) - F.pmod(F.col(name), F.lit(HOUR_US))) / HOUR_US).cast(LongType())


def means_of(names: Sequence[str], unit: int = 1) -> list[Column]:
    """The mean of each column, which has no nulls, divided by the unit: one count for all, and not one for each."""
    n = F.count(F.lit(1))
    return [(F.sum(F.col(name).cast(DoubleType())) / n / unit).alias(name) for name in names]


def hourly_series(table: DataFrame) -> DataFrame:
    """cluster, metric, hour, value: the same with a row for each metric."""
    columns = table.select("cluster", "hour", *METRICS)
    return columns.unpivot(["cluster", "hour"], list(METRICS), "metric", "value").where("value is not null")


def hourly_means(points: DataFrame) -> DataFrame:
    """cluster, metric, hour (hours since 1970), value: the mean over the reports of edges in that hour."""
    return hourly_series(hourly_table(points))


def baselines(series: DataFrame) -> DataFrame:
    """cluster, metric, weekday (1 Monday to 7 Sunday, UTC), hour (0 to 23), n, mean, deviation, p50, p95."""
    return (
        series.withColumn("weekday", _weekday())
        .withColumn("at", (F.col("hour") % 24).cast("int"))
        .groupBy("cluster", "metric", "weekday", "at")
        .agg(
            F.count("value").alias("n"),
            F.avg("value").alias("mean"),
            F.stddev_pop("value").alias("deviation"),
            F.expr("percentile(value, 0.5)").alias("p50"),
            F.expr("percentile(value, 0.95)").alias("p95"),
        )
        .withColumnRenamed("at", "hour")
    )


def _weekday() -> Column:
    days = F.expr("hour div 24")
    return ((days + 3) % 7 + 1).cast("int")  # 1970-01-01 was a Thursday


def _season(hours: Column) -> Column:
    """The hour of the week, or the hour of the day if the series has less than two weeks."""
    return F.when(hours >= TWO_WEEKS_HOURS, F.col("hour") % 168).otherwise(F.col("hour") % 24 + 1000)


def fit_trends(series: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Lines: cluster, metric, slope (per hour), level, first, last, hours, last_value; and seasons: cluster, metric,
    season, level. A value is slope x hours since the first + the level of its season.

    The slope is estimated within seasons, from values that are whole days or weeks apart: otherwise the time of day at
    which a series happens to end would look like a trend. A series of less than two days has the slope 0.
    """
    key = ["cluster", "metric"]
    spans = series.groupBy(*key).agg(
        F.min("hour").alias("first"),
        F.max("hour").alias("last"),
        F.max_by("value", "hour").alias("last_value"),
        (F.max("hour") - F.min("hour") + 1).alias("hours"),
    )
    dated = (
        series.join(spans, key)
        .withColumn("season", _season(F.col("hours")))
        .withColumn("t", (F.col("hour") - F.col("first")).cast("double"))
    )
    cell = Window.partitionBy(*key, "season")
    value_apart, time_apart = F.col("value") - F.avg("value").over(cell), F.col("t") - F.avg("t").over(cell)
    apart = dated.withColumn("dv", value_apart).withColumn("dt", time_apart)
    spread = F.sum(F.col("dt") * F.col("dt"))
    found = F.when((spread > 0) & (F.first("hours") >= 48), F.sum(F.col("dv") * F.col("dt")) / spread)
    slopes = apart.groupBy(*key).agg(F.coalesce(found, F.lit(0.0)).alias("slope"))
    level = F.avg(F.col("value") - F.col("slope") * F.col("t")).alias("level")
    sloped = dated.join(slopes, key)
    lines = spans.join(slopes, key).join(sloped.groupBy(*key).agg(level), key)
    return lines, sloped.groupBy(*key, "season").agg(level)


def forecast(lines: DataFrame, seasons: DataFrame, hours: int = HELD_BACK_HOURS) -> DataFrame:
    """cluster, metric, hour, forecast, naive: for `hours` hours after the last one. No forecast is below zero."""
    key = ["cluster", "metric"]
    ahead = (
        lines.withColumnRenamed("level", "any_level")
        .withColumn("hour", F.explode(F.sequence(F.col("last") + 1, F.col("last") + hours)))
        .withColumn("season", _season(F.col("hours")))
        .join(seasons, [*key, "season"], "left")
    )
    value = F.col("slope") * (F.col("hour") - F.col("first")) + F.coalesce("level", "any_level")
    return ahead.select(
        *key, "hour", F.greatest(value, F.lit(0.0)).alias("forecast"), F.col("last_value").alias("naive")
    )


def forecast_errors(series: DataFrame, held_back_hours: int = HELD_BACK_HOURS) -> DataFrame:
    """cluster, metric, n, error, naive_error: mean absolute errors over the last hours, forecast without them."""
    last = series.groupBy("cluster", "metric").agg(F.max("hour").alias("end"))
    dated = series.join(last, ["cluster", "metric"])
    known = dated.where(F.col("hour") <= F.col("end") - held_back_hours).drop("end")
    lines, seasons = fit_trends(known)
    predicted = forecast(lines, seasons, held_back_hours)
    return (
        dated.join(predicted, ["cluster", "metric", "hour"])
        .groupBy("cluster", "metric")
        .agg(
            F.count(F.lit(1)).alias("n"),
            F.avg(F.abs(F.col("value") - F.col("forecast"))).alias("error"),
            F.avg(F.abs(F.col("value") - F.col("naive"))).alias("naive_error"),
        )
    )


def update_hours(spark: SparkSession, root: Path, fleet: str) -> DataFrame:
    """The means of all compacted hours. Only hours whose files have changed since the last run are computed.

    Raises:
        JobTableError: there are no compacted hours yet.

    """
    files = stored_hours.compacted_files(root)
    if not files:
        raise JobTableError(f"there is no history below {root / HOURLY_FOLDER}: run `compact` first")
    known = stored_hours.read_watermark(root, fleet)
    changes = stored_hours.hours_to_compute(files, known)
    stored = stored_hours.read_hours(spark, root, known)
    if changes is None:  # nothing is known, or a file is in no hour
        table = _computed(spark, fleet, [path for paths in files.values() for path in paths])
    else:
        kept = stored.where(F.col("hour").isin(sorted(changes.kept))) if changes.kept else stored.limit(0)
        table = kept
        if changes.computed:
            fresh = _computed(spark, fleet, changes.files)
            table = kept.unionByName(fresh.where(F.col("hour").isin(sorted(changes.computed))))
        elif changes.kept == changes.known:
            return stored
    return stored_hours.write_hours(spark, root, fleet, files, table)


def _computed(spark: SparkSession, fleet: str, files: Sequence[Path]) -> DataFrame:
    loads = telemetry_source.read_files(spark, files, telemetry_source.loads_schema())
    return hourly_table(telemetry_source.report_points(loads, fleet))


def run(spark: SparkSession, root: Path, fleet: str, day: str) -> dict[str, Any]:
    """Bring the means of all hours up to date; write baselines, forecasts and their errors to `model/v1/<day>.json`.

    Raises:
        JobTableError: there are no compacted hours yet.

    """
    series = hourly_series(update_hours(spark, root, fleet)).cache()
    lines, seasons = fit_trends(series)
    measured = {(row["cluster"], row["metric"]): row for row in forecast_errors(series).collect()}
    found: dict[str, Any] = {"schema": "plimsoll.model/1", "fleet": fleet, "day": day, "clusters": {}}
    for row in lines.collect():
        error = measured.get((row["cluster"], row["metric"]))
        found["clusters"].setdefault(row["cluster"], {})[row["metric"]] = {
            "hours": row["hours"],
            "slopePerDay": row["slope"] * 24,
            "error": None if error is None else error["error"],
            "naiveError": None if error is None else error["naive_error"],
            "baselines": [],
            "forecast": [],
        }
    for row in baselines(series).orderBy("cluster", "metric", "weekday", "hour").collect():
        one = {name: row[name] for name in ("weekday", "hour", "n", "mean", "deviation", "p50", "p95")}
        found["clusters"][row["cluster"]][row["metric"]]["baselines"].append(one)
    for row in forecast(lines, seasons).orderBy("cluster", "metric", "hour").collect():
        one = {"at": row["hour"] * 3600, "value": row["forecast"]}
        found["clusters"][row["cluster"]][row["metric"]]["forecast"].append(one)
    series.unpersist()
    write_json(root / MODEL_FOLDER / f"{day}.json", found)
    return found


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m plimsoll.sparkjobs history", description=__doc__)
    parser.add_argument("root", type=Path, help="folder that has raw/")
    parser.add_argument("--fleet", required=True, help="name of the fleet")
    asked = parser.parse_args(arguments)
    with make_spark_session("plimsoll-history", HISTORY_SETTINGS) as spark:
        run(spark, asked.root, asked.fleet, time.strftime("%Y-%m-%d", time.gmtime()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
