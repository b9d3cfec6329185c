"""Many files become one for each hour; an interruption loses no row."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from tests.sparkjobs import needs  # noqa: F401  # skips this module by name where Spark cannot run
from tests.sparkjobs.traces import disturbed, trace, write_files
from tests.telemetry.rows import row

from plimsoll.sparkjobs import telemetry_source
from plimsoll.sparkjobs.jobs import compact
from plimsoll.sparkjobs.jobs.compact import (
    HOURLY_FOLDER,
    MANIFEST_FOLDER,
    CompactionError,
    CompactionManifest,
    expire_days,
    finish_compaction,
    recover_compactions,
    settled_files,
)
from plimsoll.telemetry.schema import INCOMING
from plimsoll.telemetry.storage.set_aside import files_set_aside

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = (Path(__file__).parents[3] / "docs" / "jobs.md").read_text()
HOUR_US = 3_600_000_000
START_US = 490_000 * HOUR_US


def rows_of(spark: SparkSession, files: list[Path]) -> Counter[Any]:
    frame = telemetry_source.read_files(spark, files, telemetry_source.loads_schema())
    return Counter((one["broker"], one["epoch"], one["seq"], one["collector"]) for one in frame.collect())


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_rows_move_into_files_of_their_hours_and_an_interrupted_run_is_finished(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    rows = disturbed(1, trace(1, START_US + 60_000_000, seconds=120))  # over a full hour
    files = write_files(tmp_path, rows, 6)
    old, new = files[:5], files[5]
    for path in old:
        os.utime(path, (1000, 1000))
    before = rows_of(spark, files)
    assert settled_files(tmp_path, 100, now=1100) == old
    assert settled_files(tmp_path, 101, now=1100) == []

    # It is interrupted when the manifest is written and no file is in place.
    with monkeypatch.context() as context:
        context.setattr(compact, "finish_compaction", lambda root, manifest: None)
        compact.run(spark, tmp_path, 100, retain_days=30_000, now=1100)
    assert len(list((tmp_path / MANIFEST_FOLDER).glob("*.json"))) == 1
    assert not (tmp_path / HOURLY_FOLDER).exists()
    assert recover_compactions(tmp_path) == 1
    hours = sorted((tmp_path / HOURLY_FOLDER).rglob("*.parquet"))
    assert [path.parent.name for path in hours] == ["hr=15", "hr=16"]
    assert hours[0].parent.parent.name == "dt=2025-11-24"
    assert telemetry_source.finished_files(tmp_path / INCOMING) == [new]
    assert rows_of(spark, [*hours, new]) == before
    assert list((tmp_path / MANIFEST_FOLDER).iterdir()) == []

    # Without files nothing is done, and a staging folder without a manifest is deleted.
    (tmp_path / MANIFEST_FOLDER / ".c1").mkdir()
    assert compact.run(spark, tmp_path, 100, 30_000, 1100) == {"recovered": 0, "files": 0, "rows": 0, "expired": []}
    assert list((tmp_path / MANIFEST_FOLDER).iterdir()) == []
    assert expire_days(tmp_path, "2025-11-24") == []
    assert expire_days(tmp_path, "2025-11-25") == ["dt=2025-11-24"]


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_query_of_the_page_works(spark: SparkSession, tmp_path: Path):
    """An hour of a Monday, with a head whose rows must not count, and the hour after it."""
    at_us = START_US + HOUR_US // 2
    busy = [row("e1", seq, at_us + seq, output_utilization=seq / 10) for seq in range(1, 5)]
    later = [row("e1", 9, at_us + HOUR_US, output_utilization=0.125)]
    head = row("h", 1, at_us, role="head", output_utilization=0.99)
    for path in write_files(tmp_path, [*busy, head, *later], 2):
        os.utime(path, (1000, 1000))
    compact.run(spark, tmp_path, 100, retain_days=30_000, now=1100)
    query = PAGE.split("```sql\n")[1].split("```")[0]
    assert query.count("telemetry/raw") == 1
    found = spark.sql(query.replace("telemetry/raw", f"{tmp_path}/raw")).collect()
    assert [tuple(each) for each in found] == [(2, 16, pytest.approx(0.25), 0.4), (2, 17, 0.125, 0.125)]


def test_a_missing_file_keeps_its_sources(tmp_path: Path):
    source = tmp_path / INCOMING / "a.parquet"
    source.parent.mkdir(parents=True)
    source.touch()
    manifest = CompactionManifest("c1", 1, [str(source.relative_to(tmp_path))], ["dt=2025-11-24/hr=15/c1-0.parquet"])
    (tmp_path / MANIFEST_FOLDER).mkdir(parents=True)
    (tmp_path / MANIFEST_FOLDER / "c1.json").write_bytes(msgspec.json.encode(manifest))
    with pytest.raises(CompactionError, match="is missing"):
        finish_compaction(tmp_path, manifest)
    assert source.exists()


def test_what_cannot_be_deleted_stays_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The manifest stays with its folder, so that the next compaction deletes both."""
    staging = tmp_path / MANIFEST_FOLDER / ".c1"
    staging.mkdir(parents=True)
    manifest = CompactionManifest("c1", 0, [], [])
    (tmp_path / MANIFEST_FOLDER / "c1.json").write_bytes(msgspec.json.encode(manifest))

    def refused(path: Path) -> None:
        raise PermissionError(path)

    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", refused)
        with pytest.raises(PermissionError):
            finish_compaction(tmp_path, manifest)
    assert recover_compactions(tmp_path) == 1
    assert list((tmp_path / MANIFEST_FOLDER).iterdir()) == []


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_file_that_cannot_be_read_is_set_aside_and_the_others_are_merged(spark: SparkSession, tmp_path: Path):
    rows = trace(2, START_US, clusters=1, edges=1, seconds=20)
    files = write_files(tmp_path, rows, 2)
    half = files[0].with_name("half.parquet")
    half.write_bytes(files[0].read_bytes()[:1500])
    for path in (*files, half):
        os.utime(path, (1000, 1000))
    done = compact.run(spark, tmp_path, 100, retain_days=30_000, now=1100)
    assert (done["files"], done["rows"]) == (2, len(rows))
    assert [each.file for each in files_set_aside(tmp_path)] == ["half.parquet"]
    assert done["set aside"][0].startswith("half.parquet: not Parquet, or damaged")


def test_a_lost_row_stops_the_compaction(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    files = write_files(tmp_path, trace(2, START_US, clusters=1, edges=1, seconds=20), 1)
    loses = compact.with_hour_columns
    monkeypatch.setattr(compact, "with_hour_columns", lambda loads: loses(loads).limit(3))
    with pytest.raises(CompactionError, match="nothing was deleted"):
        compact.compact(spark, tmp_path, files, "c1")
    assert files[0].exists()
    assert not (tmp_path / HOURLY_FOLDER).exists()
