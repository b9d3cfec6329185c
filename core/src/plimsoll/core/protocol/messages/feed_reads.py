"""Reading a feed from its recorder: its committed files, by the rows that they hold, and their bytes part by part.

Between an application and a recorder, one record in a CONTROL frame. A recorder remembers nothing of a reader: each
request says all that it needs, may be repeated, and is answered once or not at all.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from plimsoll.core.protocol.wire import U63, Name, Text

PART_BYTES_AT_MOST: Final = 65_536
FILES_AT_MOST: Final = 256
"""Of one page."""

FeedTable = Literal["rows", "dead-letters"]
DatasetName = Annotated[str, Meta(max_length=64)]
PartSize = Annotated[int, Meta(ge=1, le=PART_BYTES_AT_MOST)]
FeedRefusal = Literal["role", "feed", "gone", "fault"]


class ListFeedFiles(Struct, array_like=True, frozen=True, tag=162):
    """To a recorder: which files hold rows of a table from `from_row` on?"""

    id: U63
    feed: Name
    table: FeedTable
    from_row: U63


class FeedFileItem(Struct, array_like=True, frozen=True):
    """A file: the numbers of its first and last row, how many rows, bytes; times of recording in us since 1970."""

    first_row: U63
    last_row: U63
    rows: U63
    size_bytes: U63
    first_us: U63
    last_us: U63


class FeedFilesPage(Struct, array_like=True, frozen=True, tag=163):
    """The first of those files, in the order of their rows; `more`: there are others behind them.

    `dataset`: changes if the feed is recorded from its beginning again. `received`: the number of the last committed
    row.
    `expired_to`: the last row of the table that retention has deleted. `gaps`: that the fleet has reported.
    """

    id: U63
    dataset: DatasetName
    subscription: Text
    received: U63
    gaps: U63
    expired_to: U63
    files: Annotated[list[FeedFileItem], Meta(max_length=FILES_AT_MOST)]
    more: bool = False


class ReadFeedFile(Struct, array_like=True, frozen=True, tag=164):
    """To a recorder: the part from `offset` on, of `size` bytes at most, of the file with exactly these rows."""

    id: U63
    feed: Name
    dataset: DatasetName
    table: FeedTable
    first_row: U63
    last_row: U63
    offset: U63
    size: PartSize


class FeedFilePart(Struct, array_like=True, frozen=True, tag=165):
    """That part; empty after the end of the file."""

    id: U63
    content: Annotated[bytes, Meta(max_length=PART_BYTES_AT_MOST)]


class FeedRefused(Struct, array_like=True, frozen=True, tag=166):
    """No answer to a request, and why.

    `role`: the identity may not read this feed; `feed`: this recorder records another one; `gone`: there is no such
    file any more, so list again; `fault`: the file cannot be read now.
    """

    id: U63
    code: FeedRefusal
    text: Text
