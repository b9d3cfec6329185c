"""Reads one table of a feed from a row on, file by file: a machine that asks, takes answers, and says what has come.

Files come and go while it reads: merged ones hold rows that it has, and retention takes the oldest. Rows are numbered
in the order of recording, so it goes on at its row. It skips rows that it never had with a `RowsGone`, never silently.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Final, assert_never

from plimsoll.core.protocol import messages as msg
from plimsoll.feeds.commit_log import Table

WINDOW: Final = 4
"""Parts of a file that are asked for at a time."""
LATEST_US: Final = 4_102_444_800_000_000
"""The year 2100."""
VANISHED_AT_MOST: Final = 25
"""How often a listed file may be gone: a recorder deletes a file a moment before its listing changes."""


class FeedReadError(Exception):
    """Reading a feed cannot go on; says why and what to do."""


@dataclass(frozen=True)
class FileBegins:
    """The parts of a file follow, in any order."""

    file: msg.FeedFileItem


@dataclass(frozen=True)
class PartReceived:
    """A part of the file that has begun."""

    offset: int
    content: bytes


@dataclass(frozen=True)
class FileComplete:
    """All parts of the file have come; its rows from `from_row` on are new."""

    file: msg.FeedFileItem
    from_row: int


@dataclass(frozen=True)
class FileAbandoned:
    """The file that has begun is gone; its rows come in others, or in a `RowsGone`."""


@dataclass(frozen=True)
class RowsGone:
    """Retention has deleted the rows with these numbers before they were read."""

    first: int
    last: int


@dataclass(frozen=True)
class AllRead:
    """There are no rows after this one yet."""

    last: int


ReadEvent = FileBegins | PartReceived | FileComplete | FileAbandoned | RowsGone | AllRead


@dataclass
class TableReader:
    """`next_row`: the first row that it has not had. `dataset`: that which it has begun to read; empty: any.

    `since_us`: files recorded before are skipped. `numbers`: of requests, shared by the readers of one connection.
    `received`: the last row of the feed, as the recorder has said.
    """

    feed: str
    table: Table
    next_row: int = 1
    dataset: str = ""
    since_us: int = 0
    subscription: str = ""
    gaps: int = 0
    received: int = 0
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    _listing: msg.ListFeedFiles | None = None
    _file: msg.FeedFileItem | None = None
    _missing: dict[int, msg.ReadFeedFile] = field(default_factory=dict)  # by offset: asked, and not answered
    _asked_to: int = 0
    _vanished: int = 0

    def requests(self) -> list[msg.FeedRequest]:
        """What to ask now, beside what is under way."""
        if self._file is None:
            if self._listing is not None:
                return []
            self._listing = msg.ListFeedFiles(next(self.numbers), self.feed, self.table, self.next_row)
            return [self._listing]
        found: list[msg.FeedRequest] = []
        while self._asked_to < self._file.size_bytes and len(self._missing) < WINDOW:
            size = min(msg.PART_BYTES_AT_MOST, self._file.size_bytes - self._asked_to)
            request = msg.ReadFeedFile(
                next(self.numbers), self.feed, self.dataset, self.table, self._file.first_row, self._file.last_row,
                self._asked_to, size,
            )  # fmt: skip
            self._missing[self._asked_to] = request
            self._asked_to += size
            found.append(request)
        return found

    def requests_again(self) -> list[msg.FeedRequest]:
        """What is under way, to be repeated: an answer may have been lost."""
        listing = [] if self._listing is None else [self._listing]
        return [*listing, *self._missing.values()]

    def take(self, answer: msg.FeedAnswer) -> list[ReadEvent]:
        """Take an answer; one that was not asked for, or had come already, brings nothing.

        Raises:
            FeedReadError: the feed cannot be read on.

        """
        if isinstance(answer, msg.FeedFilesPage):
            if self._listing is None or answer.id != self._listing.id:
                return []
            self._listing = None
            return self._take_page(answer)
        if isinstance(answer, msg.FeedFilePart):
            return self._take_part(answer)
        if isinstance(answer, msg.FeedRefused):
            return self._take_refusal(answer)
        assert_never(answer)

    def _take_page(self, page: msg.FeedFilesPage) -> list[ReadEvent]:
        self._check(page)
        self.dataset, self.subscription = page.dataset, page.subscription
        self.gaps, self.received = page.gaps, page.received
        events: list[ReadEvent] = []
        if page.expired_to >= self.next_row:
            events.append(RowsGone(self.next_row, page.expired_to))
            self.next_row = page.expired_to + 1
        for file in page.files:
            if file.last_row < self.next_row:
                continue
            if file.last_us >= self.since_us:
                self._file, self._asked_to = file, 0
                return [*events, FileBegins(file)]
            self.next_row = file.last_row + 1
        if page.more:
            return events  # all of the page was skipped
        self.next_row = max(self.next_row, page.received + 1)
        return [*events, AllRead(page.received)]

    def _check(self, page: msg.FeedFilesPage) -> None:
        if not self.dataset and page.received < self.next_row - 1:
            found = f"the feed {self.feed} ends at row {page.received}"
            raise FeedReadError(f"{found}, in front of row {self.next_row}: begin with an earlier one")
        if (self.dataset and page.dataset != self.dataset) or page.received < self.next_row - 1:
            remedy = "fetch it into another folder"
            raise FeedReadError(f"the feed {self.feed} was recorded again from its beginning: {remedy}")
        last = 0
        for file in page.files:
            is_in_place = last < file.first_row <= file.last_row <= page.received
            if not is_in_place or file.size_bytes == 0 or not file.first_us <= file.last_us <= LATEST_US:
                found = f"{self.table} {file.first_row} to {file.last_row} behind row {last}"
                raise FeedReadError(f"the recorder of {self.feed} lists files out of order: {found}")
            last = file.last_row

    def _take_part(self, part: msg.FeedFilePart) -> list[ReadEvent]:
        request = next((each for each in self._missing.values() if each.id == part.id), None)
        if request is None or self._file is None:
            return []
        if len(part.content) != request.size:
            rows = f"{self.table} {request.first_row} to {request.last_row}"
            found = f"{len(part.content)} bytes at {request.offset}, and {request.size} were asked for"
            raise FeedReadError(f"the file of {self.feed} with {rows} is damaged: {found}")
        del self._missing[request.offset]
        self._vanished = 0
        events: list[ReadEvent] = [PartReceived(request.offset, part.content)]
        if not self._missing and self._asked_to >= self._file.size_bytes:
            events.append(FileComplete(self._file, self.next_row))
            self.next_row = self._file.last_row + 1
            self._file = None
        return events

    def _take_refusal(self, refused: msg.FeedRefused) -> list[ReadEvent]:
        asked = self._listing is not None and refused.id == self._listing.id
        if not asked and not any(each.id == refused.id for each in self._missing.values()):
            return []
        if refused.code != "gone":
            raise FeedReadError(refused.text)
        self._vanished += 1
        if self._vanished > VANISHED_AT_MOST:
            raise FeedReadError(f"the recorder of {self.feed} lists a file that is not there: look at its folder")
        self._file, self._missing, self._asked_to = None, {}, 0
        return [FileAbandoned()]
