"""Rows as jobs read them: the columns of the shared schema, and whether each row is valid."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.pandas.types import from_arrow_schema
from tests.sparkjobs import needs  # noqa: F401  # skips this module by name where Spark cannot run
from tests.sparkjobs.traces import expect, write_files
from tests.telemetry.rows import NOW_US, row

from plimsoll.sparkjobs import telemetry_source
from plimsoll.telemetry.metric_statistics import to_billionths
from plimsoll.telemetry.schema import EXPECTED, INCOMING, LOADS, METRICS, OUTCOMES
from plimsoll.telemetry.storage import parquet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BROKEN: list[dict[str, Any]] = [
    {"schema": 2}, {"schema": 0}, {"fleet": "g"}, {"role": "mediator"}, {"cluster": ""}, {"broker": ""}, {"state": ""},
    {"collector": ""}, {"epoch": -1}, {"seq": 0}, {"received_us": NOW_US + 5_000_001},
    {"received_us": NOW_US - 5_000_001}, {"cpu_ratio": float("nan")}, {"input_rate": float("inf")},
    {"output_rate": -1e10}, {"at_us": 0},
]  # fmt: skip
SOUND: list[dict[str, Any]] = [
    {}, {"role": "head"}, {"received_us": NOW_US + 5_000_000}, {"received_us": NOW_US - 5_000_000}, {"input_rate": 9e9},
    {"cpu_ratio": 0.0000000025}, {"cpu_ratio": 0.0000000035}, {"memory_ratio": 1 / 3}, {"event_us": None},
]  # fmt: skip


def test_spark_and_arrow_see_the_same_columns():
    for schema, table in ((telemetry_source.loads_schema(), LOADS), (telemetry_source.outcomes_schema(), OUTCOMES)):
        assert all(field.nullable for field in schema)
        assert schema.simpleString() == from_arrow_schema(parquet.arrow_schema(table)).simpleString()
        assert schema.fieldNames() == list(table.names)


def test_a_row_is_valid_or_counted_as_invalid_and_values_are_whole_billionths(spark: SparkSession, tmp_path: Path):
    changes: list[dict[str, Any]] = [*SOUND, *BROKEN]
    rows = [row(seq=i + 1) | change for i, change in enumerate(changes)]
    write_files(tmp_path, rows, 1)
    files = telemetry_source.finished_files(tmp_path / INCOMING)
    frame = telemetry_source.report_points(
        telemetry_source.read_files(spark, files, telemetry_source.loads_schema()), "f"
    )
    found = {(each["seq"], each["valid"]): each for each in frame.collect()}
    assert len(found) == len(rows)
    for i, change in enumerate(SOUND):
        each = found[i + 1, True]
        assert {name: each[name] for name in METRICS} == {name: to_billionths(rows[i][name]) for name in METRICS}, (
            change
        )
    for i, change in enumerate(BROKEN):
        assert (rows[len(SOUND) + i]["seq"], False) in found, change


def test_a_table_without_files_is_empty_and_unfinished_files_are_skipped(spark: SparkSession, tmp_path: Path):
    assert telemetry_source.read_files(spark, [], telemetry_source.loads_schema()).count() == 0
    for name in (".a.parquet", "_b.parquet", "c.parquet", "d.txt"):
        (tmp_path / name).touch()
    assert [path.name for path in telemetry_source.finished_files(tmp_path)] == ["c.parquet"]


def test_expected_brokers_are_read_and_checked(tmp_path: Path):
    assert telemetry_source.read_expected(tmp_path, "f") == {}
    expect(tmp_path, {"c": ["a", "b"]})
    assert telemetry_source.read_expected(tmp_path, "f") == {"c": ["a", "b"]}
    with pytest.raises(ValueError, match="is of fleet f"):
        telemetry_source.read_expected(tmp_path, "g")
    (tmp_path / EXPECTED).write_text("{")
    with pytest.raises(ValueError, match="does not list the expected brokers"):
        telemetry_source.read_expected(tmp_path, "f")
