"""Files hold exactly the schema, appear whole, and are refused when they are something else."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.telemetry.rows import row, write_rows

from plimsoll.telemetry.schema import LOADS, OUTCOMES
from plimsoll.telemetry.storage import parquet


def test_rows_come_back_as_they_were(tmp_path: Path):
    rows = [row("e1"), row("h", role="head", publishers=2, covers=[{"link": "e1", "subscriptions": 4}])]
    size = write_rows(tmp_path / "a.parquet", LOADS, rows)
    assert parquet.read_rows(tmp_path / "a.parquet", LOADS) == rows
    assert size == (tmp_path / "a.parquet").stat().st_size
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]


def test_some_columns_can_be_asked_for(tmp_path: Path):
    write_rows(tmp_path / "a.parquet", LOADS, [row("e1", 3)])
    assert parquet.read_rows(tmp_path / "a.parquet", LOADS, ["broker", "seq"]) == [{"broker": "e1", "seq": 3}]


def test_columns_say_their_unit():
    column = parquet.arrow_schema(LOADS).field("match_delay_seconds")
    assert column.metadata[b"unit"] == b"s"
    assert not column.nullable


def test_a_row_that_lacks_a_needed_value_is_not_written(tmp_path: Path):
    with pytest.raises((pa.ArrowInvalid, ValueError, OSError)):
        write_rows(tmp_path / "a.parquet", LOADS, [row("e1", cpu_ratio="much")])
    assert list(tmp_path.iterdir()) == []


def test_other_files_are_refused_by_name(tmp_path: Path):
    (tmp_path / "text.parquet").write_text("no")
    write_rows(tmp_path / "sessions.parquet", OUTCOMES, [])
    pq.write_table(pa.table({"a": [1]}), tmp_path / "strange.parquet")
    for name, words in (("text", "Parquet"), ("sessions", "holds plimsoll.sessions/1"), ("strange", "something else")):
        with pytest.raises(parquet.ParquetFileError, match=words) as refused:
            parquet.read_rows(tmp_path / f"{name}.parquet", LOADS)
        assert name in str(refused.value)


def test_an_older_file_lacks_only_what_was_added_since(tmp_path: Path):
    old = pa.Table.from_pylist([row("e1")], parquet.arrow_schema(LOADS)).drop_columns(["gaps_total"])
    pq.write_table(
        old.replace_schema_metadata({parquet.VERSION_KEY: parquet.file_version(LOADS)}), tmp_path / "old.parquet"
    )
    assert parquet.read_rows(tmp_path / "old.parquet", LOADS)[0] == row("e1", gaps_total=None)
