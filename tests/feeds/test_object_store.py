"""A dataset in a real S3 server: recorded, killed in between, merged, and read by Polars and by a channel's batch.

PLIMSOLL_OBJECT_STORE names the server; scripts/build_object_store.sh builds it.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import polars
import pytest
from obstore.store import S3Store
from tests.feeds.publications import START_US, stock
from tests.feeds.stores import CrashError, ScriptedStore
from tests.feeds.test_object_path import PUBLISHED, SUBSCRIPTION, life, recorded

from plimsoll.channels.batch import RowCounts, RowRange
from plimsoll.channels.feed_rows import read_rows
from plimsoll.feeds.commit_log import FeedDatasetError, read_state
from plimsoll.feeds.dataset import FeedDataset, dataset_files
from plimsoll.feeds.object_path import ObjectPath, ObjectStoreError, dataset_root

VARIABLE = "PLIMSOLL_OBJECT_STORE"
BUCKET = "datasets"
KEYS = {"ROOT_ACCESS_KEY": "recorder", "ROOT_SECRET_KEY": "only-for-this-test"}
START_SECONDS = 60.0


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with one bucket."""
    program = os.environ.get(VARIABLE, "")
    if not program or shutil.which(program) is None:
        pytest.skip(f"needs an S3 server: {VARIABLE} is not set; scripts/build_object_store.sh builds one")
    folder = tmp_path_factory.mktemp("buckets")
    (folder / BUCKET).mkdir()
    side = tmp_path_factory.mktemp("sidecar")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = [program, "--port", f"127.0.0.1:{port}", "posix", "--sidecar", str(side), str(folder)]
    log = folder.with_suffix(".log")
    with log.open("w") as out:
        process = subprocess.Popen(command, env={**os.environ, **KEYS}, stdout=out, stderr=out)
    try:
        until = time.monotonic() + START_SECONDS
        while not listens(port):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < until, "the server does not listen"
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)


@pytest.fixture
def root(endpoint: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> ObjectPath:
    """A place of this test's own, found and entered by the environment, as a Secret gives it to a pod."""
    for name, value in (
        ("AWS_ENDPOINT_URL", endpoint), ("AWS_REGION", "us-east-1"), ("AWS_ACCESS_KEY_ID", KEYS["ROOT_ACCESS_KEY"]),
        ("AWS_SECRET_ACCESS_KEY", KEYS["ROOT_SECRET_KEY"]),
    ):  # fmt: skip
        monkeypatch.setenv(name, value)
    found = dataset_root(f"s3a://{BUCKET}/feeds/{request.node.name}")
    assert isinstance(found, ObjectPath)
    return found


def test_what_is_recorded_is_read_by_others_and_by_channels(root: ObjectPath, endpoint: str, tmp_path: Path) -> None:
    life(root)
    life(root)
    assert recorded(root) == list(range(1, len(PUBLISHED) + 1))
    rows, counts = read_rows(root, RowRange(2, 9))
    assert counts == RowCounts(8, rows.num_rows, 0, 2)
    options = {"aws_endpoint_url": endpoint, "aws_access_key_id": KEYS["ROOT_ACCESS_KEY"],
               "aws_secret_access_key": KEYS["ROOT_SECRET_KEY"], "aws_region": "us-east-1"}  # fmt: skip
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
