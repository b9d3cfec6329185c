"""Tables, bit vectors and files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.sparkjobs import needs  # noqa: F401  # skips this module by name where Spark cannot run

from plimsoll.sparkjobs import tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_bit_vectors_become_items_from_the_lowest_bit_on(spark: SparkSession):
    vectors = {0: b"", 1: b"\x00", 2: b"\x01", 3: b"\x80\x01", 4: bytes([0b10100101]), 5: b"\x00\x00\x10"}
    frame = spark.createDataFrame([(name, bytearray(bits)) for name, bits in vectors.items()], "name INT, bits BINARY")
    found = {row["name"]: row["items"] for row in tables.items_from_bits(frame).collect()}
    wanted = {
        name: [i for i in range(8 * len(bits)) if int.from_bytes(bits, "little") >> i & 1]
        for name, bits in vectors.items()
    }
    assert found == wanted


def test_a_missing_table_is_named(spark: SparkSession, tmp_path: Path):
    with pytest.raises(tables.JobTableError, match=r"there is no table at .*brokers"):
        tables.read_table(spark, tmp_path / "brokers", tables.BROKERS)


def test_columns_are_selected_by_name(spark: SparkSession, tmp_path: Path):
    spark.createDataFrame([(1.5, "a", 7)], "capacity DOUBLE, broker STRING, other INT").write.parquet(
        str(tmp_path / "b")
    )
    (row,) = tables.read_table(spark, tmp_path / "b", tables.BROKERS).collect()
    assert row.asDict() == {"broker": "a", "capacity": 1.5}
    with pytest.raises(TypeError, match="not the columns"):
        tables.struct_type("array<int>")


def test_json_is_written_without_leaving_partial_files(tmp_path: Path):
    path = tmp_path / "deep" / "a.json"
    tables.write_json(path, {"b": [1, 2.5]})
    assert json.loads(path.read_text()) == {"b": [1, 2.5]}
    assert [each.name for each in path.parent.iterdir()] == ["a.json"]
