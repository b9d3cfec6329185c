"""`python -m plimsoll.sparkjobs oracle`: computes a snapshot in a batch without state, to check those of the live job.

It shares only the last step of each statistic with the live job; sums and ranks are computed in SQL. Tests and an
hourly run compare it with the live job's snapshots. Started by hand it makes a snapshot without a live job.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from pyspark.sql import DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere

from plimsoll.core.printable import printable_lines
from plimsoll.sparkjobs import telemetry_source
from plimsoll.sparkjobs.spark_session import make_spark_session
from plimsoll.sparkjobs.streaming import checkpoints
from plimsoll.sparkjobs.streaming.report_buffer import rank_candidates
from plimsoll.sparkjobs.streaming.snapshot_files import write_snapshot
from plimsoll.telemetry import snapshot as snapshots
from plimsoll.telemetry.fold import SnapshotHeader, assemble_snapshot
from plimsoll.telemetry.metric_statistics import NANO, PERCENTILES, MetricStatistics, statistics_from_sums
from plimsoll.telemetry.schema import INCOMING, METRICS
from plimsoll.telemetry.snapshot import SEEN_SECONDS, WINDOWS_SECONDS, ClusterSnapshot, ReportCounts, TelemetrySnapshot

HORIZON_SECONDS: Final = max(*WINDOWS_SECONDS, SEEN_SECONDS)


def first_copies(points: DataFrame) -> DataFrame:
    """The valid points, without copies: of each key the one received first."""
    key = Window.partitionBy("cluster", "broker", "epoch", "seq").orderBy("received_us", "collector")
    return points.where("valid").withColumn("_copy", F.row_number().over(key)).where("_copy = 1").drop("_copy", "valid")


def long_form(rows: DataFrame, end_us: int) -> DataFrame:
    """cluster, seconds, broker, metric, value: a row for each window and metric of each point of an edge."""
    windows = F.filter(
        F.array(*(F.lit(seconds) for seconds in WINDOWS_SECONDS)),
        lambda seconds: F.col("at_us") > F.lit(end_us) - seconds * 1_000_000,
    )
    metrics = F.array(*(F.struct(F.lit(name).alias("metric"), F.col(name).alias("value")) for name in METRICS))
    return (
        rows.where((F.col("role") == "edge") & (F.col("at_us") <= end_us))
        .withColumn("seconds", F.explode(windows))
        .select("cluster", "seconds", "broker", F.explode(metrics).alias("one"))
        .select("cluster", "seconds", "broker", "one.metric", "one.value")
    )


def metric_sums(long: DataFrame) -> DataFrame:
    """cluster, seconds, metric, n, total, three parts of the sum of squares, largest, and the percentiles by rank.

    A square has up to 38 digits, so their sum would overflow a decimal: with v = h x 10^9 + l it is computed in parts.
    """
    parts = long.withColumn("h", F.expr("value div 1000000000").cast("decimal(20,0)")).withColumn(
        "l", F.expr("value % 1000000000").cast("decimal(20,0)")
    )
    ordered = F.array_sort(F.collect_list("value"))
    percentiles = [
        F.element_at(F.col("ordered"), F.expr(f"cast((n * {percent} + 99) div 100 as int)")).alias(f"p{percent}")
        for percent in PERCENTILES
    ]
    return (
        parts.groupBy("cluster", "seconds", "metric")
        .agg(
            F.count("value").alias("n"),
            F.sum(F.col("value").cast("decimal(20,0)")).alias("total"),
            F.sum(F.expr("h * h").cast("decimal(27,0)")).alias("hh"),
            F.sum(F.expr("h * l").cast("decimal(27,0)")).alias("hl"),
            F.sum(F.expr("l * l").cast("decimal(27,0)")).alias("ll"),
            F.max("value").alias("largest"),
            ordered.alias("ordered"),
        )
        .select("cluster", "seconds", "metric", "n", "total", "hh", "hl", "ll", "largest", *percentiles)
    )


def broker_sums(long: DataFrame) -> DataFrame:
    """cluster, seconds, broker, metric, n, total."""
    return long.groupBy("cluster", "seconds", "broker", "metric").agg(
        F.count("value").alias("n"), F.sum(F.col("value").cast("decimal(20,0)")).alias("total")
    )


def broker_states(rows: DataFrame, end_us: int) -> DataFrame:
    """cluster, broker, is_seen, state: for each broker with a row in the longest window; a head has no state."""
    inside = rows.where((F.col("at_us") <= end_us) & (F.col("at_us") > end_us - HORIZON_SECONDS * 1_000_000))
    edge = F.when(F.col("role") == "edge", F.struct("epoch", "seq"))
    return inside.groupBy("cluster", "broker").agg(
        (F.max("at_us") > end_us - SEEN_SECONDS * 1_000_000).alias("is_seen"),
        F.max_by(F.when(F.col("role") == "edge", F.col("state")), edge).alias("state"),
    )


def compute_clusters(
    points: DataFrame, expected: Mapping[str, Sequence[str]], end_us: int
) -> dict[str, ClusterSnapshot]:
    """Every cluster at `end_us`, from points in any order, with copies."""
    rows = first_copies(points).cache()
    long = long_form(rows, end_us).cache()
    try:
        states, metrics, brokers = (
            list(frame.toLocalIterator())
            for frame in (broker_states(rows, end_us), metric_sums(long), broker_sums(long))
        )
    finally:
        long.unpersist()
        rows.unpersist()
    named = {row["cluster"] for row in states} | set(expected)
    windows = _windows(metrics, brokers)
    return {name: _cluster(name, expected.get(name, ()), states, windows) for name in sorted(named)}


def _windows(metrics: list[Row], brokers: list[Row]) -> dict[tuple[str, int], snapshots.LoadWindow]:
    means: dict[tuple[str, int, str], dict[str, tuple[int, int]]] = {}
    for row in brokers:
        place = (row["cluster"], row["seconds"], row["metric"])
        means.setdefault(place, {})[row["broker"]] = (int(row["total"]), row["n"])
    figures: dict[tuple[str, int], dict[str, MetricStatistics]] = {}
    for row in metrics:
        squares = int(row["hh"]) * NANO**2 + 2 * int(row["hl"]) * NANO + int(row["ll"])
        percentiles = (row["p50"], row["p95"], row["p99"])
        of_brokers = list(means[row["cluster"], row["seconds"], row["metric"]].values())
        made = statistics_from_sums(row["n"], int(row["total"]), squares, row["largest"], percentiles, of_brokers)
        figures.setdefault((row["cluster"], row["seconds"]), {})[row["metric"]] = made
    found = {}
    for (cluster, seconds), of_metrics in figures.items():
        inputs, outputs = (means[cluster, seconds, name] for name in ("input_utilization", "output_utilization"))
        loads = {name: max(inputs[name][0], outputs[name][0]) / (n * NANO) for name, (_, n) in inputs.items()}
        over, under = rank_candidates(loads)
        n = next(iter(of_metrics.values())).n
        metrics_in_order = {name: of_metrics[name] for name in METRICS}
        found[cluster, seconds] = snapshots.LoadWindow(
            n=n, brokers=len(loads), metrics=metrics_in_order, over=over, under=under
        )
    return found


def _cluster(
    name: str, expected: Sequence[str], states: list[Row], windows: Mapping[tuple[str, int], snapshots.LoadWindow]
) -> ClusterSnapshot:
    mine = [row for row in states if row["cluster"] == name]
    seen = {row["broker"] for row in mine if row["is_seen"]} & set(expected)
    nothing = snapshots.LoadWindow(n=0, brokers=0, metrics={}, over=[], under=[])
    return ClusterSnapshot(
        seen=len(seen),
        expected=len(set(expected)),
        missing=sorted(set(expected) - seen),
        states={row["broker"]: row["state"] for row in sorted(mine) if row["state"] is not None},
        windows={str(seconds): windows.get((name, seconds), nothing) for seconds in WINDOWS_SECONDS},
    )


def count_rows(points: DataFrame) -> ReportCounts:
    """The counts of all rows. To a batch that reads all of them no row is late."""
    keys = F.countDistinct(F.when(F.col("valid"), F.struct("cluster", "broker", "epoch", "seq")))
    valid = F.count(F.when(F.col("valid"), 1))
    row = points.agg(F.count(F.lit(1)).alias("rows"), valid.alias("valid"), keys.alias("keys")).first()
    assert row is not None  # noqa: S101  # an aggregate has a row
    return ReportCounts(
        rows_in=row["rows"], counted=row["keys"], duplicate=row["valid"] - row["keys"],
        invalid=row["rows"] - row["valid"],
    )  # fmt: skip


def snapshot_differences(
    found: Mapping[str, ClusterSnapshot], published: Mapping[str, ClusterSnapshot]
) -> Iterator[str]:
    """The differences of two snapshots of the same moment, each with its path."""
    yield from _value_differences("", msgspec.to_builtins(found), msgspec.to_builtins(published))


def _value_differences(place: str, one: Any, other: Any) -> Iterator[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({*one, *other}):
            if key not in one or key not in other:
                yield f"{place}/{key}: only in the {'oracle' if key in one else 'snapshot'}"
            else:
                yield from _value_differences(f"{place}/{key}", one[key], other[key])
    elif one != other:
        yield f"{place}: oracle {one!r}, snapshot {other!r}"


def compute_snapshot(
    spark: SparkSession, root: Path, fleet: str, end_us: int, files: Sequence[Path]
) -> TelemetrySnapshot:
    """The snapshot at `end_us` from these files."""
    points = telemetry_source.report_points(
        telemetry_source.read_files(spark, files, telemetry_source.loads_schema()), fleet
    )
    now_us = time.time_ns() // 1000
    header = SnapshotHeader(
        source="oracle", fleet=fleet, run_us=now_us, batch=0, window_end_us=end_us, written_us=now_us
    )
    expected = telemetry_source.read_expected(root, fleet)
    return assemble_snapshot(
        header, compute_clusters(points, expected, end_us), count_rows(points), WINDOWS_SECONDS, SEEN_SECONDS
    )


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m plimsoll.sparkjobs oracle", description=__doc__)
    parser.add_argument("root", type=Path, help="folder that has raw/ and agg/")
    parser.add_argument("--fleet", required=True, help="name of the fleet")
    parser.add_argument("--output", type=Path, help="file for the snapshot (default: standard output)")
    parser.add_argument(
        "--against", type=Path, help="a snapshot of the live job: compute that moment again and print the differences"
    )
    parser.add_argument("--checkpoint", type=Path, help="checkpoint of the live job: read the same files as it had")
    asked = parser.parse_args(arguments)
    files, end_us, published = telemetry_source.finished_files(asked.root / INCOMING), time.time_ns() // 1000, None
    if asked.against is not None:
        published = snapshots.decode_snapshot(asked.against.read_bytes())
        end_us = published.window_end_us
        if asked.checkpoint is not None:
            files = checkpoints.files_until(asked.checkpoint, published.batch)
    with make_spark_session("plimsoll-oracle") as spark:
        found = compute_snapshot(spark, asked.root, asked.fleet, end_us, files)
    if asked.output is not None:
        write_snapshot(asked.output, found)
    elif published is None:
        sys.stdout.write(snapshots.encode_snapshot(found).decode() + "\n")
    different = [] if published is None else list(snapshot_differences(found.clusters, published.clusters))
    sys.stdout.write(printable_lines("".join(f"{line}\n" for line in different[:50])))
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
