"""Copies of what a query reads from a store: each object once in each version, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.channels.datasets import REPORTS, RecordedFeed
from tests.feeds.stores import ScriptedStore, place

from plimsoll.channels import store_copies
from plimsoll.channels.feed_rows import kept_rows
from plimsoll.channels.store_copies import StoreCopies
from plimsoll.feeds.commit_log import FeedDatasetError


def texts(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_a_table_is_fetched_when_it_changes_and_not_again(tmp_path: Path) -> None:
    (tmp_path / "copies").mkdir()
    (tmp_path / "copies" / "of-another-life.csv").write_text("old")
    copies, table = StoreCopies(tmp_path / "copies"), place(ScriptedStore(), "tables/areas")
    with pytest.raises(FeedDatasetError, match="no table here"):
        copies.of_table("t", table)
    (table / "country=a" / "1.csv").write_bytes(b"1")
    (table / "country=b" / "1.csv").write_bytes(b"2")
    folder = copies.of_table("t", table)
    assert texts(tmp_path / "copies") == {"t/country=a/1.csv": "1", "t/country=b/1.csv": "2"}
    assert (copies.of_table("t", table), copies.fetched) == (folder, 2)
    (table / "country=a" / "1.csv").write_bytes(b"3")
    (table / "country=b" / "1.csv").unlink()
    copies.of_table("t", table)
    assert (texts(folder), copies.fetched) == ({"country=a/1.csv": "3"}, 3)


def test_a_table_may_be_one_object(tmp_path: Path) -> None:
    copies, table = StoreCopies(tmp_path / "copies"), place(ScriptedStore(), "tables/areas.csv")
    table.write_bytes(b"1")
    assert copies.of_table("t", table).read_text() == "1"


def test_no_name_in_a_store_leads_out_of_the_folder_and_a_table_has_a_largest_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies, table = StoreCopies(tmp_path / "copies"), place(ScriptedStore(), "tables")
    (table / "areas" / "1.csv").write_bytes(b"12345")
    monkeypatch.setattr(store_copies, "TABLE_BYTES", 4)
    with pytest.raises(FeedDatasetError, match="copies at most"):
        copies.of_table("t", table / "areas")
    monkeypatch.undo()
    listed = (table / "areas").objects()
    for name in ("../up.csv", "a//b.csv", "a/./b.csv"):
        monkeypatch.setattr(type(table), "objects", lambda place, name=name: [listed[0]._replace(name=name)])
        with pytest.raises(FeedDatasetError, match="no file can have this name"):
            copies.of_table("t", table / "areas")
    assert not list(tmp_path.glob("*.csv"))


def test_the_files_of_a_feed_are_fetched_once_also_where_they_are_staged(tmp_path: Path) -> None:
    copies, root = StoreCopies(tmp_path / "copies"), place(ScriptedStore(), "feeds/reports")
    feed = RecordedFeed(root)
    feed.record([{"kind": "fire"}])
    feed.record([{"kind": "flood"}])
    kept = kept_rows(root, REPORTS, None)
    first = kept.files[0]
    (root / first.path).replace(root / "_staging" / first.staged_name)
    found = copies.of_feed("past", root, kept.files)
    assert [path.is_file() for path in found] == [True, True]
    assert copies.of_feed("past", root, kept.files[1:]) == found[1:]
    assert (copies.fetched, found[0].exists()) == (2, False)
    (root / "_staging" / first.staged_name).unlink()
    with pytest.raises(FeedDatasetError, match="was deleted while it was read"):
        copies.of_feed("past", root, kept.files)
