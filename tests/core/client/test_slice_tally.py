"""The count of a slice: each item once, what was had before, and what comes behind a later one."""

from __future__ import annotations

import msgspec

from plimsoll.core.client.slice_tally import REMEMBERED, SliceTally
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire

BODY = msgspec.Raw(wire.encode(msg.Body({"class": "R"})))


def pub(offset: int, head: str = "h") -> msg.PubOpen:
    return msgspec.msgpack.decode(
        wire.encode(msg.Pub(offset, head, 1, offset, "p", 1, offset, 0, 0, BODY)), type=msg.PubOpen
    )


def counted(*offsets: int, marks: tuple[wire.Token, ...] = ()) -> msg.SliceCount:
    tally = SliceTally(marks)
    for offset in offsets:
        tally.saw(pub(offset))
    return tally.count()


def test_items_in_order_are_counted_once():
    assert counted(3, 5, 9) == msg.SliceCount(3, 0, 0)


def test_what_was_had_here_or_before_is_duplicated():
    assert counted(3, 5, 5, 3) == msg.SliceCount(2, 2, 0)
    assert counted(3, 5, marks=(("h", 1, 4),)) == msg.SliceCount(1, 1, 0)


def test_what_comes_behind_a_later_one_is_reordered():
    assert counted(3, 9, 5) == msg.SliceCount(3, 0, 1)


def test_origins_are_apart():
    tally = SliceTally([("h", 1, 4)])
    for one in (pub(5), pub(2, "k"), pub(6)):
        tally.saw(one)
    assert tally.count() == msg.SliceCount(3, 0, 0)


def test_memory_is_bounded():
    tally = SliceTally([])
    for offset in range(1, 10 * REMEMBERED):
        tally.saw(pub(offset))
    assert sum(len(seen.recent) for seen in tally._seen.values()) == REMEMBERED
    tally.saw(pub(1))
    assert tally.count().reordered == 1
