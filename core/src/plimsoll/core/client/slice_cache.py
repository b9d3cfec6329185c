"""The caches of a slice that goes from consumer to consumer (DPSLB 2014, 3.4): what a giver sends, what a taker merges.

A publication is told by its place in the head's log, which both sides were served from: what both have cached counts
once, and the merged cache is in the order of the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from msgspec import Raw

from plimsoll.core.client.events import Delivery
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire

PART_BYTES: Final = 64 * 1024
PART_ITEMS: Final = 1024
"""A message has no more of a cache, but for a single publication that is larger."""


class GiverCache:
    """What a taker has of its giver's cache. `bytes`: of the encoded items."""

    __slots__ = ("bytes", "items")

    def __init__(self) -> None:
        self.items: list[Delivery] = []
        self.bytes = 0

    def take(self, part: msg.SliceCache, now: float) -> None:
        """Take a part of it.

        Raises:
            WireError: an item cannot be read.

        """
        for raw in part.items:
            item = msg.decode(msg.cached_item, raw)
            self.items.append(Delivery(item.pub, (item.head, item.epoch), now))
            self.bytes += len(memoryview(raw))


def cache_parts(cached: Iterable[Delivery]) -> Iterator[list[Raw]]:
    """A cache, encoded, in parts that fit into a message each; none if it is empty."""
    part: list[Raw] = []
    size = 0
    for each in cached:
        encoded = wire.encode(msg.CachedItem(*each.stream, each.pub))
        if part and (size + len(encoded) > PART_BYTES or len(part) >= PART_ITEMS):
            yield part
            part, size = [], 0
        part.append(Raw(encoded))
        size += len(encoded)
    if part:
        yield part


def merged_caches(giver: Sequence[Delivery], own: Sequence[Delivery]) -> list[Delivery]:
    """Both caches as one, each publication once, in the order of the log that both were served from."""
    found = {each.token: each for each in chain(giver, own)}
    return [found[token] for token in sorted(found)]
