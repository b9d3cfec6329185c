"""Which hours have to be computed again, and a table and its watermark that are valid together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.sparkjobs import needs  # noqa: F401  # skips this module by name where Spark cannot run

from plimsoll.sparkjobs import stored_hours
from plimsoll.sparkjobs.stored_hours import (
    HOURS_FOLDER,
    NO_HOUR,
    WATERMARK,
    HoursWatermark,
    compacted_files,
    hours_to_compute,
    read_hours,
    read_watermark,
    write_hours,
)
from plimsoll.telemetry.schema import HOURLY, METRICS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def files(**hours: list[str]) -> dict[int, list[Path]]:
    return {int(hour.removeprefix("h")): [Path("x") / name for name in names] for hour, names in hours.items()}


def known(**hours: list[str]) -> HoursWatermark:
    return HoursWatermark(
        fleet="f", table="t", files={int(hour.removeprefix("h")): names for hour, names in hours.items()}
    )


def test_files_belong_to_the_hours_of_their_folders(tmp_path: Path):
    for name in ("dt=1970-01-02/hr=03/b", "dt=1970-01-02/hr=03/a", "dt=2025-11-24/hr=15/c", "d"):
        path = tmp_path / HOURLY / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    found = {hour: [path.stem for path in paths] for hour, paths in compacted_files(tmp_path).items()}
    assert found == {27: ["a", "b"], 489_999: ["c"], NO_HOUR: ["d"]}


def test_changed_hours_and_those_beside_them_are_computed_and_their_neighbours_read():
    all_hours = files(**{f"h{hour}": [f"{hour}.parquet"] for hour in range(10)})
    before = known(**{f"h{hour}": [f"{hour}.parquet"] for hour in range(9)})
    found = hours_to_compute(all_hours, before)
    assert found is not None
    assert (found.computed, found.kept) == (frozenset({8, 9}), frozenset(range(8)))
    assert [path.stem for path in found.files] == ["7", "8", "9"]
    # A second file of an hour, and an hour that has expired.
    changed = hours_to_compute({**all_hours, 4: [Path("4.parquet"), Path("n.parquet")]}, before)
    assert changed is not None
    assert changed.computed == {3, 4, 5, 8, 9}
    gone = hours_to_compute({hour: paths for hour, paths in all_hours.items() if 0 < hour < 9}, before)
    assert gone is not None
    assert (gone.computed, 0 in gone.kept) == (frozenset({1}), False)
    same = hours_to_compute({hour: all_hours[hour] for hour in range(9)}, before)
    assert same is not None
    assert (same.computed, same.files, same.kept) == (frozenset(), [], same.known)


def test_everything_is_computed_if_nothing_is_known_or_a_file_has_no_hour():
    assert hours_to_compute(files(h1=["a"]), None) is None
    assert hours_to_compute({NO_HOUR: [Path("a")]}, known(h1=["a"])) is None
    assert hours_to_compute(files(h1=["a"]), HoursWatermark(fleet="f", table="t", files={NO_HOUR: ["a"]})) is None


def table(spark: SparkSession, *hours: int) -> DataFrame:
    return spark.createDataFrame([("c", hour, *(float(hour) for _ in METRICS)) for hour in hours], stored_hours.COLUMNS)


@pytest.mark.sweep
def test_a_table_is_read_as_it_was_written_and_the_one_before_is_deleted(spark: SparkSession, tmp_path: Path):
    assert read_watermark(tmp_path, "f") is None
    assert read_hours(spark, tmp_path, None).count() == 0
    write_hours(spark, tmp_path, "f", files(h1=["a"]), table(spark, 1))
    first = read_watermark(tmp_path, "f")
    assert first is not None
    # The new table is made from the old one.
    both = read_hours(spark, tmp_path, first).unionByName(table(spark, 2))
    found = write_hours(spark, tmp_path, "f", files(h1=["a"], h2=["b"]), both)
    assert sorted(row["hour"] for row in found.collect()) == [1, 2]
    second = read_watermark(tmp_path, "f")
    assert second is not None
    assert second.files == {1: ["a"], 2: ["b"]}
    assert [path.name for path in (tmp_path / HOURS_FOLDER).iterdir() if path.is_dir()] == [second.table]
    assert read_watermark(tmp_path, "another") is None
    (tmp_path / WATERMARK).write_text("{")
    assert read_watermark(tmp_path, "f") is None
