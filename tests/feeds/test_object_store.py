"""A dataset in a real S3 server: recorded, killed in between, merged, and read by Polars and by a channel's batch.

`s3_server` says what it needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars
import pytest
from obstore.store import S3Store
from tests.feeds.publications import START_US, stock
from tests.feeds.s3_server import BUCKET, running_store
from tests.feeds.stores import CrashError, ScriptedStore
from tests.feeds.test_object_path import PUBLISHED, SUBSCRIPTION, life, recorded

from plimsoll.channels.batch import RowCounts, RowRange
from plimsoll.channels.feed_rows import read_rows
from plimsoll.feeds.commit_log import FeedDatasetError, read_state
from plimsoll.feeds.dataset import FeedDataset, dataset_files
from plimsoll.feeds.object_path import ObjectPath, ObjectStoreError, dataset_root


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """The environment of a server with one bucket."""
    with running_store(tmp_path_factory.mktemp("store")) as environment:
        yield environment


@pytest.fixture
def root(store: Mapping[str, str], monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> ObjectPath:
    """A place of this test's own."""
    for name, value in store.items():
        monkeypatch.setenv(name, value)
    found = dataset_root(f"s3a://{BUCKET}/feeds/{request.node.name}")
    assert isinstance(found, ObjectPath)
    return found


def test_what_is_recorded_is_read_by_others_and_by_channels(root: ObjectPath, store: Mapping[str, str]) -> None:
    life(root)
    life(root)
    assert recorded(root) == list(range(1, len(PUBLISHED) + 1))
    rows, counts = read_rows(root, RowRange(2, 9))
    assert counts == RowCounts(8, rows.num_rows, 0, 2)
    options = {name.lower(): value for name, value in store.items()}
    files = [str(each).replace("s3a://", "s3://") for each in dataset_files(root, read_state(root))]
    frame = polars.read_parquet(files, storage_options=options)
    assert frame["_seq"].to_list() == [row for row in range(1, 10) if row not in (6, 9)]


@pytest.mark.parametrize("crash_at", [2, 5, 9, 14])
def test_a_recorder_that_is_killed_goes_on(root: ObjectPath, crash_at: int) -> None:
    store = ScriptedStore(S3Store(BUCKET, client_options={"allow_http": True}))
    killed = ObjectPath(store, f"s3a://{BUCKET}", f"feeds/killed-{crash_at}")
    store.arm(crash_at)
    with pytest.raises(CrashError):
        life(killed)
    store.arm(0)
    life(killed)
    assert recorded(killed) == list(range(1, len(PUBLISHED) + 1))


def test_a_commit_that_exists_is_refused_by_the_server(root: ObjectPath) -> None:
    first, second = FeedDataset(root, SUBSCRIPTION), FeedDataset(root, SUBSCRIPTION)
    for dataset in (first, second):
        dataset.add(stock(1), START_US)
    first.commit(("head", 1, 1), [], START_US)
    with pytest.raises(FeedDatasetError, match="another process has written this commit"):
        second.commit(("head", 1, 1), [], START_US)
    assert recorded(root) == [1]


def test_wrong_credentials_are_told(root: ObjectPath, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    with pytest.raises(ObjectStoreError, match=f"s3a://{BUCKET}/feeds"):
        FeedDataset(dataset_root(str(root)), SUBSCRIPTION)
