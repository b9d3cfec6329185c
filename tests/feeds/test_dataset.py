"""Datasets as their readers see them, and what a dataset does not accept."""

from __future__ import annotations

from pathlib import Path

import duckdb
import polars
import pytest
from tests.feeds.publications import HOUR_US, START_US, stock

from plimsoll.feeds.commit_log import FeedDatasetError, FeedState, read_state
from plimsoll.feeds.dataset import FeedDataset, Retention, dataset_files
from plimsoll.feeds.schema import FeedColumn, FeedSchema

SUBSCRIPTION = "[class,=,'STOCK']"


def listed(root: Path, state: FeedState) -> list[str]:
    """The exact list of files, as readers get it."""
    return [str(each) for each in dataset_files(root, state)]


def recorded(root: Path, hours: int = 3, each: int = 10) -> FeedDataset:
    """A dataset of `each` publications an hour, in commits of half of them."""
    dataset = FeedDataset(root, SUBSCRIPTION)
    number = 0
    for hour in range(hours):
        for _ in range(2):
            for _ in range(each // 2):
                number += 1
                more = {"price": "dear"} if number % 10 == 0 else {}
                dataset.add(stock(number, **more), START_US + hour * HOUR_US)
            dataset.commit(("head", 1, number), [("head", 1, number)], START_US + hour * HOUR_US)
    return dataset


def test_duckdb_and_polars_read_a_dataset_alike(tmp_path: Path) -> None:
    recorded(tmp_path).close()
    pattern = str(tmp_path / "rows" / "**" / "*.parquet")
    table = duckdb.read_parquet(pattern, hive_partitioning=True)
    summary = "count(*), sum(volume), min(price), max(_seq), count(distinct recorded_hour), min(_sent)"
    count, volume, price, seq, hours, sent = table.aggregate(summary).fetchall()[0]
    assert (count, volume, price, seq, hours) == (27, sum(n for n in range(1, 31) if n % 10), 0.25, 29, 3)
    frame = polars.read_parquet(pattern, hive_partitioning=True)
    assert (frame.height, frame["volume"].sum(), frame["price"].min(), frame["_seq"].max()) == (
        count,
        volume,
        price,
        seq,
    )
    assert frame["_sent"].min() == sent
    assert frame.schema["price"] == polars.Float64
    assert sorted(polars.read_parquet(listed(tmp_path, read_state(tmp_path)))["_seq"]) == sorted(frame["_seq"])


def test_dead_letters_have_their_reason(tmp_path: Path) -> None:
    recorded(tmp_path).close()
    dead = polars.read_parquet(str(tmp_path / "dead-letters" / "**" / "*.parquet"))
    assert dead["_seq"].to_list() == [10, 20, 30]
    assert set(dead["_reason"]) == {"attribute 'price' is 'dear', not a Number"}
    assert dead["_attributes"][0] == '{"class":"STOCK","price":"dear","volume":10}'
    assert dead["_payload"][0] == b"10"


def test_received_is_rows_and_dead_letters(tmp_path: Path) -> None:
    dataset = recorded(tmp_path)
    assert (dataset.counts.received, dataset.counts.rows, dataset.counts.dead_letters) == (30, 27, 3)
    numbers = [
        row for table in ("rows", "dead-letters")
        for row in polars.read_parquet(str(tmp_path / table / "**" / "*.parquet"))["_row"]
    ]  # fmt: skip
    assert sorted(numbers) == list(range(1, 31))
    dataset.close()


def test_small_files_of_an_hour_become_one_with_the_same_rows(tmp_path: Path) -> None:
    dataset = recorded(tmp_path)
    before = polars.read_parquet(listed(tmp_path, dataset.state))
    assert len(dataset.state.table("rows")) == 6
    merged = []
    while count := dataset.compact(START_US + 2 * HOUR_US):
        merged.append(count)
    assert merged == [2, 2], "the current hour stays as it is"
    assert polars.read_parquet(listed(tmp_path, dataset.state)).equals(before)
    assert len(list(tmp_path.glob("rows/**/*.parquet"))) == 4
    dataset.close()


def test_files_hold_disjoint_ranges_of_rows_though_the_clock_goes_back(tmp_path: Path) -> None:
    dataset = FeedDataset(tmp_path, SUBSCRIPTION)
    for number, hour in enumerate((1, 1, 0, 0, 1, 2, 1, 1), 1):
        dataset.add(stock(number), START_US + hour * HOUR_US)
        if number in (5, 7, 8):
            dataset.commit(("head", 1, number), [], START_US)
    ranges = [(1, 2), (3, 4), (5, 5), (6, 6), (7, 7), (8, 8)]
    assert [(each.first_row, each.last_row) for each in dataset.state.table("rows")] == ranges
    while dataset.compact(START_US + 9 * HOUR_US):
        pass
    merged = [(1, 2), (3, 4), (5, 5), (6, 6), (7, 8)]
    assert [(each.first_row, each.last_row) for each in dataset.state.table("rows")] == merged
    dataset.close()


def test_retention_takes_the_beginning_of_a_table_and_says_up_to_which_row(tmp_path: Path) -> None:
    dataset = FeedDataset(tmp_path, SUBSCRIPTION)
    for number, hour in enumerate((5, 1, 6, 7), 1):
        dataset.add(stock(number), START_US + hour * HOUR_US)
        dataset.commit(("head", 1, number), [], START_US)
    dataset.expire(Retention(seconds=3600.0), START_US + 4 * HOUR_US)
    assert [each.first_row for each in dataset.state.table("rows")] == [1, 2, 3, 4], "row 1 is not old enough"
    dataset.expire(Retention(seconds=3600.0), START_US + 6 * HOUR_US + 1)
    assert [each.first_row for each in dataset.state.table("rows")] == [3, 4]
    dataset.commit(("head", 1, 4), [], START_US)
    assert dataset.state.expired_to("rows") == read_state(tmp_path).expired_to("rows") == 2
    assert dataset.state.expired_to("dead-letters") == 0
    dataset.close()


def test_a_dataset_has_a_name_that_every_commit_keeps(tmp_path: Path) -> None:
    first = recorded(tmp_path / "a")
    assert first.state.last is not None
    name = first.state.last.dataset
    first.close()
    again, other = FeedDataset(tmp_path / "a", SUBSCRIPTION), recorded(tmp_path / "b")
    again.compact(START_US + 9 * HOUR_US)
    assert again.commit(None, [], START_US).dataset == name
    assert other.state.last is not None
    assert other.state.last.dataset not in (name, "")
    again.close()
    other.close()


def test_retention_by_size_keeps_the_newest(tmp_path: Path) -> None:
    dataset = recorded(tmp_path)
    newest = dataset.state.table("rows")[-1]
    assert dataset.expire(Retention(size_bytes=10**9), START_US) == 0
    dataset.expire(Retention(size_bytes=newest.size_bytes), START_US)
    left = [each.path for each in dataset.state.files.values()]
    assert left in ([newest.path], []) or all("recorded_hour" in path for path in left)
    assert sum(each.size_bytes for each in dataset.state.files.values()) <= newest.size_bytes
    assert dataset.counts.expired_rows + sum(each.rows for each in dataset.state.files.values()) == 30
    dataset.close()


def test_another_subscription_or_schema_needs_another_path(tmp_path: Path) -> None:
    recorded(tmp_path).close()
    with pytest.raises(FeedDatasetError, match="was recorded with the subscription"):
        FeedDataset(tmp_path, "[class,=,'BOND']")
    with pytest.raises(FeedDatasetError, match="was recorded with another schema"):
        FeedDataset(tmp_path, SUBSCRIPTION, FeedSchema((FeedColumn("class", "String"),)))
    again = FeedDataset(tmp_path, SUBSCRIPTION)
    assert again.schema is not None
    assert [each.name for each in again.schema.columns] == ["class", "price", "volume"]
    assert again.position == (("head", 1, 30), (("head", 1, 30),))
    again.close()
