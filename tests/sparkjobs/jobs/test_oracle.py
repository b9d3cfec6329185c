"""The oracle, compared with the definition of a snapshot in plain Python."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from tests.sparkjobs import needs  # noqa: F401  # skips this module by name where Spark cannot run
from tests.sparkjobs.streaming.test_report_buffer import END_US, first_copies
from tests.sparkjobs.traces import FLEET, disturbed, expect, trace, usable, write_files

from plimsoll.sparkjobs import telemetry_source
from plimsoll.sparkjobs.jobs import oracle
from plimsoll.telemetry.fold import ReportPoint, aggregate_cluster
from plimsoll.telemetry.schema import INCOMING
from plimsoll.telemetry.snapshot import SEEN_SECONDS, WINDOWS_SECONDS, ReportCounts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_oracle_computes_the_definition(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    sound = trace(1, END_US)
    for one in sound[:40]:
        one["output_bytes_per_second"] = 9.1e9  # squares of these do not fit into a decimal
    rows = disturbed(1, sound)
    write_files(tmp_path, rows, 3)
    expected = {"c0": ["c0-e0", "c0-head", "gone"], "c9": ["silent"]}
    expect(tmp_path, expected)
    found = oracle.compute_snapshot(
        spark, tmp_path, FLEET, END_US, telemetry_source.finished_files(tmp_path / INCOMING)
    )
    valid = telemetry_source.report_points(
        telemetry_source.read_files(
            spark, telemetry_source.finished_files(tmp_path / INCOMING), telemetry_source.loads_schema()
        ),
        FLEET,
    )
    keys = {(row["broker"], row["epoch"], row["seq"]) for row in valid.where("valid").collect()}
    good = first_copies([row for row in rows if usable(row)])
    assert {(row["broker"], row["epoch"], row["seq"]) for row in good} == keys
    for name in ("c0", "c1"):
        mine = [ReportPoint.of(row) for row in good if row["cluster"] == name]
        by_definition = aggregate_cluster(mine, expected.get(name, []), END_US, WINDOWS_SECONDS, SEEN_SECONDS)
        assert msgspec.to_builtins(found.clusters[name]) == msgspec.to_builtins(by_definition)
    assert found.clusters["c9"].missing == ["silent"]
    invalid = sum(not usable(row) for row in rows)
    duplicate = len(rows) - invalid - len(keys)
    assert found.counts == ReportCounts(rows_in=len(rows), counted=len(keys), duplicate=duplicate, invalid=invalid)
    assert found.source == "oracle"


def test_differences_have_their_paths():
    one = aggregate_cluster([], ["a"], END_US, (10,), 60)
    other = aggregate_cluster([], ["a", "b"], END_US, (10,), 60)
    assert list(oracle.snapshot_differences({"c": one}, {"c": one})) == []
    places = [line.split(":")[0] for line in oracle.snapshot_differences({"c": one, "d": one}, {"c": other})]
    assert places == ["/c/expected", "/c/missing", "/d"]
