"""A broker's input as a queue with a server: emulated hardware finishes each publication at a virtual time, never by
sleeping.

Without emulation and input limit the server is transparent. What travels in a stream stays in its order, whatever it
costs.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

from plimsoll.core.config import Hardware

T = TypeVar("T")


class Server(Generic[T]):
    """First come, first served. `cost(n)`: seconds that one publication takes when `n` subscriptions are installed."""

    def __init__(self, hardware: Hardware) -> None:
        self.emulation, self.input_bytes_per_second = hardware.emulation, hardware.input_bytes_per_second
        self.transparent = self.emulation is None and self.input_bytes_per_second is None
        self.queue: deque[tuple[float, float, T]] = deque()
        self.free_at = self.arrived_at = 0.0

    def cost(self, subscriptions: int) -> float:
        """a + b x subscriptions, in seconds; 0 without emulation."""
        if self.emulation is None:
            return 0.0
        return self.emulation.base_seconds + self.emulation.per_subscription_seconds * subscriptions

    def submit(self, item: T, cost_seconds: float, size_bytes: int, now: float) -> None:
        """Queue one item: it comes in at the input's rate, and is finished after those before it and its own cost."""
        if self.input_bytes_per_second is not None:
            self.arrived_at = max(self.arrived_at, now) + size_bytes / self.input_bytes_per_second
        self.free_at = max(self.free_at, self.arrived_at, now) + cost_seconds
        self.queue.append((now + cost_seconds, self.free_at, item))

    def finished(self, now: float) -> tuple[float, T] | None:
        """The next item that is finished by now, with the seconds it waited before its service began."""
        if not self.queue or self.queue[0][1] > now:
            return None
        earliest, done, item = self.queue.popleft()
        return done - earliest, item

    def wake_at(self) -> float:
        """When the next item is finished."""
        return self.queue[0][1] if self.queue else float("inf")
