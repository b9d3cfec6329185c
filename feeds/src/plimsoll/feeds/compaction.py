"""The files of a dataset: their names and folders, and merging small ones that hold neighbouring rows of one hour."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Final

import msgspec

from plimsoll.feeds import parquet
from plimsoll.feeds.commit_log import TABLES, CommitLog, FeedFile, Table

HOUR_US: Final = 3_600_000_000
MERGE_FILES: Final = 16
"""Small files of a finished hour are merged; those of the current one when there are this number."""
SMALL_BYTES: Final = 32 * 2**20
MERGED_BYTES: Final = 128 * 2**20


def compact(log: CommitLog, now_us: int, life: str = "") -> int:
    """Merge the first files that are worth it; returns how many became one. `life`: goes into the name of the new."""
    for table in TABLES:
        for folder, neighbours in groupby(log.state.table(table), lambda file: file.path.rpartition("/")[0]):
            files = list(neighbours)
            run = _small_run(files)
            finished = files[-1].last_us // HOUR_US < now_us // HOUR_US
            if len(run) >= (2 if finished else MERGE_FILES):
                _merge(log, table, f"{folder}/{file_name(table, log.next_number, run[0].first_row, life)}", run, now_us)
                return len(run)
    return 0


def file_name(table: Table, commit: int, first_row: int, life: str) -> str:
    """The name of a file, which no other of a dataset has, staged or not."""
    return f"{table}-{commit:012d}-{first_row}{life}.parquet"


def hour_folder(hour: int) -> str:
    """The folder of an hour since 1970, in that of its table."""
    at = datetime.fromtimestamp(hour * 3600, UTC)
    return f"recorded_day={at:%Y-%m-%d}/recorded_hour={at:%H}"


def change(log: CommitLog, now_us: int, **fields: Any) -> None:
    """Commit a change of the files of a dataset, which leaves its position as it is."""
    last = log.state.last
    if last is None:
        raise AssertionError("files of a dataset come with a commit")
    plain: dict[str, Any] = {"added": (), "removed": (), "files": None, "gaps": ()}
    log.commit(msgspec.structs.replace(last, number=log.next_number, at_us=now_us, **{**plain, **fields}))


def _merge(log: CommitLog, table: Table, path: str, files: list[FeedFile], now_us: int) -> None:
    size = parquet.merge_files(log.staged(path.rpartition("/")[2]), [log.root / each.path for each in files])
    merged = FeedFile(
        path, table, sum(each.rows for each in files), size, files[0].first_row,
        min(each.first_us for each in files), max(each.last_us for each in files), files[-1].last_row,
    )  # fmt: skip
    change(log, now_us, added=(merged,), removed=tuple(each.path for each in files))


def _small_run(files: list[FeedFile]) -> list[FeedFile]:
    """The first run of neighbours that are worth merging, in the order of recording."""
    run: list[FeedFile] = []
    size = 0
    for file in files:
        if file.size_bytes < SMALL_BYTES and size + file.size_bytes <= MERGED_BYTES:
            run.append(file)
            size += file.size_bytes
        elif len(run) >= 2:
            break
        else:
            run, size = [], 0
    return run
