"""A broker's input as a queue with a server. Emulated hardware finishes publications at virtual times; no sleeping.

The cost of a publication is fixed when its service begins, so publications that waited while subscriptions left are
served faster. Without emulation and input limit the server is transparent. Items of a stream stay in order, even
if their costs differ.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, NamedTuple, TypeVar

from plimsoll.core.config import BrokerHardware

T = TypeVar("T")


class QueuedItem(NamedTuple, Generic[T]):
    """One waiting item: when it was submitted, when it has arrived, and whether it is a publication, which costs."""

    submitted_at: float
    arrived_at: float
    size_bytes: int
    is_publication: bool
    item: T


class ServicedItem(NamedTuple, Generic[T]):
    """One finished item: how long it waited for service, how long service took, and whether it was a publication.

    `subscriptions`: how many were installed when its service began, which its cost is of.
    """

    waited_seconds: float
    cost_seconds: float
    is_publication: bool
    item: T
    subscriptions: int = 0


class ServiceQueue(Generic[T]):
    """First come, first served. `cost(n)`: seconds per publication while `n` subscriptions are installed.

    `waiting_bytes` is the total size of the queued items.
    """

    def __init__(self, hardware: BrokerHardware) -> None:
        self.emulation, self.input_bytes_per_second = hardware.emulation, hardware.input_bytes_per_second
        self.transparent = self.emulation is None and self.input_bytes_per_second is None
        self.queue: deque[QueuedItem[T]] = deque()
        self.free_at = self.arrived_at = 0.0
        self.waiting_bytes = 0
        self._began_at: float | None = None
        self._began_with = 0

    def cost(self, subscriptions: int) -> float:
        """a + b x subscriptions, in seconds; 0 without emulation."""
        if self.emulation is None:
            return 0.0
        return self.emulation.base_seconds + self.emulation.per_subscription_seconds * subscriptions

    def submit(self, item: T, size_bytes: int, now: float, *, is_publication: bool) -> None:
        """Queue one item: it arrives at the input's rate, and is served after those before it."""
        self.arrived_at = max(self.arrived_at, now)
        if self.input_bytes_per_second is not None:
            self.arrived_at += size_bytes / self.input_bytes_per_second
        self.waiting_bytes += size_bytes
        self.queue.append(QueuedItem(now, self.arrived_at, size_bytes, is_publication, item))

    def finished(self, now: float, subscriptions: int) -> ServicedItem[T] | None:
        """The next item finished by now, or None. `subscriptions`: the number installed now."""
        if not self.queue:
            return None
        if self._began_at is None:
            begins = self._begins_at()
            if begins > now:
                return None
            first = self.queue[0]
            self._began_at, self._began_with = begins, subscriptions
            self.free_at = begins + (self.cost(subscriptions) if first.is_publication else 0.0)
        if self.free_at > now:
            return None
        began, self._began_at = self._began_at, None
        first = self.queue.popleft()
        self.waiting_bytes -= first.size_bytes
        waited, took = began - first.submitted_at, self.free_at - began
        return ServicedItem(waited, took, first.is_publication, first.item, self._began_with)

    def _begins_at(self) -> float:
        return max(self.free_at, self.queue[0].arrived_at)

    def wake_at(self) -> float:
        """When the service of the next item begins, or ends if it has begun."""
        if not self.queue:
            return float("inf")
        return self.free_at if self._began_at is not None else self._begins_at()
