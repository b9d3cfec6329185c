"""Rows of feeds as Parquet files, with every type of a column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars

from plimsoll.feeds.parquet import dead_letters_schema, merge_files, read_rows, rows_schema, write_rows
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
