"""Commits of a dataset, with a crash before every step that touches the disk, and in the recovery that follows."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from tests.feeds.publications import HOUR_US, START_US, ScriptedSource, stock

from plimsoll.feeds import commit_log, parquet
from plimsoll.feeds.commit_log import CommitLog, FeedCommit, FeedDatasetError, read_state
from plimsoll.feeds.dataset import FeedDataset, Retention, dataset_files
from plimsoll.feeds.object_path import DatasetPath

SUBSCRIPTION = "[class,=,'STOCK']"
STEPS = ("write_synced", "link", "rename", "unlink", "sync_folder")


class CrashError(BaseException):
    """The process is killed here."""


class Disk:
    """Counts the steps that touch the disk, and crashes before the one with number `crash_at`, half of it done."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.count, self.crash_at = 0, 0
        for name in STEPS:
            patch.setattr(commit_log, name, self._step(getattr(commit_log, name)))
        for name in ("write_rows", "merge_files"):
            patch.setattr(parquet, name, self._step(getattr(parquet, name)))

    def _step(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any) -> Any:
            self.count += 1
            if self.count == self.crash_at:
                if real.__name__ in ("write_synced", "write_rows", "merge_files"):
                    arguments[0].write_bytes(b"half of it")
                raise CrashError
            return real(*arguments)

        return step

    def arm(self, crash_at: int) -> None:
        self.count, self.crash_at = 0, crash_at


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    monkeypatch.setattr(commit_log, "CHECKPOINT_COMMITS", 3)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # a killed process loses nothing that it has written
    return Disk(monkeypatch)


PUBLISHED = [stock(number, **({"odd": 1} if number % 3 == 0 and number > 4 else {})) for number in range(1, 13)]


def life(root: Path, opened: list[FeedDataset]) -> None:
    """One life of a recorder: what is missing, four at a time; the hours' files are merged as it goes."""
    dataset = FeedDataset(root, SUBSCRIPTION)
    opened.append(dataset)
    source = ScriptedSource(PUBLISHED, dataset.position[0] or ("head", 1, 0), most=2)
    while (at := (source.token or ("", 0, 0))[2]) < len(PUBLISHED):
        now_us = START_US + at // 6 * HOUR_US
        for item in source.receive_many():
            dataset.add(item, now_us)
        dataset.commit(source.token, source.watermarks, now_us)
        dataset.compact(now_us)
    for _ in PUBLISHED:  # at most one merge for each: one that changes nothing would go on for ever
        dataset.compact(START_US + 9 * HOUR_US)


def until_crash(root: Path, disk: Disk, crash_at: int) -> bool:
    """Whether the life came to its end before the step."""
    disk.arm(crash_at)
    opened: list[FeedDataset] = []
    try:
        life(root, opened)
    except CrashError:
        return False
    finally:
        for dataset in opened:
            dataset.close()
        disk.arm(0)
    return True


def rows_in(paths: Iterable[DatasetPath]) -> list[int]:
    return [row["_seq"] for path in paths for row in parquet.read_rows(path)]


def check_readers(root: Path, *, exact: bool) -> None:
    """A commit decides: the exact list has each committed publication once, and a glob none that is not committed."""
    try:
        state = read_state(root)
    except FeedDatasetError:
        assert not list(root.glob("rows/**/*.parquet"))
        return
    assert state.last is not None
    received = state.last.counts.received
    listed = [rows_in(dataset_files(root, state, table)) for table in ("rows", "dead-letters")]
    assert sorted(listed[0] + listed[1]) == list(range(1, received + 1))
    assert all(numbers == sorted(numbers) for numbers in listed), "the order of recording"
    for table, numbers in zip(("rows", "dead-letters"), listed, strict=True):
        found = rows_in(sorted(root.glob(f"{table}/**/*.parquet")))
        assert set(found) <= set(numbers)
        if exact:
            assert sorted(found) == numbers


def test_a_crash_before_every_step_loses_nothing_and_repeats_nothing(tmp_path: Path, disk: Disk) -> None:
    for crash_at in itertools.count(1):
        root = tmp_path / str(crash_at)
        ended = until_crash(root, disk, crash_at)
        check_readers(root, exact=ended)
        assert until_crash(root, disk, 0)
        check_readers(root, exact=True)
        state = read_state(root)
        assert state.last is not None
        assert (state.last.counts.received, state.last.counts.dead_letters) == (12, 3)
        assert not list((root / "_staging").iterdir())
        if ended:
            assert crash_at > 60, "the exploration has become small"
            return


def test_a_crash_in_the_recovery_too(tmp_path: Path, disk: Disk) -> None:
    for first in range(5, 60, 11):
        for second in range(1, 14, 3):
            root = tmp_path / f"{first}-{second}"
            until_crash(root, disk, first)
            until_crash(root, disk, second)
            check_readers(root, exact=False)
            assert until_crash(root, disk, 0)
            check_readers(root, exact=True)


def test_two_writers_are_not_possible(tmp_path: Path) -> None:
    log = CommitLog(tmp_path)
    with pytest.raises(FeedDatasetError, match="another recorder writes this dataset"):
        CommitLog(tmp_path)
    log.close()
    CommitLog(tmp_path).close()


def test_a_commit_of_another_machine_is_not_overwritten(tmp_path: Path) -> None:
    log = CommitLog(tmp_path)
    log.commit(FeedCommit(1, 0, SUBSCRIPTION))
    (tmp_path / "_commits" / "000000000002.json").write_bytes(b"{}")
    with pytest.raises(FeedDatasetError, match="another process has written this commit"):
        log.commit(FeedCommit(2, 0, SUBSCRIPTION))
    log.close()


def test_a_missing_or_damaged_commit_is_an_error(tmp_path: Path) -> None:
    log = CommitLog(tmp_path)
    for number in (1, 2, 3):
        log.commit(FeedCommit(number, 0, SUBSCRIPTION))
    log.close()
    middle = tmp_path / "_commits" / "000000000002.json"
    content = middle.read_bytes()
    middle.write_bytes(content[:20])
    with pytest.raises(FeedDatasetError, match="not a commit of a feed"):
        read_state(tmp_path)
    middle.write_bytes(content.replace(b'"format":1', b'"format":9'))
    with pytest.raises(FeedDatasetError, match="has format 9"):
        read_state(tmp_path)
    middle.unlink()
    with pytest.raises(FeedDatasetError, match="commit 2 is missing"):
        CommitLog(tmp_path)
    with pytest.raises(FeedDatasetError, match="no dataset here"):
        read_state(tmp_path / "elsewhere")


def test_retention_survives_crashes(tmp_path: Path, disk: Disk) -> None:
    assert until_crash(tmp_path / "whole", disk, 0)
    for crash_at in range(1, 20):
        root = tmp_path / str(crash_at)
        assert until_crash(root, disk, 0)
        dataset = FeedDataset(root, SUBSCRIPTION)
        disk.arm(crash_at)
        try:
            dataset.expire(Retention(seconds=3600.0), START_US + 2 * HOUR_US - 1)
        except CrashError:
            pass  # the next life goes on
        finally:
            disk.arm(0)
            dataset.close()
        again = FeedDataset(root, SUBSCRIPTION)
        again.expire(Retention(seconds=3600.0), START_US + 2 * HOUR_US - 1)
        kept = [n for table in ("rows", "dead-letters") for n in rows_in(dataset_files(root, again.state, table))]
        assert sorted(kept) == [7, 8, 9, 10, 11, 12]
        assert again.counts.expired_rows == 6
        assert sorted(rows_in(sorted(root.glob("*/**/*.parquet")))) == sorted(kept)
        again.close()
