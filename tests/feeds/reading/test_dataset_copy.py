"""A copy is a dataset: what it takes, what it refuses, and what a crash at any step leaves of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.feeds.publications import HOUR_US, START_US, stock

from plimsoll.core.protocol import messages as msg
from plimsoll.feeds import commit_log
from plimsoll.feeds.commit_log import TABLES, FeedDatasetError, read_state
from plimsoll.feeds.dataset import FeedDataset
from plimsoll.feeds.reading.dataset_copy import DatasetCopy
from plimsoll.feeds.reading.table_reader import FeedReadError, FileComplete, PartReceived
from plimsoll.feeds.replay import recorded_publications
from plimsoll.feeds.serving.answers import answer
from plimsoll.feeds.serving.catalog import FeedCatalog

SUBSCRIPTION = "[class,=,'STOCK']"
STEPS = ("link", "rename", "unlink", "sync_folder", "write_synced")


class CrashError(BaseException):
    """The process is killed here."""


def recorded(root: Path, hours: int = 3, each: int = 10) -> FeedDataset:
    dataset = FeedDataset(root, SUBSCRIPTION)
    for number in range(1, hours * each + 1):
        now_us = START_US + (number - 1) // each * HOUR_US
        dataset.add(stock(number, **({"price": "dear"} if number % 5 == 0 else {})), now_us + number)
        if number % each == 0:
            dataset.commit(("head", 1, number), [], now_us)
    return dataset


def bring(copy: DatasetCopy, dataset: FeedDataset, from_row: int = 1) -> None:
    """Read all that there is, without a network."""
    catalog = FeedCatalog.of("stocks", dataset.state)

    def part(path: str, offset: int, size: int) -> bytes:
        return (dataset.root / path).read_bytes()[offset : offset + size]

    for reader in copy.readers(from_row):
        while (reader.next_row, bool(reader.dataset)) != (catalog.received + 1, True):
            for request in reader.requests():
                for event in reader.take(answer(catalog, "", request, part)):
                    copy.take(reader, event, START_US)


def rows_of(root: Path) -> list[int]:
    return [each.row for each in recorded_publications(root)]


def test_a_copy_is_replayed_as_the_feed_is(tmp_path: Path) -> None:
    dataset, copy = recorded(tmp_path / "feed"), DatasetCopy(tmp_path / "copy", "stocks")
    bring(copy, dataset)
    assert list(recorded_publications(tmp_path / "copy")) == list(recorded_publications(tmp_path / "feed"))
    assert (copy.counts.rows, copy.counts.dead_letters, copy.counts.received) == (24, 6, 30)
    found = {table: [each.path for each in copy.state.table(table)] for table in TABLES}
    assert all(path.startswith(f"{table}/recorded_day=") for table, paths in found.items() for path in paths)
    while copy.compact(START_US + 10 * HOUR_US):
        pass
    assert rows_of(tmp_path / "copy") == rows_of(tmp_path / "feed")
    copy.close()
    dataset.close()


def test_a_copy_may_begin_at_a_row_or_at_a_time(tmp_path: Path) -> None:
    dataset = recorded(tmp_path / "feed")
    late = DatasetCopy(tmp_path / "row", "stocks")
    bring(late, dataset, from_row=14)
    assert rows_of(tmp_path / "row") == [row for row in range(14, 31) if row % 5]
    late.close()
    recent = DatasetCopy(tmp_path / "time", "stocks", since_us=START_US + HOUR_US + 16)
    bring(recent, dataset)
    assert rows_of(tmp_path / "time") == [row for row in range(16, 31) if row % 5]
    recent.close()
    dataset.close()


def test_a_crash_at_any_step_loses_nothing_and_repeats_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = recorded(tmp_path / "feed", hours=2)
    wanted, crash_at, steps = rows_of(tmp_path / "feed"), 1, 0
    real = {name: getattr(commit_log, name) for name in STEPS}

    def step(name: str) -> Any:
        def run(*arguments: Any) -> None:
            nonlocal steps
            steps += 1
            if steps == crash_at:
                raise CrashError
            real[name](*arguments)

        return run

    for name in STEPS:
        monkeypatch.setattr(commit_log, name, step(name))
    while True:
        root, steps, crashed = tmp_path / f"copy-{crash_at}", 0, False
        try:
            copy = DatasetCopy(root, "stocks")
            bring(copy, dataset)
        except CrashError:
            crashed = True
        finally:
            copy.close()
        steps = 10**6
        again = DatasetCopy(root, "stocks")
        bring(again, dataset)
        again.close()
        assert rows_of(root) == wanted, f"killed in front of step {crash_at}"
        if not crashed:
            break
        crash_at += 1
    assert crash_at > 20
    dataset.close()


def test_a_folder_with_something_else_is_not_touched(tmp_path: Path) -> None:
    dataset = recorded(tmp_path / "feed")
    dataset.close()
    with pytest.raises(FeedDatasetError, match="is a dataset that is recorded here, not a copy of stocks"):
        DatasetCopy(tmp_path / "feed", "stocks")
    dataset = FeedDataset(tmp_path / "feed", SUBSCRIPTION)
    copy = DatasetCopy(tmp_path / "copy", "stocks")
    bring(copy, dataset)
    with pytest.raises(FeedDatasetError, match="another recorder writes this dataset"):
        DatasetCopy(tmp_path / "copy", "stocks")
    copy.close()
    with pytest.raises(FeedDatasetError, match="is a copy of the feed stocks, not a copy of trades"):
        DatasetCopy(tmp_path / "copy", "trades")
    with pytest.raises(FeedDatasetError, match="is a copy of the feed stocks: record to another path"):
        FeedDataset(tmp_path / "copy", SUBSCRIPTION)
    dataset.close()


def test_an_empty_feed_has_an_empty_copy(tmp_path: Path) -> None:
    dataset, copy = FeedDataset(tmp_path / "feed", SUBSCRIPTION), DatasetCopy(tmp_path / "copy", "stocks")
    dataset.commit(None, [], START_US)
    bring(copy, dataset)
    copy.close()
    dataset.close()
    state = read_state(tmp_path / "copy")
    assert state.last is not None
    assert (state.last.subscription, state.last.copy_of, state.files) == (SUBSCRIPTION, "stocks", {})


def test_a_file_with_other_rows_than_its_recorder_says_is_not_taken(tmp_path: Path) -> None:
    dataset, copy = recorded(tmp_path / "feed", hours=1), DatasetCopy(tmp_path / "copy", "stocks")
    (file,) = dataset.state.table("rows")
    content = (dataset.root / file.path).read_bytes()
    right = msg.FeedFileItem(1, 9, 8, len(content), file.first_us, file.last_us)
    for data, claimed, why in (
        (content, msg.FeedFileItem(1, 7, 6, len(content), 5, 6), "has 8 rows, 1 to 9: read it from its folder"),
        (content, msg.FeedFileItem(1, 8, 8, len(content), 5, 6), "has 8 rows, 1 to 9"),
        (b"no Parquet", right, "is damaged: it is not Parquet of a feed"),
    ):
        (reader, _) = copy.readers()
        reader.requests()
        for event in reader.take(msg.FeedFilesPage(1, "d", SUBSCRIPTION, 10, 0, 0, [claimed])):
            copy.take(reader, event, START_US)
        copy.take(reader, PartReceived(0, data), START_US)
        with pytest.raises(FeedReadError, match=why):
            copy.take(reader, FileComplete(claimed, 1), START_US)
        assert copy.is_new, "nothing of it is in the copy"
    copy.close()
    dataset.close()
