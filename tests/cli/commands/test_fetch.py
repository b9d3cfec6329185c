"""`plimsoll fetch` by a connection file, from a recorder with keys; and what it refuses."""

from __future__ import annotations

from pathlib import Path

import polars
import pytest
from tests.feeds.serving.served import Served, served

from plimsoll.cli.contexts.context_file import ContextFile, StoredContext, write_contexts
from plimsoll.client import Address
from plimsoll.client.connection_file import connection_file_text


@pytest.fixture
def here(tmp_path: Path):
    """A recorder, and the context `lab` with the connection file of a client that may read its feed."""
    with served(tmp_path / "s") as found:
        use(found, tmp_path, "ann")
        yield found


def use(found: Served, folder: Path, client: str) -> None:
    feeds = {"stocks": Address(found.server.endpoint, found.public)}
    text = connection_file_text({"east": Address("tcp://127.0.0.1:1", found.public)}, found.pairs[client], feeds)
    (folder / "app.json").write_text(text)
    write_contexts(ContextFile("lab", {"lab": StoredContext(connection_file=str(folder / "app.json"))}))


def test_a_copy_is_made_and_grows(run, here, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    here.record(40)
    assert run("fetch", "stocks") == (0, "40 rows and 0 dead letters fetched; stocks has 40 and 0\n", "")
    here.record(5, hour=1)
    assert run("fetch", "stocks") == (0, "5 rows and 0 dead letters fetched; stocks has 45 and 0\n", "")
    assert polars.read_parquet("stocks/rows/**/*.parquet")["_row"].to_list() == list(range(1, 46))


@pytest.mark.parametrize(("since", "rows"), [("31", 15), ("2025-11-24T16:00:01Z", 5), ("1h", 0), ("2099-01-01", 0)])
def test_a_copy_may_begin_later(run, here, tmp_path, since, rows):
    here.record(40)
    here.record(5, hour=1)
    code, out, err = run("fetch", "stocks", "--to", str(tmp_path / "copy"), "--since", since)
    assert (code, out.startswith(f"{rows} rows and 0 dead letters fetched"), err) == (0, True, "")


@pytest.mark.parametrize("since", ["yesterday", "2026-13-01", "-5", "0h"])
def test_since_is_a_row_or_a_time(run, since):
    code, _, err = run("fetch", "stocks", f"--since={since}")
    assert code == 2
    assert "2026-11-25T16:00:00Z" in err


def test_a_feed_that_is_not_served_is_refused_before_there_is_a_folder(run, here, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = run("fetch", "stock")
    assert code == 3
    assert 'no recorder serves a feed "stock" to this client. Did you mean "stocks"?' in err
    assert not Path("stock").exists()


def test_a_copy_is_not_made_in_an_object_store(run, here):
    code, _, err = run("fetch", "stocks", "--to", "s3a://bucket/stocks")
    assert code == 2
    assert "s3a://bucket/stocks is in an object store: a copy is in a folder" in err
    assert not Path("s3a:").exists()


def test_who_may_not_read_is_told_so(run, here, tmp_path):
    here.record(1)
    here.grant(eve="none")
    here.server._readers.refresh()
    use(here, tmp_path, "eve")
    code, out, err = run("fetch", "stocks", "--to", str(tmp_path / "copy"))
    assert (code, out, err) == (1, "", "plimsoll: eve may not read feeds; its roles lack read\n")


def test_another_dataset_is_not_overwritten(run, here, tmp_path):
    code, _, err = run("fetch", "stocks", "--to", str(tmp_path / "s" / "dataset"))
    assert code == 1
    assert "another recorder writes this dataset" in err


def test_a_feed_is_read_for_the_whole_fleet(run, here, tmp_path):
    code, _, err = run("fetch", "stocks", "--to", str(tmp_path / "copy"), "--cluster", "east")
    assert code == 2
    assert "a feed is recorded for all clusters of its fleet, by one recorder: leave --cluster out" in err
    assert not (tmp_path / "copy").exists()
    assert "--cluster" not in run("fetch", "--help")[1]
