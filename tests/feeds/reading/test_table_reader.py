"""What a reader asks for, answer by answer, and what it will not believe."""

from __future__ import annotations

import pytest

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.messages.feed_reads import FeedRefusal
from plimsoll.feeds.reading.table_reader import (
    VANISHED_AT_MOST,
    WINDOW,
    AllRead,
    FeedReadError,
    FileAbandoned,
    FileBegins,
    FileComplete,
    PartReceived,
    RowsGone,
    TableReader,
)

PART = msg.PART_BYTES_AT_MOST


def item(first: int, last: int, size: int = 100, at_us: int = 50) -> msg.FeedFileItem:
    return msg.FeedFileItem(first, last, last - first + 1, size, at_us, at_us)


def page(number: int, *files: msg.FeedFileItem, received: int = 100, expired_to: int = 0, more: bool = False,
         dataset: str = "d") -> msg.FeedFilesPage:  # fmt: skip
    return msg.FeedFilesPage(number, dataset, "[a,=,1]", received, 2, expired_to, list(files), more)


def refused(number: int, code: FeedRefusal = "gone") -> msg.FeedRefused:
    return msg.FeedRefused(number, code, "why")


def begun(size: int, *, last: int = 40) -> TableReader:
    """A reader that has been told of a file with the rows 1 to 40."""
    reader = TableReader("stocks", "rows")
    (asked,) = reader.requests()
    assert asked == msg.ListFeedFiles(1, "stocks", "rows", 1)
    assert reader.take(page(1, item(1, last, size))) == [FileBegins(item(1, last, size))]
    return reader


def test_a_file_is_asked_for_in_parts_and_the_next_list_begins_behind_it():
    reader = begun(PART * 2 + 5)
    first, second, third = reader.requests()
    assert [(each.offset, each.size) for each in (first, second, third)] == [(0, PART), (PART, PART), (2 * PART, 5)]  # type: ignore[union-attr]  # they are reads
    assert reader.requests() == []
    assert reader.take(msg.FeedFilePart(third.id, b"x" * 5)) == [PartReceived(2 * PART, b"x" * 5)]
    assert reader.requests_again() == [first, second]
    reader.take(msg.FeedFilePart(first.id, b"a" * PART))
    whole = reader.take(msg.FeedFilePart(second.id, b"b" * PART))
    assert whole[1:] == [FileComplete(item(1, 40, PART * 2 + 5), 1)]
    assert reader.requests() == [msg.ListFeedFiles(5, "stocks", "rows", 41)]
    assert reader.take(page(5)) == [AllRead(100)]
    assert reader.next_row == 101, "no row up to the last commit is missing"


def test_no_more_parts_are_under_way_than_the_window():
    reader = begun(PART * 20)
    asked = reader.requests()
    assert len(asked) == WINDOW
    reader.take(msg.FeedFilePart(asked[2].id, b"c" * PART))
    (following,) = reader.requests()
    assert isinstance(following, msg.ReadFeedFile)
    assert following.offset == WINDOW * PART


def test_an_answer_that_comes_twice_or_was_not_asked_for_brings_nothing():
    reader = begun(100)
    (asked,) = reader.requests()
    assert reader.take(page(1, item(50, 60))) == []
    assert reader.take(msg.FeedFilePart(99, b"x")) == reader.take(refused(99)) == []
    assert len(reader.take(msg.FeedFilePart(asked.id, b"x" * 100))) == 2
    assert reader.take(msg.FeedFilePart(asked.id, b"x" * 100)) == []


def test_a_file_that_is_gone_is_listed_again_from_the_same_row():
    reader = begun(PART * 3)
    asked = reader.requests()
    reader.take(msg.FeedFilePart(asked[0].id, b"a" * PART))
    assert reader.take(refused(asked[1].id)) == [FileAbandoned()]
    assert reader.take(msg.FeedFilePart(asked[2].id, b"a" * PART)) == [], "of the file that is gone"
    (listing,) = reader.requests()
    assert listing == msg.ListFeedFiles(listing.id, "stocks", "rows", 1)
    assert reader.take(page(listing.id, item(21, 60), expired_to=20)) == [RowsGone(1, 20), FileBegins(item(21, 60))]


def test_a_file_that_is_listed_and_never_there_ends_in_words():
    reader = TableReader("stocks", "rows")
    for times in range(VANISHED_AT_MOST + 1):
        (listing,) = reader.requests()
        reader.take(page(listing.id, item(1, 40)))
        (asked,) = reader.requests()
        if times < VANISHED_AT_MOST:
            assert reader.take(refused(asked.id)) == [FileAbandoned()]
    with pytest.raises(FeedReadError, match="the recorder of stocks lists a file that is not there"):
        reader.take(refused(asked.id))


def test_of_a_file_with_rows_that_it_has_only_the_others_are_new():
    reader = TableReader("stocks", "rows", next_row=31)
    (listing,) = reader.requests()
    reader.take(page(listing.id, item(1, 30), item(31, 60), received=60))
    assert reader.take(msg.FeedFilePart(reader.requests()[0].id, b"x" * 100))[-1] == FileComplete(item(31, 60), 31)
    (listing,) = reader.requests()
    reader.take(page(listing.id, item(1, 90)))
    assert reader.take(msg.FeedFilePart(reader.requests()[0].id, b"x" * 100))[-1] == FileComplete(item(1, 90), 61)


def test_files_recorded_before_are_skipped_page_by_page():
    reader = TableReader("stocks", "rows", since_us=40)
    (listing,) = reader.requests()
    assert reader.take(page(listing.id, item(1, 10, at_us=20), item(11, 20, at_us=30), more=True)) == []
    (listing,) = reader.requests()
    assert listing == msg.ListFeedFiles(listing.id, "stocks", "rows", 21)
    assert reader.take(page(listing.id, item(21, 30, at_us=40))) == [FileBegins(item(21, 30, at_us=40))]


@pytest.mark.parametrize("code", ["role", "feed", "fault"])
def test_a_refusal_ends_it_with_the_words_of_the_recorder(code: FeedRefusal):
    reader = begun(100)
    with pytest.raises(FeedReadError, match=r"^why$"):
        reader.take(refused(reader.requests()[0].id, code))


def test_a_feed_that_was_recorded_anew_is_not_mixed_with_the_one_before():
    for changed in (page(1, dataset="e"), page(1, received=39)):
        reader = TableReader("stocks", "rows", next_row=41, dataset="d")
        reader.requests()
        with pytest.raises(FeedReadError, match="the feed stocks was recorded again from its beginning"):
            reader.take(changed)


def test_a_copy_cannot_begin_behind_the_end_of_its_feed():
    reader = TableReader("stocks", "rows", next_row=102)
    reader.requests()
    with pytest.raises(FeedReadError, match="the feed stocks ends at row 100, in front of row 102: begin"):
        reader.take(page(1))


@pytest.mark.parametrize(
    "files",
    [
        (item(10, 9),), (item(1, 10), item(10, 12)), (item(5, 6), item(1, 2)), (item(90, 101),), (item(0, 5),),
        (item(1, 5, size=0),), (item(1, 5, at_us=2**62),),
    ],
)  # fmt: skip
def test_a_list_that_cannot_be_is_not_believed(files: tuple[msg.FeedFileItem, ...]):
    reader = TableReader("stocks", "rows")
    reader.requests()
    with pytest.raises(FeedReadError, match="lists files out of order: rows"):
        reader.take(page(1, *files))


def test_a_part_of_another_length_is_damage():
    reader = begun(100)
    with pytest.raises(FeedReadError, match="rows 1 to 40 is damaged: 99 bytes at 0, and 100 were asked for"):
        reader.take(msg.FeedFilePart(reader.requests()[0].id, b"x" * 99))
