"""`python -m plimsoll.sparkjobs compact`: merges many small files into one for each hour, without losing a row.

Rows are written to a staging folder and counted again; then a manifest names the new files. From that moment the new
files are valid: they are put in place, and the old ones are deleted. A run finishes every manifest that an interrupted
run has left, and deletes staging folders without one. Copies of a row are kept; readers decide which one counts.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere

from plimsoll.core.printable import printable_lines
from plimsoll.sparkjobs import telemetry_source
from plimsoll.sparkjobs.job_errors import JobInputError, is_spark_error
from plimsoll.sparkjobs.spark_session import make_spark_session
from plimsoll.sparkjobs.tables import write_json
from plimsoll.telemetry.schema import HOURLY, INCOMING, LOADS, MAJOR, SetAsideFile
from plimsoll.telemetry.storage.set_aside import set_aside_unreadable

HOURLY_FOLDER: Final = HOURLY
MANIFEST_FOLDER: Final = f"raw/v{MAJOR}/compactions"
FILES_AT_MOST: Final = 20_000
"""Files for one run; the next one takes the others."""


class CompactionError(JobInputError):
    """Rows or files were lost; no source has been deleted."""


class CompactionManifest(msgspec.Struct):
    """`sources` are paths below the root, `targets` paths below both the staging folder and the hourly folder."""

    id: str
    rows: int
    sources: list[str]
    targets: list[str]


def with_hour_columns(loads: DataFrame) -> DataFrame:
    """Add dt (YYYY-MM-DD) and hr (HH) of `at_us`; rows without a time go to 1970."""
    at = F.timestamp_micros(F.coalesce("at_us", F.lit(0).cast("bigint")))
    return loads.withColumn("dt", F.date_format(at, "yyyy-MM-dd")).withColumn("hr", F.date_format(at, "HH"))


def settled_files(root: Path, older_than_seconds: float, now: float) -> list[Path]:
    """Files old enough for the live job to have read them, the oldest first."""
    found = [(path.stat().st_mtime, path) for path in telemetry_source.finished_files(root / INCOMING)]
    return [path for at, path in sorted(found) if at <= now - older_than_seconds][:FILES_AT_MOST]


def compact(spark: SparkSession, root: Path, files: Sequence[Path], name: str) -> int:
    """Merge these files into one for each hour of their rows; returns the number of rows.

    Raises:
        CompactionError: rows were lost; nothing has changed.

    """
    if not files:
        return 0
    staging = _staging(root, name)
    loads = telemetry_source.read_files(spark, files, telemetry_source.loads_schema())
    rows = loads.count()
    # In the order in which the writer needs them, so that it does not sort them again.
    parts = with_hour_columns(loads).repartition("dt", "hr").sortWithinPartitions("dt", "hr", "at_us")
    parts.write.option("compression", "zstd").partitionBy("dt", "hr").mode("overwrite").parquet(str(staging))
    written = spark.read.schema(telemetry_source.loads_schema()).parquet(str(staging)).count()
    if written != rows:
        shutil.rmtree(staging)
        raise CompactionError(f"{rows} rows were read and {written} written: nothing was deleted")
    targets = _number(staging, name)
    manifest = CompactionManifest(name, rows, [str(path.relative_to(root)) for path in files], targets)
    write_json(root / MANIFEST_FOLDER / f"{name}.json", msgspec.to_builtins(manifest))
    finish_compaction(root, manifest)
    return rows


def _staging(root: Path, name: str) -> Path:
    return root / MANIFEST_FOLDER / f".{name}"


def _number(staging: Path, name: str) -> list[str]:
    """Give the files of a staging folder unique names; returns their paths below it."""
    targets = []
    for number, path in enumerate(sorted(staging.rglob("*.parquet"))):
        renamed = path.with_name(f"{name}-{number:05}.parquet")
        path.replace(renamed)
        targets.append(str(renamed.relative_to(staging)))
    return targets


def finish_compaction(root: Path, manifest: CompactionManifest) -> None:
    """Put the files of a manifest in place and delete their sources. It can be repeated."""
    staging = _staging(root, manifest.id)
    for name in manifest.targets:
        target = root / HOURLY_FOLDER / name
        if (staging / name).exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            (staging / name).replace(target)
        elif not target.exists():
            raise CompactionError(f"{name} of compaction {manifest.id} is missing: its sources are kept")
    for source in manifest.sources:
        (root / source).unlink(missing_ok=True)
    with contextlib.suppress(FileNotFoundError):  # deleted before an interruption
        shutil.rmtree(staging)
    (root / MANIFEST_FOLDER / f"{manifest.id}.json").unlink(missing_ok=True)


def recover_compactions(root: Path) -> int:
    """Finish interrupted compactions that have a manifest and delete the others; returns the number finished."""
    folder = root / MANIFEST_FOLDER
    if not folder.exists():
        return 0
    manifests = [
        msgspec.json.decode(path.read_bytes(), type=CompactionManifest) for path in sorted(folder.glob("[!.]*.json"))
    ]
    for manifest in manifests:
        finish_compaction(root, manifest)
    for staging in folder.glob(".*"):
        shutil.rmtree(staging) if staging.is_dir() else staging.unlink()
    return len(manifests)


def expire_days(root: Path, before: str) -> list[str]:
    """Delete the days before this one (YYYY-MM-DD); returns them."""
    days = [path for path in sorted((root / HOURLY_FOLDER).glob("dt=*")) if path.name.removeprefix("dt=") < before]
    for path in days:
        shutil.rmtree(path)
    return [path.name for path in days]


def run(spark: SparkSession, root: Path, older_than_seconds: float, retain_days: int, now: float) -> dict[str, Any]:
    """Finish earlier compactions, run one, and delete expired days. Files that cannot be read are set aside."""
    recovered = recover_compactions(root)
    files = settled_files(root, older_than_seconds, now)
    name = f"c{time.time_ns() // 1000:016}"
    set_aside: list[SetAsideFile] = []
    try:
        rows = compact(spark, root, files, name)
    except Exception as error:
        if not is_spark_error(error):
            raise
        set_aside = set_aside_unreadable(root, files, LOADS, "compact", time.time_ns() // 1000)
        if not set_aside:
            raise
        files = [path for path in files if path.exists()]
        rows = compact(spark, root, files, name)
    day = time.strftime("%Y-%m-%d", time.gmtime(now - retain_days * 86_400))
    done: dict[str, Any] = {"recovered": recovered, "files": len(files), "rows": rows}
    if set_aside:
        done["set aside"] = [f"{each.file}: {each.reason}" for each in set_aside]
    return {**done, "expired": expire_days(root, day)}


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m plimsoll.sparkjobs compact", description=__doc__)
    parser.add_argument("root", type=Path, help="folder that has raw/")
    parser.add_argument("--older-than", type=float, default=7200.0, metavar="SECONDS", help="skip newer files")
    parser.add_argument("--retain-days", type=int, default=90, help="delete older days (default %(default)s)")
    asked = parser.parse_args(arguments)
    with make_spark_session("plimsoll-compact") as spark:
        done = run(spark, asked.root, asked.older_than, asked.retain_days, time.time())
    sys.stdout.write(printable_lines(", ".join(f"{name} {value}" for name, value in done.items()) + "\n"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
