"""Names and folders of files, and which neighbours are merged."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.feeds.publications import HOUR_US, START_US

from plimsoll.feeds import compaction
from plimsoll.feeds.commit_log import CommitLog, FeedFile
from plimsoll.feeds.compaction import MERGED_BYTES, SMALL_BYTES, compact, file_name, hour_folder


def test_the_folder_of_an_hour_says_which_it_is():
    assert hour_folder(START_US // HOUR_US) == "recorded_day=2025-11-24/recorded_hour=16"
    assert file_name("rows", 7, 41, "-ab") == "rows-000000000007-41-ab.parquet"


def file(number: int, size: int, hour: int = 0) -> FeedFile:
    at = START_US + hour * HOUR_US
    return FeedFile(f"rows/{hour_folder(at // HOUR_US)}/{number}.parquet", "rows", 1, size, number, at, at, number)


def test_small_neighbours_are_merged_up_to_a_size_and_large_ones_stay():
    sizes = [10, SMALL_BYTES, 20, 30, SMALL_BYTES, 40]
    files = [file(number, size) for number, size in enumerate(sizes, 1)]
    assert compaction._small_run(files) == files[2:4]
    many = [file(number, SMALL_BYTES - 1) for number in range(1, 9)]
    assert compaction._small_run(many) == many[: MERGED_BYTES // SMALL_BYTES]


def test_a_change_of_files_needs_a_commit_in_front_of_it(tmp_path: Path):
    log = CommitLog(tmp_path)
    assert compact(log, START_US) == 0
    with pytest.raises(AssertionError, match="come with a commit"):
        compaction.change(log, START_US)
    log.close()
