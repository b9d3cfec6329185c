"""Pages of the head's log, for a mediator that wants to know what is published.

A page is bounded in entries and in bytes, so that the stream does not wait for it; payloads are not listed.
"""

from __future__ import annotations

from plimsoll.core.head.log import Log
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.slice_names import split_stamps

ENTRIES_PER_PAGE = 256
"""Entries that one page looks at: each is decoded, which takes some ten microseconds."""

PAGE_BYTES = 256 * 1024
"""Of records; a page has at least one entry, however large."""


def publication_page(request: msg.ListPublications, head: str, epoch: int, log: Log) -> msg.PublicationPage:
    """The publications after a position that were accepted at this head; those of other heads are listed there."""
    found: list[msg.PublicationItem] = []
    through, size, looked = request.after, 0, 0
    for position, entry in log.after(request.after):
        if looked == ENTRIES_PER_PAGE or (looked and size + len(entry.record) > PAGE_BYTES):
            break
        through, size, looked = position, size + len(entry.record), looked + 1
        if not entry.is_gap and entry.last[0][0][0] == head:
            found.append(_item(entry.record))
    return msg.PublicationPage(request.id, epoch, log.first, log.last, through, found)


def _item(record: bytes) -> msg.PublicationItem:
    pub = msg.to_edge.decode(record)
    if not isinstance(pub, msg.PubOpen):
        raise TypeError(f"the log has a {type(pub).__name__} where a publication should be")
    return msg.PublicationItem(
        pub.publisher,
        pub.incarnation,
        pub.seq,
        pub.sent_us,
        split_stamps(pub.body.attributes, pub.flags)[0],
        len(pub.body.payload),
    )
