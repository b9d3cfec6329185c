"""Rows of a feed by number: through dead letters, merges and retention, each accounted for once."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.channels.datasets import REPORTS, RecordedFeed

from plimsoll.channels import feed_rows
from plimsoll.channels.batch import RowCounts, RowRange
from plimsoll.channels.feed_rows import feed_end, feed_schema, kept_rows, read_rows
from plimsoll.feeds.commit_log import FeedDatasetError, read_state
from plimsoll.feeds.dataset import Retention


@pytest.fixture
def feed(tmp_path: Path) -> Iterator[RecordedFeed]:
    made = RecordedFeed(tmp_path / "feed")
    yield made
    made.close()


def end_of(feed: RecordedFeed) -> int:
    found = feed_end(feed.root)
    assert found is not None
    assert found.dataset
    return found.row


def numbers(feed: RecordedFeed, first: int, last: int) -> list[int]:
    found: list[int] = read_rows(feed.root, RowRange(first, last))[0].column("_row").to_pylist()
    return found


def test_a_range_is_read_across_files_and_dead_letters_are_invalid(feed: RecordedFeed):
    feed.record([{"kind": "fire"}, {"kind": 5}, {"kind": "flood"}])
    feed.record([{"kind": "fire"}])
    assert end_of(feed) == 4
    rows, counts = read_rows(feed.root, RowRange(2, 4))
    assert rows.column("_row").to_pylist() == [3, 4]
    assert rows.column("kind").to_pylist() == ["flood", "fire"]
    assert counts == RowCounts(3, 2, 0, 1)
    assert read_rows(feed.root, RowRange(5, 4))[1] == RowCounts()


def test_what_retention_has_deleted_is_late(feed: RecordedFeed):
    feed.record([{"kind": "fire"}, {"kind": "fire"}])
    feed.next_hour()
    feed.record([{"kind": "flood"}])
    feed.dataset.expire(Retention(seconds=10), feed.now_us)
    rows, counts = read_rows(feed.root, RowRange(1, 3))
    assert rows.column("_row").to_pylist() == [3]
    assert counts == RowCounts(3, 1, 2, 0)


def test_ranges_of_any_cut_have_each_row_once_whatever_is_merged_meanwhile(feed: RecordedFeed):
    drawn, place, seen, counts = random.Random(3), 0, [], RowCounts()
    for _ in range(40):
        feed.record([{"kind": "a" if drawn.random() < 0.8 else 7} for _ in range(drawn.randrange(4))])
        if drawn.random() < 0.3:
            feed.next_hour()
        feed.dataset.compact(feed.now_us)
        end = min(end_of(feed), place + drawn.randrange(6))
        rows, more = read_rows(feed.root, RowRange(place + 1, end))
        seen += rows.column("_row").to_pylist()
        place, counts = end, counts + more
    rows, more = read_rows(feed.root, RowRange(place + 1, feed.number))
    counts = counts + more
    seen += rows.column("_row").to_pylist()
    assert seen == sorted(set(seen))
    assert (counts.rows_in, counts.used, counts.late) == (feed.number, len(seen), 0)
    assert counts.used + counts.invalid == feed.number


def test_files_that_are_merged_while_they_are_read_are_looked_up_again(
    feed: RecordedFeed, monkeypatch: pytest.MonkeyPatch
):
    feed.record([{"kind": "fire"}])
    feed.record([{"kind": "flood"}])
    feed.next_hour()
    old, states = read_state(feed.root), []

    def read(root: Path, known: object) -> object:
        states.append(root)
        if len(states) == 1:
            feed.dataset.compact(feed.now_us)
            return old
        return read_state(root)

    monkeypatch.setattr(feed_rows, "read_state", read)
    assert numbers(feed, 1, 2) == [1, 2]
    assert len(states) == 2


def test_files_that_never_stay_are_an_error(feed: RecordedFeed, monkeypatch: pytest.MonkeyPatch):
    feed.record([{"kind": "fire"}])
    for path in feed.root.glob("rows/**/*.parquet"):
        path.unlink()
    with pytest.raises(FeedDatasetError, match="change too fast"):
        read_rows(feed.root, RowRange(1, 1))


def test_all_files_or_those_of_late(feed: RecordedFeed, tmp_path: Path):
    feed.record([{"kind": "fire"}])
    feed.next_hour()
    feed.record([{"kind": "flood"}])
    assert len(kept_rows(feed.root, REPORTS, None).places()) == 2
    [late] = kept_rows(feed.root, REPORTS, feed.now_us).places()
    assert "000000000003" in late.name
    assert feed_schema(feed.root) == REPORTS
    assert (feed_schema(tmp_path / "none"), feed_end(tmp_path / "none")) == (None, None)


def test_rows_of_another_dataset_of_this_name_are_not_read(feed: RecordedFeed):
    feed.record([{"kind": "fire"}])
    name = feed.dataset.state.last.dataset if feed.dataset.state.last is not None else ""
    assert read_rows(feed.root, RowRange(1, 1), dataset=name)[1] == RowCounts(1, 1)
    with pytest.raises(FeedDatasetError, match="recorded again"):
        read_rows(feed.root, RowRange(1, 1), dataset="another")
