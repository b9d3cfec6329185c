"""The answer to one request of a reader: a page of the catalog, a part of a file, or a refusal that says why."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import WireError
from plimsoll.feeds.serving.catalog import FeedCatalog

ReadPart = Callable[[str, int, int], bytes]
"""Path below the dataset's folder, offset, size -> bytes. Raises FileNotFoundError, OSError."""


def decoded_request(data: bytes) -> msg.FeedRequest:
    """The one request in a frame.

    Raises:
        WireError: it is something else.

    """
    frame = wire.decode_frame(data)
    if not isinstance(frame, wire.Control) or len(frame.records) != 1:
        raise WireError("misplaced", "a request of a reader is one record in a CONTROL frame")
    request: msg.FeedRequest = msg.decode(msg.feed_request, frame.records[0])
    return request


def answer(catalog: FeedCatalog, refusal: str, request: msg.FeedRequest, read: ReadPart) -> msg.FeedAnswer:
    """What a reader is answered. `refusal`: why it may not read this feed; empty if it may."""
    if request.feed != catalog.feed:
        found = f"this is the recorder of the feed {catalog.feed}, not of {request.feed}"
        return msg.FeedRefused(request.id, "feed", f"{found}: fetch the addresses of the fleet again")
    if refusal:
        return msg.FeedRefused(request.id, "role", refusal)
    if isinstance(request, msg.ListFeedFiles):
        return catalog.page(request)
    if isinstance(request, msg.ReadFeedFile):
        return _part(catalog, request, read)
    assert_never(request)


def _part(catalog: FeedCatalog, request: msg.ReadFeedFile, read: ReadPart) -> msg.FeedAnswer:
    rows = f"{request.table} {request.first_row} to {request.last_row}"
    gone = msg.FeedRefused(
        request.id, "gone", f"{rows} are in another file by now, or retention has deleted them: list again"
    )
    file = catalog.file(request)
    if file is None:
        return gone
    size = max(0, min(request.size, file.size_bytes - request.offset))
    try:
        content = read(file.path, request.offset, size) if size else b""
    except FileNotFoundError:
        return gone  # the recorder has just committed a change, and the next catalog has it
    except OSError as error:
        why = error.strerror or str(error)
        return msg.FeedRefused(request.id, "fault", f"the recorder cannot read its file with {rows}: {why}")
    return msg.FeedFilePart(request.id, content)
