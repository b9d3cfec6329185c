"""`python -m plimsoll.sparkjobs live`: a snapshot of the fleet for each micro-batch, from files as they arrive.

One stateful operator, keyed by cluster, keeps the last five minutes of rows (`report_buffer`). In every batch it emits
the state of each cluster, with or without new rows, so that silence is reported as well. Windows end `lag` before the
batch: by then the collectors have written their files. The counts of rows are stored with the rows in one transaction,
so that a crash does not count a row twice.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from plimsoll.core.printable import printable_lines
from plimsoll.sparkjobs import telemetry_source
from plimsoll.sparkjobs.launch.spec import LEAST_PARTITIONS
from plimsoll.sparkjobs.spark_session import make_spark_session
from plimsoll.sparkjobs.streaming import block_encoder, checkpoints
from plimsoll.sparkjobs.streaming.report_buffer import HORIZON_US, SLICE_US, ClusterSummary, ReportBuffer
from plimsoll.sparkjobs.streaming.snapshot_files import publish_snapshot
from plimsoll.sparkjobs.tables import struct_type
from plimsoll.telemetry.fold import SnapshotHeader, assemble_snapshot
from plimsoll.telemetry.schema import CHECKPOINT, INCOMING, LOADS, SET_ASIDE
from plimsoll.telemetry.snapshot import SEEN_SECONDS, WINDOWS_SECONDS, ClusterSnapshot, ReportCounts, TelemetrySnapshot
from plimsoll.telemetry.storage.set_aside import set_aside_unreadable

CheckOwner = Callable[[], None]
"""Raises CheckpointLostError if another driver owns the checkpoint."""

TTL_MS: Final = 600_000
"""Spark drops slices that have not changed for this long, in case pruning has missed them."""
FILES_AT_MOST: Final = 600
START_ATTEMPTS: Final = 5
LIVE_SETTINGS: Final = {"spark.sql.shuffle.partitions": str(LEAST_PARTITIONS)}
"""A new checkpoint divides its state into this number of partitions and keeps it, unless the user or a launcher
sets another one. Adaptive execution does not change them, and each costs a task in every batch."""
WORKER_START_TIMEOUT: Final = "Python worker failed to connect back"
COUNTS: Final = ("rows_in", "counted", "duplicate", "late", "invalid")
COUNTS_DDL: Final = ", ".join(f"{name} BIGINT" for name in COUNTS)
SUMMARY_COLUMNS: Final = f"cluster STRING, end_us BIGINT, body BINARY, {COUNTS_DDL}"
"""What the operator emits for a cluster in a batch: `body` is a `ClusterSummary`, counts are since the run began."""


@dataclass(frozen=True, slots=True)
class LiveJobSettings:
    """The settings of a live job."""

    root: Path
    fleet: str
    trigger_seconds: float = 5.0
    lag_seconds: float = 10.0
    files_per_batch: int = FILES_AT_MOST

    @property
    def checkpoint(self) -> Path:
        return self.root / CHECKPOINT


class ClusterProcessor(StatefulProcessor):
    """Keeps the slices and the counts of each cluster. Its input are rows of `block_encoder.BLOCK_COLUMNS`."""

    def __init__(self, lag_us: int) -> None:
        self.lag_us = lag_us

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.slices = handle.getMapState("slices", "number BIGINT", "rows BINARY", TTL_MS)
        self.counts = handle.getValueState("counts", COUNTS_DDL)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:  # noqa: N802, N803  # Spark's name
        yield self._summarize(key[0], rows, timerValues)

    def handleExpiredTimer(  # noqa: N802  # Spark's name
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803  # Spark's name
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803  # Spark's name
    ) -> Iterator[Row]:
        yield self._summarize(key[0], iter(()), timerValues)

    def close(self) -> None:
        """Nothing to close: the processor has only the state."""

    def _summarize(self, cluster: str, rows: Iterator[Row], times: TimerValues) -> Row:
        now_ms = times.getCurrentProcessingTimeInMs()
        end_us = now_ms * 1000 - self.lag_us
        stored = {number: blob for (number,), (blob,) in self.slices.iterator()}
        buffer = ReportBuffer.load(stored.values())
        given = list(rows)
        fresh, changed = buffer.add((row["rows"] for row in given if row["rows"] is not None), end_us)
        buffer.prune(end_us)
        for number in changed:
            if (blob := buffer.encode_slice(number)) is not None:
                self.slices.updateValue((number,), (blob,))
        for number in stored:
            if (number + 1) * SLICE_US <= end_us - HORIZON_US:
                self.slices.removeKey((number,))
        late, invalid = (sum(row[name] for row in given) for name in ("late", "invalid"))
        total = self._add_counts(fresh, late, invalid)
        # This timer has expired by the next batch, which then emits the cluster even without new rows.
        for timer in list(self.handle.listTimers()):
            self.handle.deleteTimer(timer)
        self.handle.registerTimer(now_ms + 1)
        body = msgspec.msgpack.encode(buffer.summarize(end_us))
        return Row(cluster=cluster, end_us=end_us, body=body, **dict(zip(COUNTS, total, strict=True)))

    def _add_counts(self, fresh: ReportCounts, late: int, invalid: int) -> tuple[int, ...]:
        before: Sequence[int] = self.counts.get() or (0,) * len(COUNTS)
        rows_in = fresh.rows_in + late + invalid
        new = msgspec.structs.replace(fresh, rows_in=rows_in, late=fresh.late + late, invalid=invalid)
        total = tuple(old + getattr(new, name) for old, name in zip(before, COUNTS, strict=True))
        self.counts.update(total)
        return total


def cluster_summaries(points: DataFrame, lag_seconds: float) -> DataFrame:
    """Rows of SUMMARY_COLUMNS: in every batch one for each cluster that has ever had a row."""
    lag_us = int(lag_seconds * 1e6)
    # The time of the batch, which timers use as well; it is the same when the batch is run again.
    late_us = F.unix_micros(F.current_timestamp()) - F.lit(lag_us + HORIZON_US)
    return (
        block_encoder.encode_blocks(points, late_us)
        .groupBy("cluster")
        .transformWithState(
            statefulProcessor=ClusterProcessor(lag_us),
            outputStructType=struct_type(SUMMARY_COLUMNS),
            outputMode="Update",
            timeMode="ProcessingTime",
        )
    )


def snapshot_of(
    rows: Sequence[Row], expected: Mapping[str, Sequence[str]], fleet: str, order: tuple[int, int],
    written_us: int,
) -> TelemetrySnapshot:  # fmt: skip
    """The snapshot of a batch from its rows of SUMMARY_COLUMNS, of which there is at least one.

    Raises:
        ValueError: the rows are not of one moment.

    """
    ends = {row["end_us"] for row in rows}
    if len(ends) != 1:
        raise ValueError(f"one batch has rows of {len(ends)} moments: {sorted(ends)[:3]}")
    # A batch may emit a cluster twice, for new rows and by its timer: the row that has counted more is the later one.
    last = {row["cluster"]: row for row in sorted(rows, key=lambda row: row["rows_in"])}
    summaries = {name: msgspec.msgpack.decode(row["body"], type=ClusterSummary) for name, row in last.items()}
    present = {name: seen for name, seen in summaries.items() if seen.is_present or name in expected}
    for name in expected:
        present.setdefault(name, ReportBuffer().summarize(0))
    header = SnapshotHeader(
        source="spark", fleet=fleet, run_us=order[0], batch=order[1], window_end_us=ends.pop(), written_us=written_us
    )
    clusters = {name: _cluster(seen, expected.get(name, ())) for name, seen in present.items()}
    counts = ReportCounts(**{name: sum(row[name] for row in last.values()) for name in COUNTS})
    return assemble_snapshot(header, clusters, counts, WINDOWS_SECONDS, SEEN_SECONDS)


def _cluster(seen: ClusterSummary, expected: Sequence[str]) -> ClusterSnapshot:
    wanted = set(expected)
    here = wanted & set(seen.seen)
    return ClusterSnapshot(
        seen=len(here), expected=len(wanted), missing=sorted(wanted - here), states=seen.states, windows=seen.windows
    )


def owned_by_anyone() -> None:
    """For a checkpoint that no other driver can have."""


def snapshot_writer(
    settings: LiveJobSettings, run_us: int, check_owner: CheckOwner = owned_by_anyone
) -> Callable[[DataFrame, int], None]:
    """Publishes the snapshot of each batch. A batch that is run twice publishes the same."""

    def write(frame: DataFrame, batch: int) -> None:
        rows = frame.collect()
        check_owner()
        if not rows:
            return  # no cluster has sent a report yet
        expected = telemetry_source.read_expected(settings.root, settings.fleet)
        now_us = time.time_ns() // 1000
        publish_snapshot(settings.root, snapshot_of(rows, expected, settings.fleet, (run_us, batch), now_us))

    return write


def start_query(
    spark: SparkSession,
    settings: LiveJobSettings,
    *,
    available_now: bool = False,
    check_owner: CheckOwner = owned_by_anyone,
) -> StreamingQuery:
    """Start the query. With `available_now` it ends when all existing files have been read."""
    # Batches without new files emit the clusters, too. With `available_now` they would keep the query from ending.
    spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", str(not available_now).lower())
    folder = settings.root / INCOMING
    folder.mkdir(parents=True, exist_ok=True)
    loads = (
        spark.readStream.schema(telemetry_source.loads_schema())
        .option("maxFilesPerTrigger", settings.files_per_batch)
        # A batch that has failed is run again with the same files, but for those that were set aside meanwhile.
        .option("ignoreMissingFiles", "true")
        .parquet(str(folder))
    )
    points = telemetry_source.report_points(loads, settings.fleet)
    run_us = checkpoints.run_start_us(settings.checkpoint, time.time_ns() // 1000)
    stream = (
        cluster_summaries(points, settings.lag_seconds)
        .writeStream.outputMode("update")
        .queryName(f"live-{settings.fleet}")
        .option("checkpointLocation", str(settings.checkpoint))
        .foreachBatch(snapshot_writer(settings, run_us, check_owner))
    )
    if available_now:
        return stream.trigger(availableNow=True).start()
    return stream.trigger(processingTime=f"{round(settings.trigger_seconds * 1000)} milliseconds").start()


def run_query(
    spark: SparkSession,
    settings: LiveJobSettings,
    *,
    available_now: bool = False,
    check_owner: CheckOwner = owned_by_anyone,
) -> None:
    """Run the query to its end.

    When a query starts, Spark gives a Python worker ten seconds to connect, however busy the machine is. A query that
    failed only for that reason is restarted a few times. A query that failed for files that cannot be read is restarted
    without them.

    Raises:
        CheckpointLostError: another driver has taken the checkpoint over.
        StreamingQueryException: the query has failed.

    """
    attempt = 1
    while True:
        try:
            start_query(spark, settings, available_now=available_now, check_owner=check_owner).awaitTermination()
        except StreamingQueryException as error:
            check_owner()
            if set_bad_files_aside(settings):
                continue
            if WORKER_START_TIMEOUT not in str(error) or attempt == START_ATTEMPTS:
                raise
            attempt += 1
        else:
            return


def set_bad_files_aside(settings: LiveJobSettings) -> bool:
    """Set those new files aside that cannot be read, and say so; whether there were any."""
    read = set(checkpoints.committed_files(settings.checkpoint))
    files = [path for path in telemetry_source.finished_files(settings.root / INCOMING) if path.resolve() not in read]
    found = set_aside_unreadable(settings.root, files, LOADS, "live", time.time_ns() // 1000)
    for each in found:
        line = f"{settings.root / each.folder / each.file} was set aside in {SET_ASIDE}: {each.reason}"
        sys.stderr.write(printable_lines(f"live: {line}\n"))
    return bool(found)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m plimsoll.sparkjobs live", description=__doc__)
    parser.add_argument("root", type=Path, help="folder with the collectors' raw/; snapshots go to agg/ in it")
    parser.add_argument("--fleet", required=True, help="name of the fleet")
    parser.add_argument("--trigger", type=float, default=5.0, metavar="SECONDS", help="interval of micro-batches")
    parser.add_argument("--lag", type=float, default=10.0, metavar="SECONDS",
                        help="windows end this long before a batch: the collectors' interval")  # fmt: skip
    parser.add_argument("--available-now", action="store_true", help="read the existing files and end")
    parser.add_argument("--wait", type=float, default=0.0, metavar="SECONDS",
                        help="time to wait for another live job on this checkpoint to end")  # fmt: skip
    asked = parser.parse_args(arguments)
    settings = LiveJobSettings(asked.root, asked.fleet, asked.trigger, asked.lag)
    name = f"plimsoll-live-{asked.fleet}"
    # A driver that may have to wait makes its session first, so that it can start as soon as the lock is free.
    early = make_spark_session(name, LIVE_SETTINGS) if asked.wait else None
    with checkpoints.checkpoint_lock(settings.checkpoint, asked.wait) as claim:
        session = early or make_spark_session(name, LIVE_SETTINGS)
        run_query(session, settings, available_now=asked.available_now, check_owner=claim.check)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
