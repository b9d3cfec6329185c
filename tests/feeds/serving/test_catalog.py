"""Which files a reader is told of: by the rows that they hold, page by page, as of one commit."""

from __future__ import annotations

import msgspec
from tests.feeds.serving.served import listing

from plimsoll.core.protocol import messages as msg
from plimsoll.feeds.commit_log import FeedCommit, FeedCounts, FeedFile, FeedState, Table
from plimsoll.feeds.serving.catalog import FeedCatalog


def file(first: int, last: int, table: Table = "rows") -> FeedFile:
    return FeedFile(f"{table}/h/{first}.parquet", table, last - first + 1, 1000, first, 5, 6, last)


def state(*files: FeedFile, received: int = 100, expired_to: dict[Table, int] | None = None) -> FeedState:
    counts = FeedCounts(received, received, expired_rows=sum((expired_to or {}).values()))
    found = FeedState()
    found.apply(FeedCommit(1, 7, "[a,=,1]", files, counts=counts, dataset="d", expired_to=expired_to or {}))
    return found


def test_a_page_begins_with_the_file_that_holds_the_row():
    catalog = FeedCatalog.of("stocks", state(file(1, 10), file(15, 40), file(12, 13, "dead-letters"), file(41, 100)))
    for row, first in ((1, [1, 15, 41]), (10, [1, 15, 41]), (11, [15, 41]), (40, [15, 41]), (41, [41]), (101, [])):
        page = catalog.page(listing(row, number=9))
        assert [each.first_row for each in page.files] == first
        assert (page.id, page.dataset, page.received, page.more) == (9, "d", 100, False)
    dead = catalog.page(msg.ListFeedFiles(1, "stocks", "dead-letters", 1))
    assert dead.files == [msg.FeedFileItem(12, 13, 2, 1000, 5, 6)]


def test_there_are_as_many_pages_as_it_takes():
    catalog = FeedCatalog.of("stocks", state(*(file(n, n) for n in range(1, 601)), received=600))
    row, found = 1, list[int]()
    while True:
        page = catalog.page(listing(row))
        found += [each.first_row for each in page.files]
        assert len(page.files) <= msg.FILES_AT_MOST
        if not page.more:
            break
        row = found[-1] + 1
    assert found == list(range(1, 601))


def test_a_file_is_named_by_all_of_its_rows_in_its_dataset():
    catalog = FeedCatalog.of("stocks", state(file(1, 10), file(15, 40)))
    asked = msg.ReadFeedFile(1, "stocks", "d", "rows", 15, 40, 0, 10)
    assert catalog.file(asked) == file(15, 40)
    for change in (
        {"first_row": 14}, {"last_row": 39}, {"last_row": 41}, {"table": "dead-letters"}, {"dataset": "e"},
        {"first_row": 0, "last_row": 2**63 - 1}, {"first_row": 1, "last_row": 40},
    ):  # fmt: skip
        assert catalog.file(msgspec.structs.replace(asked, **change)) is None, change


def test_files_of_earlier_versions_end_in_front_of_the_next_one():
    old = [msgspec.structs.replace(each, last_row=0) for each in (file(1, 10), file(15, 40))]
    catalog = FeedCatalog.of("stocks", state(*old))
    assert [(each.first_row, each.last_row) for each in catalog.page(listing()).files] == [(1, 14), (15, 100)]


def test_what_retention_has_deleted_is_said_by_table():
    catalog = FeedCatalog.of("stocks", state(file(41, 100), expired_to={"rows": 40, "dead-letters": 33}))
    assert catalog.page(listing()).expired_to == 40
    assert catalog.page(msg.ListFeedFiles(1, "stocks", "dead-letters", 1)).expired_to == 33
    old = state(file(41, 100), received=100)
    assert old.last is not None
    old.last = msgspec.structs.replace(old.last, counts=FeedCounts(100, 100, expired_rows=7))
    assert FeedCatalog.of("stocks", old).page(listing()).expired_to == 40, "an earlier version has not said which"
    assert FeedCatalog.of("stocks", FeedState()).page(listing()) == msg.FeedFilesPage(1, "", "", 0, 0, 0, [])
