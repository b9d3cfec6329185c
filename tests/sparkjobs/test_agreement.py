"""The snapshots of the agreement bench are those of the jobs: the oracle computes the same from the same files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from bench.telemetry.agreement import FLEET, START_US, WAYS, Pipeline
from bench.telemetry.recording import record
from tests.sparkjobs import needs  # noqa: F401  # skips this module by name where Spark cannot run
from tests.telemetry.rows import write_rows

from plimsoll.sparkjobs import telemetry_source
from plimsoll.sparkjobs.jobs import oracle
from plimsoll.telemetry.schema import INCOMING, LOADS
from plimsoll.telemetry.snapshot import decode_snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.sweep
@pytest.mark.timeout(1200)
def test_the_oracle_makes_the_same_snapshot_of_the_same_files(spark: SparkSession, tmp_path: Path):
    pipeline = Pipeline(record(300.0, subscribers=60, publishers=8, seed=3), WAYS["worse"], 3)
    pipeline.until(260.0)
    data = pipeline.spark(255.0)
    assert data is not None
    snapshot = decode_snapshot(data)
    made_at = (snapshot.written_us - START_US) / 1e6
    (tmp_path / INCOMING).mkdir(parents=True)
    for number, (written_at, rows) in enumerate(pipeline.files):
        if written_at <= made_at:
            write_rows(tmp_path / INCOMING / f"c0-{number}.parquet", LOADS, rows)
    points = telemetry_source.report_points(
        telemetry_source.read_files(
            spark, telemetry_source.finished_files(tmp_path / INCOMING), telemetry_source.loads_schema()
        ),
        FLEET,
    )
    found = oracle.compute_clusters(points, pipeline.clusters, snapshot.window_end_us)
    assert list(oracle.snapshot_differences(found, snapshot.clusters)) == []
    assert snapshot.clusters["b1"].windows["300"].n > snapshot.clusters["b1"].windows["10"].n > 0
