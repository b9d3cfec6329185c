"""The output of an edge, shared fairly by its subscribers, or by topics: each has a queue, busy ones equal bandwidth.

The product's output is first come, first served; with this one a world shows what fairness would change. Packets leave
in the order of tags that grow with the bytes of their queue (S. J. Golestani, A Self-Clocked Fair Queueing Scheme for
Broadband Applications, 1994). So the output is never idle while something waits, and before a packet of a queue that
was empty any other queue sends at most as much as it, and one packet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from heapq import heappop, heappush, nsmallest
from typing import Generic, NamedTuple, TypeVar

from plimsoll.core.config import BrokerConfig
from plimsoll.core.transport.overlay_node import output_bucket

Item = TypeVar("Item")


class Left(NamedTuple, Generic[Item]):
    """What has left: when its turn came and when its last byte left, and when it was given."""

    item: Item
    given_at: float
    first: float
    last: float


class FairOutput(Generic[Item]):
    """`on_left` is called with each item when its turn has come. `sent`, `given`: items so far by subscriber.

    `saves_up`: unused bandwidth is saved up, as the product's output does.
    """

    def __init__(self, config: BrokerConfig, on_left: Callable[[Left[Item]], object], *, saves_up: bool = True) -> None:
        bucket = output_bucket(config)
        self.bytes_per_second = bucket.rate if bucket is not None else None
        self._burst_seconds = bucket.burst / bucket.rate if bucket is not None and saves_up else 0.0
        self._on_left = on_left
        self.given: Counter[int] = Counter()
        self.sent: Counter[int] = Counter()
        self._heap: list[tuple[float, int, int, float, float, Item]] = []
        self._tags: dict[int, float] = {}
        self._left_at: dict[int, float] = {}
        self._tag = self._credit_from = 0.0
        self._queued_bytes = self._given_bytes = self._departed_bytes = 0.0
        self._number = 0

    def put(self, subscriber: int, size_bytes: float, now: float, item: Item, queue: int | None = None) -> None:
        """Give an item to a queue, that of its subscriber if none is named. Times ascend; `advance` lets it leave."""
        queue = subscriber if queue is None else queue
        self._given_bytes += size_bytes
        self._queued_bytes += size_bytes
        tag = self._tags[queue] = max(self._tag, self._tags.get(queue, 0.0)) + size_bytes
        self._number += 1
        self.given[subscriber] += 1
        heappush(self._heap, (tag, self._number, subscriber, size_bytes, now, item))

    def waiting(self) -> Counter[int]:
        """Items that have not left yet, by subscriber."""
        return self.given - self.sent

    def leaves_at_once(self, size_bytes: float, now: float) -> bool:
        """Take this much without a queue, if nothing waits and what is saved up suffices."""
        if self._heap:
            return False
        if self.bytes_per_second is not None:
            after = max(self._credit_from, now - self._burst_seconds) + size_bytes / self.bytes_per_second
            if after > now:
                return False
            self._credit_from = after
        self._given_bytes += size_bytes
        return True

    def advance(self, until: float) -> None:
        """Let leave whose turn has come by this time."""
        while self._heap and (self.bytes_per_second is None or self._credit_from <= until):
            self._tag, _, subscriber, size_bytes, given_at, item = heappop(self._heap)
            self._queued_bytes -= size_bytes
            self.sent[subscriber] += 1
            begins = given_at
            if self.bytes_per_second is not None:
                begins = max(self._credit_from, given_at - self._burst_seconds)
                self._credit_from = begins + size_bytes / self.bytes_per_second
            last = max(self._credit_from, given_at) if self.bytes_per_second is not None else given_at
            self._left_at[subscriber] = last
            self._on_left(Left(item, given_at, max(begins, given_at), last))
        if not self._heap and self._credit_from <= until:
            self._tags.clear()
            self._tag = self._queued_bytes = 0.0

    def earliest_left(self, given: Mapping[int, int], now: float) -> float:
        """When as many items as `given` have left, at the earliest: it is certain once that is no later than now."""
        waiting = sum(max(count - self.sent[one], 0) for one, count in given.items())
        if waiting and self.bytes_per_second is not None:
            held = nsmallest(waiting, (size for _, _, one, size, _, _ in self._heap if one in given))
            return max(self._credit_from, now) + sum(held) / self.bytes_per_second
        return max((self._left_at.get(one, now) for one in given), default=now)

    def waiting_bytes(self, now: float) -> float:
        """What has not left yet."""
        if self.bytes_per_second is None:
            return 0.0
        return self._queued_bytes + max(self._credit_from - now, 0.0) * self.bytes_per_second

    def departed_bytes(self, now: float) -> float:
        """What has left since this was asked last."""
        departed = self._given_bytes - self.waiting_bytes(now)
        since, self._departed_bytes = departed - self._departed_bytes, departed
        return since
