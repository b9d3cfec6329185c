"""Datasets in an object store: a crash before every request, a second recorder, and what a path has to look like."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from tests.feeds.publications import HOUR_US, START_US, ScriptedSource, stock
from tests.feeds.stores import CrashError, ScriptedStore, place

from plimsoll.feeds import commit_log, parquet
from plimsoll.feeds.commit_log import FeedDatasetError, KnownCommits, read_last_commit, read_state
from plimsoll.feeds.dataset import FeedDataset, dataset_files
from plimsoll.feeds.object_path import ObjectPath, ObjectStoreError, dataset_root

SUBSCRIPTION = "[class,=,'STOCK']"
PUBLISHED = [stock(number, **({"odd": 1} if number % 3 == 0 and number > 4 else {})) for number in range(1, 10)]


def life(root: ObjectPath) -> None:
    """One life of a recorder: what is missing, three at a time; files are merged as it goes."""
    dataset = FeedDataset(root, SUBSCRIPTION)
    source = ScriptedSource(PUBLISHED, dataset.position[0] or ("head", 1, 0), most=3)
    while (at := (source.token or ("", 0, 0))[2]) < len(PUBLISHED):
        for item in source.receive_many():
            dataset.add(item, START_US + at // 6 * HOUR_US)
        dataset.commit(source.token, source.watermarks, START_US + at // 6 * HOUR_US)
    while dataset.compact(START_US + 9 * HOUR_US):
        pass


def recorded(root: ObjectPath) -> list[int]:
    state = read_state(root)
    found = [
        row["_seq"] for table in ("rows", "dead-letters")
        for path in dataset_files(root, state, table) for row in parquet.read_rows(path)
    ]  # fmt: skip
    assert state.last is not None
    assert state.last.counts.received == len(found)
    return sorted(found)


def test_a_crash_before_every_request_loses_nothing_and_repeats_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_log, "CHECKPOINT_COMMITS", 3)
    for crash_at in itertools.count(1):
        store = ScriptedStore()
        root = place(store, "feeds/stocks")
        store.arm(crash_at)
        try:
            life(root)
        except CrashError:
            if read_last_commit(root) is not None:
                assert recorded(root) == list(range(1, len(recorded(root)) + 1)), "a commit is whole"
            store.arm(0)
            life(root)
        else:
            assert crash_at > 25, "the exploration has become small"
            return
        assert recorded(root) == list(range(1, 10))


def test_a_reader_that_comes_again_reads_each_commit_once() -> None:
    store, known = ScriptedStore(), KnownCommits()
    root = place(store, "feeds/stocks")
    dataset = FeedDataset(root, SUBSCRIPTION)
    for number, each in enumerate(PUBLISHED[:4], 1):
        dataset.add(each, START_US)
        dataset.commit(("head", 1, number), [], START_US)
        store.reads = 0
        assert len(read_state(root, known).files) == number
        assert read_last_commit(root, known) == dataset.state.last
        assert store.reads == 1, "the newest, and for both"
    (root / "_commits" / "000000000004.json").write_bytes((root / "_commits" / "000000000003.json").read_bytes())
    with pytest.raises(FeedDatasetError, match="commit 4 is missing"):
        read_state(root, known)


def test_a_second_recorder_commits_nothing_and_takes_nothing_from_the_first() -> None:
    """Nothing locks a store: both begin, and one has the next commit."""
    root = place(ScriptedStore(), "feeds/stocks")
    first = FeedDataset(root, SUBSCRIPTION)
    staged = root / "_staging" / "rows-of-another.parquet"
    staged.write_bytes(b"about to be committed")
    second = FeedDataset(root, SUBSCRIPTION)
    assert staged.exists(), "it may be about to be committed"
    for dataset in (first, second):
        dataset.add(PUBLISHED[0], START_US)
    first.commit(("head", 1, 1), [], START_US)
    with pytest.raises(FeedDatasetError, match="another process has written this commit"):
        second.commit(("head", 1, 1), [], START_US)
    assert recorded(root) == [1]
    first.add(PUBLISHED[1], START_US)
    first.commit(("head", 1, 2), [], START_US)
    assert recorded(root) == [1, 2]


def test_what_was_staged_long_ago_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    root = place(ScriptedStore(), "feeds/stocks")
    staged = root / "_staging" / "rows-of-a-life-that-ended.parquet"
    staged.write_bytes(b"x")
    monkeypatch.setattr(commit_log, "STAGED_SECONDS", -1.0)
    FeedDataset(root, SUBSCRIPTION)
    assert not staged.exists()


def test_an_object_is_made_once() -> None:
    path = place(ScriptedStore(), "a/b.json")
    path.create(b"1")
    with pytest.raises(FileExistsError):
        path.create(b"2")
    assert path.read_bytes() == b"1"
    path.unlink()
    path.unlink(missing_ok=True)
    with pytest.raises(FileNotFoundError):
        path.read_bytes()


def test_names() -> None:
    path = place(ScriptedStore(), "a/b/c.json")
    assert (path.name, path.stem, str(path.parent)) == ("c.json", "c", "s3a://bucket/a/b")
    path.write_bytes(b"")
    (path.parent / "d" / "e.json").write_bytes(b"")
    assert [each.name for each in path.parent.iterdir()] == ["c.json"]
    assert list(path.parent.glob("*.txt")) == []


@pytest.mark.parametrize("text", ["s3a://bucket", "s3a:///prefix", "gs://bucket/prefix", "s3://bucket/"])
def test_a_place_that_cannot_be_used_is_refused(text: str) -> None:
    with pytest.raises(ObjectStoreError, match="write s3a://BUCKET/PREFIX"):
        dataset_root(text)


def test_a_path_is_a_folder_or_a_place_in_a_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    assert dataset_root("/data/feeds/x") == Path("/data/feeds/x")
    assert str(dataset_root("s3://bucket/feeds/x/")) == "s3://bucket/feeds/x"
