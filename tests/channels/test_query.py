"""Queries of channels in a real Spark: what a check refuses and where, and one run for all parameters."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.sparkjobs import needs  # noqa: F401  # skips this module by name where Spark cannot run

from plimsoll.channels.config import ChannelDefinition, ChannelParameter, FeedView, TableView
from plimsoll.channels.feed_rows import KeptRows
from plimsoll.channels.query import ChannelQuery, QueryError, TableError
from plimsoll.channels.store_copies import StoreCopies
from plimsoll.feeds import parquet
from plimsoll.feeds.commit_log import FeedFile
from plimsoll.feeds.schema import FeedColumn, FeedSchema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = FeedSchema((FeedColumn("kind", "String", required=True), FeedColumn("area", "Integer")))
GOOD = "SELECT p.kind, r.area\nFROM parameters p JOIN r ON r.kind = p.kind"


def channel(query: str, tables: tuple[TableView, ...] = (), *, allows_unkeyed: bool = False) -> ChannelDefinition:
    feeds = (FeedView("r", "reports", "unused"), FeedView("past", "reports", "unused", is_new=False))
    return ChannelDefinition(
        "c", (ChannelParameter("kind", "String"),), feeds, query, tables, allows_unkeyed=allows_unkeyed
    )


def copies(folder: Path) -> StoreCopies:
    return StoreCopies(folder / "copies")


def batch(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """New rows of the feed, as a streaming query hands them over."""
    (column,) = rows.combine_chunks().to_struct_array().chunks
    return spark.createDataFrame(pa.table({"reports": column}))


def rows(*found: tuple[str, int]) -> pa.Table:
    filled: dict[str, Any] = {
        "_row": 1, "_publisher": "p", "_incarnation": 1, "_seq": 1, "_head": "h", "_head_epoch": 1, "_offset": 1,
        "_sent": 0, "_recorded": 0, "_payload": b"",
    }  # fmt: skip
    kind = parquet.rows_schema(SCHEMA)
    table = [{**filled, "kind": name, "area": area} for name, area in found]
    return pa.Table.from_arrays([pa.array([row[each.name] for row in table], each.type) for each in kind], schema=kind)


def test_a_good_query_is_checked_without_a_row_and_runs_for_all_parameters(spark: SparkSession, tmp_path: Path):
    places = tmp_path / "places.csv"
    places.write_text("area,name\n1,north\n2,south\n")
    query = ChannelQuery(
        spark,
        channel(
            "SELECT p.kind, t.name, count(past.area) AS before FROM parameters p JOIN r ON r.kind = p.kind"
            " JOIN t ON t.area = r.area LEFT JOIN past ON past.kind = p.kind AND past.area = r.area GROUP BY ALL",
            (TableView("t", str(places), "Csv"),),
        ),
        copies(tmp_path),
    )
    query.check({"reports": SCHEMA})
    kept = tmp_path / "rows" / "kept.parquet"
    kept.parent.mkdir()
    parquet.write_rows(kept, parquet.rows_schema(SCHEMA), rows(("fire", 1), ("fire", 1), ("flood", 2)).to_pylist())
    new = batch(query.session, rows(("fire", 1), ("flood", 2), ("storm", 1)))
    files = [FeedFile("rows/kept.parquet", "rows", 3, 1, 1, 1, 1)]
    past = KeptRows(tmp_path, SCHEMA, files)
    found = query.run([("fire",), ("flood",)], new, {"past": past})
    assert sorted(tuple(row.values()) for row in found) == [("fire", "north", 2), ("flood", "south", 1)]
    assert query.run([("fire",)], new, {"past": past._replace(since_us=10)})[0]["before"] == 0
    assert query.run([("fire",)], new, {"past": past._replace(files=[])})[0]["before"] == 0


@pytest.mark.parametrize(
    ("query", "is_unkeyed", "found"),
    [
        ("SELECT p.kind, r.aera\nFROM parameters p JOIN r ON r.kind = p.kind", False, "line 1, column 16: "),
        ("SELECT p.kind\nFROM parameters p JOIN reports ON true", False, "line 2, column 24: "),
        ("SELECT p.kind\nFORM parameters", False, "line 2, column 6: "),
        ("SELECT r.area FROM parameters p JOIN r ON r.kind = p.kind", False, 'no column "kind"'),
        ("SELECT r.area AS kind FROM parameters p JOIN r ON r.kind = p.kind", False, '"kind" is bigint'),
        ("SELECT p.kind, r.kind FROM parameters p JOIN r ON r.kind = p.kind", False, 'two columns "kind"'),
        ("SELECT kind, area AS batch FROM parameters JOIN r USING (kind)", False, 'attribute "batch"'),
        ("SELECT kind, array(area) AS some FROM parameters JOIN r USING (kind)", False, '"some" is array'),
        ("SELECT p.kind, r.area FROM parameters p CROSS JOIN r", True, "without an equality"),
        ("SELECT p.kind, r.area FROM parameters p JOIN r ON r.area > 3", True, "without an equality"),
    ],
)
def test_a_wrong_query_is_refused_with_its_place(
    spark: SparkSession, tmp_path: Path, query: str, is_unkeyed: bool, found: str
):
    with pytest.raises(QueryError) as caught:
        ChannelQuery(spark, channel(query), copies(tmp_path)).check({"reports": SCHEMA})
    assert caught.value.is_unkeyed is is_unkeyed
    assert found in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_join_without_a_key_may_be_asked_for_and_a_missing_table_is_named(spark: SparkSession, tmp_path: Path):
    cross = "SELECT p.kind, r.area FROM parameters p CROSS JOIN r"
    ChannelQuery(spark, channel(cross, allows_unkeyed=True), copies(tmp_path)).check({"reports": SCHEMA})
    missing = channel(GOOD, (TableView("t", str(tmp_path / "nothing-here")),))
    query = ChannelQuery(spark, missing, copies(tmp_path))
    with pytest.raises(TableError, match=r"^table t: \[PATH_NOT_FOUND\].*nothing-here"):
        query.check({"reports": SCHEMA})


def test_a_file_that_is_no_table_is_named_in_one_line(spark: SparkSession, tmp_path: Path):
    (tmp_path / "t.parquet").write_bytes(b"no table")
    query = ChannelQuery(spark, channel(GOOD, (TableView("t", str(tmp_path / "t.parquet")),)), copies(tmp_path))
    with pytest.raises(TableError, match=r"^table t: .*t\.parquet") as caught:
        query.check({"reports": SCHEMA})
    assert len(str(caught.value)) < 700, "no trace of Java"
    assert "\n" not in str(caught.value)


def test_two_views_of_one_feed_reach_back_as_far_as_each_says(spark: SparkSession, tmp_path: Path):
    feeds = (FeedView("r", "reports", ""), *(FeedView(name, "reports", "", is_new=False) for name in ("old", "recent")))
    text = (
        "SELECT p.kind, (SELECT count(*) FROM old) AS old, (SELECT count(*) FROM recent) AS recent"
        " FROM parameters p JOIN r ON r.kind = p.kind"
    )
    query = ChannelQuery(
        spark, ChannelDefinition("c", (ChannelParameter("kind", "String"),), feeds, text), copies(tmp_path)
    )
    (tmp_path / "rows").mkdir()
    kept = rows(("fire", 1), ("fire", 2)).to_pylist()
    parquet.write_rows(tmp_path / "rows" / "kept.parquet", parquet.rows_schema(SCHEMA), kept)
    every = KeptRows(tmp_path, SCHEMA, [FeedFile("rows/kept.parquet", "rows", 2, 1, 1, 1, 1)])
    new = batch(query.session, rows(("fire", 1)))
    found = query.run([("fire",)], new, {"old": every, "recent": every._replace(since_us=10)})
    assert found == [{"kind": "fire", "old": 2, "recent": 0}]
