"""The answer to one request: what a reader may have, where files are gone, and what is no request at all."""

from __future__ import annotations

import msgspec
import pytest
from tests.feeds.serving.served import framed, listing
from tests.feeds.serving.test_catalog import file, state

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import WireError
from plimsoll.feeds.serving.answers import answer, decoded_request
from plimsoll.feeds.serving.catalog import FeedCatalog

CATALOG = FeedCatalog.of("stocks", state(file(1, 10), file(15, 40)))
PART = msg.ReadFeedFile(3, "stocks", "d", "rows", 15, 40, 0, 600)


def read(path: str, offset: int, size: int) -> bytes:
    return f"{path} {offset} {size}".encode()


def test_a_part_is_of_the_file_with_these_rows_and_ends_with_it():
    for offset, size, found in ((0, 600, 600), (500, 600, 500), (999, 600, 1)):
        request = msgspec.structs.replace(PART, offset=offset, size=size)
        content = f"rows/h/15.parquet {offset} {found}".encode()
        assert answer(CATALOG, "", request, read) == msg.FeedFilePart(3, content)
    for offset in (1000, 2**63 - 1):
        assert answer(CATALOG, "", msgspec.structs.replace(PART, offset=offset), read) == msg.FeedFilePart(3, b"")


def test_who_may_not_read_is_refused_whatever_is_asked():
    for request in (listing(), PART, msgspec.structs.replace(PART, first_row=99)):
        assert answer(CATALOG, "eve may not", request, read) == msg.FeedRefused(request.id, "role", "eve may not")


def test_a_file_that_is_gone_is_said_to_be_gone():
    def gone(path: str, offset: int, size: int) -> bytes:
        raise FileNotFoundError(2, "No such file", path)

    for reader, request in ((gone, PART), (read, msgspec.structs.replace(PART, last_row=41))):
        found = answer(CATALOG, "", request, reader)
        assert isinstance(found, msg.FeedRefused)
        assert (found.code, found.text.endswith("list again")) == ("gone", True)


def test_a_disk_that_fails_is_a_located_fault_without_a_path():
    def broken(path: str, offset: int, size: int) -> bytes:
        raise OSError(5, "Input/output error", path)

    found = answer(CATALOG, "", PART, broken)
    text = "the recorder cannot read its file with rows 15 to 40: Input/output error"
    assert found == msg.FeedRefused(3, "fault", text)


def test_a_request_is_one_record_in_a_control_frame():
    assert decoded_request(framed(PART)) == PART
    wrong = [
        b"", b"x", framed(PART)[:-1], wire.control_frame(PART, PART), wire.control_frame(),
        wire.control_frame(msg.StatusQuery(1)), wire.refuse_frame(1, "a", "b"),
        wire.control_frame(msgspec.structs.replace(PART, size=msg.PART_BYTES_AT_MOST + 1)),
        wire.control_frame(msgspec.structs.replace(PART, size=0)),
        wire.control_frame(msgspec.structs.replace(PART, table="../rows")),
        wire.control_frame(msgspec.structs.replace(PART, first_row=-1)),
        wire.control_frame(msgspec.structs.replace(PART, feed="x" * 254)),
    ]  # fmt: skip
    for data in wrong:
        with pytest.raises(WireError):
            decoded_request(data)
