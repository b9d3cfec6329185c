"""Caches of a slice: parts that fit into messages, and what giver and taker have cached as one."""

from __future__ import annotations

import msgspec
import pytest

from plimsoll.core.client.events import Delivery
from plimsoll.core.client.slice_cache import PART_BYTES, PART_ITEMS, GiverCache, cache_parts, merged_caches
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import WireError


def item(position: int, payload: bytes = b"") -> Delivery:
    pub = msg.PubOpen(position, "h", 7, position, "p", 1, position, 0, 0, msg.Body({"n": position}, payload))
    return Delivery(pub, ("h", 7), 1.0)


def test_what_both_have_cached_counts_once_in_the_order_of_the_log():
    giver, own = [item(n) for n in (3, 5, 8)], [item(n) for n in (5, 8, 9, 12)]
    assert [each.position for each in merged_caches(giver, own)] == [3, 5, 8, 9, 12]
    assert [each.position for each in merged_caches([], own)] == [5, 8, 9, 12]
    assert [each.position for each in merged_caches(own, giver)] == [3, 5, 8, 9, 12]


def test_a_cache_comes_back_from_its_parts_as_it_was():
    cached = [item(n, b"x" * (n % 3) * 30_000) for n in range(1, 40)]
    parts = list(cache_parts(cached))
    assert len(parts) > 5
    assert all(len(part) == 1 or sum(len(memoryview(raw)) for raw in part) <= PART_BYTES for part in parts)
    taken = GiverCache()
    for part in parts:
        taken.take(msg.SliceCache("g", 0, 1, part), now=1.0)
    assert taken.items == cached
    assert taken.bytes == sum(len(memoryview(raw)) for part in parts for raw in part)


def test_a_part_has_so_many_items_at_most_and_an_empty_cache_none():
    assert [len(part) for part in cache_parts(item(n) for n in range(1, PART_ITEMS + 3))] == [PART_ITEMS, 2]
    assert list(cache_parts([])) == []


def test_an_item_that_cannot_be_read_is_refused():
    with pytest.raises(WireError):
        GiverCache().take(msg.SliceCache("g", 0, 1, [msgspec.Raw(b"\x93\x01\x02\x03")]), now=1.0)
