"""Split a cover update into COVER messages of bounded size, and join them again."""

from __future__ import annotations

from plimsoll.core.protocol.messages import Cover, CoverItem

PART_CHARACTERS = 32 * 1024
"""Characters of subscriptions in one COVER message, approximately, however large the cover is."""

ITEM_CHARACTERS = 16
"""Overhead of a subscription on top of its text."""


REPORT_PART_ITEMS = 32
"""Subscriptions in one part of a report, which the head applies by parts: a millisecond or two of its work."""


def split_cover(cover: Cover, most_items: int | None = None) -> list[Cover]:
    """One update as messages of bounded size, each but the last with `more`. `most_items`: how many one may add."""
    found: list[Cover] = []
    adds: list[CoverItem] = []
    size = 0
    for item in cover.adds:
        if adds and (size + len(item.text) > PART_CHARACTERS or len(adds) == most_items):
            found.append(Cover(cover.seq, adds, [], True))
            adds, size = [], 0
        adds.append(item)
        size += len(item.text) + ITEM_CHARACTERS
    removes, step = cover.removes, PART_CHARACTERS // ITEM_CHARACTERS
    while len(removes) > step:
        found.append(Cover(cover.seq, [], removes[:step], True))
        removes = removes[step:]
    return [*found, Cover(cover.seq, adds, removes)]


def join_covers(gathered: list[Cover], last: Cover) -> Cover:
    """The update that these parts make up."""
    adds = [item for part in (*gathered, last) for item in part.adds]
    return Cover(last.seq, adds, [item for part in (*gathered, last) for item in part.removes])
