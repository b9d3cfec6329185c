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
from pyspark.sql import Column, DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere

from plimsoll.core.printable import printable_lines
from plimsoll.sparkjobs import telemetry_source
from plimsoll.sparkjobs.job_errors import JobInputError
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


KEY: Final = ("cluster", "broker", "epoch", "seq")
FEW_SUSPECTS: Final = 1_000_000
"""Hashes that are sent to every executor, 8 MB; if there are more, all rows are sorted instead."""


def first_copies(points: DataFrame) -> DataFrame:
    """The valid points, without copies: of each key the one received first.

    Few rows have copies. A hash of the key finds those that may: this moves eight bytes of a row instead of all of it,
    and only they are sorted. It runs a job of Spark to count them.
    """
    valid = points.where(F.col("valid")).drop("valid").withColumn("_key", F.xxhash64(*KEY))
    hashes = points.select(F.xxhash64(*KEY).alias("_key")).groupBy("_key").agg(F.count(F.lit(1)).alias("_rows"))
    suspects = hashes.where(F.col("_rows") > 1).select("_key").cache()
    count = suspects.limit(FEW_SUSPECTS + 1).count()
    if count == 0:
        return valid.drop("_key")
    if count > FEW_SUSPECTS:
        return _sorted_copies(valid).drop("_key")
    few = F.broadcast(suspects)
    alone = valid.join(few, "_key", "left_anti")
    return alone.unionByName(_sorted_copies(valid.join(few, "_key", "left_semi"))).drop("_key")


def _sorted_copies(rows: DataFrame) -> DataFrame:
    key = Window.partitionBy(*KEY).orderBy("received_us", "collector")
    return rows.withColumn("_copy", F.row_number().over(key)).where(F.col("_copy") == 1).drop("_copy")


def window_rows(rows: DataFrame, end_us: int) -> DataFrame:
    """The rows of edges, once for each window that contains them, with its length in `seconds`.

    The windows are nested, so three of them have a quarter more rows than the longest.
    """
    windows = F.filter(
        F.array(*(F.lit(seconds) for seconds in WINDOWS_SECONDS)),
        lambda seconds: F.col("at_us") > F.lit(end_us) - seconds * 1_000_000,
    )
    return (
        rows.where((F.col("role") == "edge") & (F.col("at_us") <= end_us))
        .withColumn("seconds", F.explode(windows))
        .select("cluster", "seconds", "broker", *METRICS)
    )


def metric_sums(windows: DataFrame) -> DataFrame:
    """cluster, seconds, n, and a structure for each metric: total, three parts of the sum of squares, largest, and the
    percentiles by rank.

    A square has up to 38 digits, so their sum would overflow a decimal: with v = h x 10^9 + l it is computed in parts.
    """
    figures = [column for name in METRICS for column in _metric_figures(name)]
    grouped = windows.groupBy("cluster", "seconds").agg(F.count(F.lit(1)).alias("n"), *figures)
    return grouped.select("cluster", "seconds", "n", *(_with_percentiles(name).alias(name) for name in METRICS))


def _metric_figures(name: str) -> Iterator[Column]:
    high = f"cast({name} div 1000000000 as decimal(20,0))"
    low = f"cast({name} % 1000000000 as decimal(20,0))"
    yield F.sum(F.expr(f"cast({name} as decimal(20,0))")).alias(f"{name}_total")
    for part, (one, other) in {"hh": (high, high), "hl": (high, low), "ll": (low, low)}.items():
        yield F.sum(F.expr(f"cast({one} * {other} as decimal(27,0))")).alias(f"{name}_{part}")
    yield F.max(name).alias(f"{name}_largest")
    yield F.array_sort(F.collect_list(name)).alias(f"{name}_ordered")


def _with_percentiles(name: str) -> Column:
    percentiles = [
        F.element_at(f"{name}_ordered", F.expr(f"cast((n * {percent} + 99) div 100 as int)")).alias(f"p{percent}")
        for percent in PERCENTILES
    ]
    sums = [F.col(f"{name}_{part}").alias(part) for part in ("total", "hh", "hl", "ll", "largest")]
    return F.struct(*sums, *percentiles)


def broker_sums(windows: DataFrame) -> DataFrame:
    """cluster, seconds, broker, n, and the total of each metric."""
    totals = [F.sum(F.col(name).cast("decimal(20,0)")).alias(name) for name in METRICS]
    return windows.groupBy("cluster", "seconds", "broker").agg(F.count(F.lit(1)).alias("n"), *totals)


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
    rows = first_copies(points).where(F.col("at_us") > end_us - HORIZON_SECONDS * 1_000_000).cache()
    windows = window_rows(rows, end_us)
    try:
        # A row for each broker and each cluster, as in the snapshot that is made of them; none for a report.
        states, metrics, brokers = (
            list(frame.toLocalIterator())
            for frame in (broker_states(rows, end_us), metric_sums(windows), broker_sums(windows))
        )
    finally:
        rows.unpersist()
    named = {row["cluster"] for row in states} | set(expected)
    found = _windows(metrics, brokers)
    return {name: _cluster(name, expected.get(name, ()), states, found) for name in sorted(named)}


def _windows(metrics: list[Row], brokers: list[Row]) -> dict[tuple[str, int], snapshots.LoadWindow]:
    of_brokers: dict[tuple[str, int], list[Row]] = {}
    for row in brokers:
        of_brokers.setdefault((row["cluster"], row["seconds"]), []).append(row)
    return {
        (row["cluster"], row["seconds"]): _window(row, of_brokers[row["cluster"], row["seconds"]]) for row in metrics
    }


def _window(row: Row, brokers: Sequence[Row]) -> snapshots.LoadWindow:
    loads = {
        each["broker"]: max(int(each["input_utilization"]), int(each["output_utilization"])) / (each["n"] * NANO)
        for each in brokers
    }
    over, under = rank_candidates(loads)
    metrics = {name: _statistics(row["n"], row[name], [(int(one[name]), one["n"]) for one in brokers])
               for name in METRICS}  # fmt: skip
    return snapshots.LoadWindow(n=row["n"], brokers=len(loads), metrics=metrics, over=over, under=under)


def _statistics(n: int, sums: Row, of_brokers: Sequence[tuple[int, int]]) -> MetricStatistics:
    squares = int(sums["hh"]) * NANO**2 + 2 * int(sums["hl"]) * NANO + int(sums["ll"])
    percentiles = (sums["p50"], sums["p95"], sums["p99"])
    return statistics_from_sums(n, int(sums["total"]), squares, sums["largest"], percentiles, of_brokers)


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


def _published(path: Path) -> TelemetrySnapshot:
    try:
        return snapshots.decode_snapshot(path.read_bytes())
    except FileNotFoundError as error:
        raise JobInputError(f"there is no snapshot at {path}: start the live job first") from error
    except snapshots.SnapshotError as error:
        raise JobInputError(f"{path} cannot be compared, {error.fault}: {error}") from error


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
        published = _published(asked.against)
        end_us = published.window_end_us
        if asked.checkpoint is not None:
            # Files that `compact` has merged since are older than any window; those set aside were never read.
            files = [path for path in checkpoints.files_until(asked.checkpoint, published.batch) if path.exists()]
    with make_spark_session("plimsoll-oracle", quick=True) as spark:
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
