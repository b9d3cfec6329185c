"""Rows of feeds as Parquet files, with every type of a column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars
import pytest

from plimsoll.feeds.parquet import (
    FileRows,
    dead_letters_schema,
    keep_rows,
    merge_files,
    read_rows,
    row_range,
    rows_schema,
    schema_of,
    write_rows,
)
from plimsoll.feeds.schema import FeedColumn, FeedSchema

SCHEMA = FeedSchema(
    (FeedColumn("s", "String"), FeedColumn("i", "Integer"), FeedColumn("n", "Number"), FeedColumn("b", "Boolean"))
)
COMMON: dict[str, Any] = {
    "_row": 1, "_publisher": "p", "_incarnation": 2, "_seq": 3, "_head": "h", "_head_epoch": 4, "_offset": 5,
    "_sent": 1_764_000_000_123_456, "_recorded": 1_764_000_000_654_321, "_payload": b"\x00\xff",
}  # fmt: skip


def test_what_is_written_is_read(tmp_path: Path) -> None:
    full = {"s": "é", "i": -(2**63), "n": 0.1, "b": False, **COMMON}
    empty = {**COMMON, "_row": 2}
    file = tmp_path / "f.parquet"
    assert write_rows(file, rows_schema(SCHEMA), [full, empty]) == file.stat().st_size
    assert list(read_rows(file)) == [full, {"s": None, "i": None, "n": None, "b": None, **empty}]
    assert polars.read_parquet(file).schema["_sent"] == polars.Datetime("us", "UTC")


def test_merged_files_have_the_rows_of_all_in_their_order(tmp_path: Path) -> None:
    sources = []
    for number in range(3):
        sources.append(tmp_path / f"{number}.parquet")
        rows = [{**COMMON, "_row": number * 10 + each, "_reason": "r", "_attributes": "{}"} for each in range(5)]
        write_rows(sources[-1], dead_letters_schema(), rows)
    merge_files(tmp_path / "all.parquet", sources)
    assert [row["_row"] for row in read_rows(tmp_path / "all.parquet")] == [
        0,
        1,
        2,
        3,
        4,
        *range(10, 15),
        *range(20, 25),
    ]
    assert polars.read_parquet(tmp_path / "all.parquet").columns == polars.read_parquet(sources[0]).columns


def numbered(path: Path, numbers: list[int]) -> Path:
    """A file with these rows, each recorded at its number."""
    write_rows(path, rows_schema(SCHEMA), [{**COMMON, "_row": each, "_recorded": each} for each in numbers])
    return path


def test_rows_from_a_number_and_a_time_on_are_kept(tmp_path: Path) -> None:
    source, kept = numbered(tmp_path / "f.parquet", [3, 5, 8, 9]), tmp_path / "kept.parquet"
    for row, since, numbers in ((0, 0, [3, 5, 8, 9]), (5, 0, [5, 8, 9]), (4, 9, [9])):
        found = keep_rows(kept, source, row, since)
        size = kept.stat().st_size
        assert found == FileRows(numbers[0], numbers[-1], len(numbers), size, numbers[0], numbers[-1])
        assert [each["_row"] for each in read_rows(kept)] == numbers
        kept.unlink()
    assert keep_rows(kept, source, 10, 0) is None
    assert not kept.exists()


def test_the_rows_of_a_file_are_counted_and_have_to_rise(tmp_path: Path) -> None:
    assert row_range(numbered(tmp_path / "f.parquet", [3, 5, 9])) == (3, 3, 9)
    assert row_range(numbered(tmp_path / "one.parquet", [7])) == (1, 7, 7)
    for name, numbers in (("twice", [3, 3]), ("back", [5, 3]), ("none", [])):
        with pytest.raises(ValueError, match="its rows are not in order"):
            row_range(numbered(tmp_path / name, numbers))
    (tmp_path / "text").write_bytes(b"PAR1 is not enough PAR1")
    with pytest.raises(ValueError, match="it is not Parquet of a feed"):
        row_range(tmp_path / "text")


def test_the_schema_of_a_feed_is_in_its_files(tmp_path: Path) -> None:
    columns = (FeedColumn("s", "String", required=True), *SCHEMA.columns[1:])
    write_rows(tmp_path / "f.parquet", rows_schema(FeedSchema(columns)), [{**COMMON, "s": "x"}])
    assert schema_of(tmp_path / "f.parquet") == FeedSchema(columns)
