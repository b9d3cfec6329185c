"""The means of past hours, stored for the next run of `history`, and which hours have changed since.

Compacted files are never changed: an hour is up to date if its files are those of its means. Their names are the
watermark, one list for each hour. Table and watermark belong together: a new table has a new folder, and replacing the
watermark, which names it, makes it valid. Copies of a report are at most an hour apart, so the neighbours of a changed
hour are computed again as well, and for each of them its neighbours are read.
"""

from __future__ import annotations

import datetime
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
from pyspark.sql import DataFrame, SparkSession

from plimsoll.sparkjobs.tables import struct_type, write_json
from plimsoll.telemetry.schema import HOURLY, MAJOR, METRICS

SCHEMA: Final = "plimsoll.hours/1"
HOURS_FOLDER: Final = f"model/v{MAJOR}/hours"
WATERMARK: Final = f"{HOURS_FOLDER}/watermark.json"
COLUMNS: Final = f"cluster STRING, hour BIGINT, {', '.join(f'{name} DOUBLE' for name in METRICS)}"
NO_HOUR: Final = -1
"""The hour of files that are in no folder of an hour."""
_PARTITION: Final = re.compile(r"dt=(\d{4})-(\d{2})-(\d{2})/hr=(\d{2})")


class HoursWatermark(msgspec.Struct, frozen=True, kw_only=True):
    """The stored means. `table`: their folder below HOURS_FOLDER; `files`: by hour the names of their files."""

    schema: str = SCHEMA
    fleet: str
    table: str
    files: dict[int, list[str]]


@dataclass(frozen=True, slots=True)
class HourChanges:
    """What a run has to do. `files`: what it must read; `known`: the hours that were stored."""

    computed: frozenset[int]
    kept: frozenset[int]
    known: frozenset[int]
    files: list[Path]


def compacted_files(root: Path) -> dict[int, list[Path]]:
    """The compacted files by hour (hours since 1970)."""
    found: dict[int, list[Path]] = {}
    for path in sorted((root / HOURLY).rglob("*.parquet")):
        found.setdefault(_hour(str(path.parent.relative_to(root / HOURLY))), []).append(path)
    return found


def _hour(folder: str) -> int:
    parts = _PARTITION.fullmatch(folder)
    if parts is None:
        return NO_HOUR
    year, month, day, hour = map(int, parts.groups())
    return int(datetime.datetime(year, month, day, hour, tzinfo=datetime.UTC).timestamp()) // 3600


def read_watermark(root: Path, fleet: str) -> HoursWatermark | None:
    """What is stored; None if it is nothing, of another fleet, or cannot be read: then all hours are computed."""
    try:
        found = msgspec.json.decode((root / WATERMARK).read_bytes(), type=HoursWatermark)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None
    is_usable = (found.schema, found.fleet) == (SCHEMA, fleet) and (root / HOURS_FOLDER / found.table).is_dir()
    return found if is_usable else None


def hours_to_compute(files: Mapping[int, Sequence[Path]], known: HoursWatermark | None) -> HourChanges | None:
    """Which hours to compute, to keep, and to read; None: all of them."""
    if known is None or NO_HOUR in files or NO_HOUR in known.files:
        return None
    names = {hour: [path.name for path in paths] for hour, paths in files.items()}
    changed = {hour for hour in {*names, *known.files} if names.get(hour) != known.files.get(hour)}
    computed = _with_neighbours(changed) & set(names)
    read = _with_neighbours(computed) & set(names)
    return HourChanges(
        frozenset(computed), frozenset(set(names) - computed), frozenset(known.files),
        [path for hour in sorted(read) for path in files[hour]],
    )  # fmt: skip


def _with_neighbours(hours: set[int]) -> set[int]:
    return {hour + step for hour in hours for step in (-1, 0, 1)}


def read_hours(spark: SparkSession, root: Path, known: HoursWatermark | None) -> DataFrame:
    """The stored means; an empty table if there are none."""
    schema = struct_type(COLUMNS)
    if known is None:
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).parquet(str(root / HOURS_FOLDER / known.table))


def write_hours(
    spark: SparkSession, root: Path, fleet: str, files: Mapping[int, Sequence[Path]], table: DataFrame
) -> DataFrame:
    """Store the means of these files, and read them again. Earlier tables are deleted when the new one is valid."""
    name = f"t{time.time_ns() // 1000:016}"
    folder = root / HOURS_FOLDER / name
    table.coalesce(1).write.option("compression", "zstd").parquet(str(folder))
    known = HoursWatermark(
        fleet=fleet, table=name, files={hour: [path.name for path in paths] for hour, paths in files.items()}
    )
    write_json(root / WATERMARK, known)
    for other in (root / HOURS_FOLDER).iterdir():
        if other.is_dir() and other.name != name:
            shutil.rmtree(other)
    return read_hours(spark, root, known)
