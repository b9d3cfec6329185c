"""A replay from a scripted recorder: all rows once, in order, whatever the recorder does meanwhile; and its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.feeds.publications import HOUR_US, START_US, stock
from tests.feeds.reading.test_dataset_copy import recorded
from tests.feeds.reading.test_fetch_run import Scripted

from plimsoll.feeds.dataset import Retention
from plimsoll.feeds.reading.fetch_run import FetchRun
from plimsoll.feeds.reading.served_publications import ServedPublications
from plimsoll.feeds.reading.table_reader import FeedReadError
from plimsoll.feeds.replay import RecordedPublication, recorded_publications

ROWS = [row for row in range(1, 31) if row % 5]
"""The others are dead letters."""


def read(
    here: Scripted, folder: Path, from_row: int = 1, since_us: int = 0, stopped: Callable[[], bool] = lambda: False
) -> Iterator[RecordedPublication]:
    source = ServedPublications("stocks", folder, from_row, since_us)
    run = FetchRun(
        source, [source.reader], here.connect, here.told.append, lambda: here.now, lambda: START_US + round(here.now)
    )
    try:
        yield from source.read(run, stopped)
    finally:
        run.close()


def rows(read_now: Iterator[RecordedPublication]) -> list[int]:
    return [each.row for each in read_now]


def test_it_has_what_the_files_have(tmp_path: Path) -> None:
    here = Scripted(recorded(tmp_path / "feed"), loses=3)
    assert list(read(here, tmp_path)) == list(recorded_publications(tmp_path / "feed"))
    assert here.connections == 1
    here.dataset.close()


@pytest.mark.parametrize(("from_row", "since_us"), [(13, 0), (1, START_US + HOUR_US + 13), (12, START_US + 5), (31, 0)])
def test_it_may_begin_later(tmp_path: Path, from_row: int, since_us: int) -> None:
    here = Scripted(recorded(tmp_path / "feed"))
    expected = list(recorded_publications(tmp_path / "feed", from_row, since_us))
    assert list(read(here, tmp_path, from_row, since_us)) == expected
    assert [each.row for each in expected] == [
        row for row in ROWS if row >= (13 if since_us > START_US + 5 else from_row)
    ]
    here.dataset.close()


def test_it_ends_at_the_row_that_was_the_last_when_it_began(tmp_path: Path) -> None:
    """A replay into the fleet that records the feed would else go on for ever."""
    here, found = Scripted(recorded(tmp_path / "feed")), list[int]()
    dataset = here.dataset
    for each in read(here, tmp_path):
        found.append(each.row)
        assert len(found) <= len(ROWS)
        dataset.add(stock(100 + each.row), START_US + 2 * HOUR_US + each.row)
        dataset.commit(("head", 1, 100 + each.row), [], START_US + 2 * HOUR_US)
        while each.row % 7 == 0 and dataset.compact(START_US + 9 * HOUR_US):
            pass
    assert found == ROWS
    dataset.close()


def test_a_wait_of_an_hour_between_files_is_no_silence(tmp_path: Path) -> None:
    here, found = Scripted(recorded(tmp_path / "feed")), list[int]()
    for each in read(here, tmp_path):
        found.append(each.row)
        here.now += 360.0
    assert (found, here.told) == (ROWS, [])
    here.dataset.close()


def test_rows_that_retention_deletes_meanwhile_are_told(tmp_path: Path) -> None:
    here, found = Scripted(recorded(tmp_path / "feed")), list[int]()
    for each in read(here, tmp_path):
        if each.row == 1:
            here.dataset.expire(Retention(seconds=1800.0), START_US + 2 * HOUR_US)
        found.append(each.row)
    assert found == [row for row in ROWS if row <= 10 or row > 20]
    (told,) = here.told
    assert told.endswith("retention has deleted them before they were read")
    here.dataset.close()


def test_one_that_is_silent_ends_it_and_what_is_stopped_ends(tmp_path: Path) -> None:
    here = Scripted(recorded(tmp_path / "feed"), away_until=1e9)
    with pytest.raises(FeedReadError, match=r"for 30 s: .*; what was published stays published"):
        rows(read(here, tmp_path))
    assert rows(read(here, tmp_path, stopped=lambda: True)) == []
    here.away_until = 0.0
    assert rows(read(here, tmp_path)) == ROWS
    assert not list(tmp_path.glob("*.parquet")), "one file at a time, and none in the end"
    here.dataset.close()


def test_a_file_behind_the_end_is_not_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, fetched = Scripted(recorded(tmp_path / "feed")), set[str]()
    part = here.part

    def noted(path: str, offset: int, size: int) -> bytes:
        fetched.add(path)
        return part(path, offset, size)

    monkeypatch.setattr(here, "part", noted)
    begun = read(here, tmp_path)
    assert next(begun).row == 1
    known = {file.path for file in here.dataset.state.table("rows")}
    here.dataset.add(stock(31), START_US + 4 * HOUR_US)
    here.dataset.commit(("head", 1, 31), [], START_US + 4 * HOUR_US)
    assert rows(begun) == ROWS[1:]
    assert fetched == known
    here.dataset.close()
