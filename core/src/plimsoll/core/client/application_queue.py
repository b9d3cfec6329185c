"""What an application has been given and not dealt with yet, and when its edges are told to pause.

Above a high mark they pause, below half of it they go on. A subscriber of several units has one queue for all of them.
"""

from __future__ import annotations

from collections.abc import Callable

from plimsoll.core.client.limits import ClientLimits

RECORD_BYTES = 64
"""What an item in the queue takes beside its own bytes, for the bound of the queue."""


class ApplicationQueue:
    """`is_held`: it is full, until it is half empty. `steer` is called when that changes."""

    __slots__ = ("_steer", "depth", "depth_bytes", "high_bytes", "high_records", "is_held")

    def __init__(self, limits: ClientLimits, steer: Callable[[], None]) -> None:
        self.depth = self.depth_bytes = 0
        self.high_records, self.high_bytes = limits.queue_records, limits.queue_bytes
        self.is_held = False
        self._steer = steer

    def grow(self, size: int) -> None:
        """One more item in the queue."""
        self.depth += 1
        self.depth_bytes += size + RECORD_BYTES
        if not self.is_held and (self.depth > self.high_records or self.depth_bytes > self.high_bytes):
            self.is_held = True
            self._steer()

    def grow_by(self, items: int, size: int) -> None:
        """Add items, of `size` bytes together, that did not come from an edge."""
        self.depth += items
        self.depth_bytes += (size + items * RECORD_BYTES) if items else 0
        if not self.is_held and (self.depth > self.high_records or self.depth_bytes > self.high_bytes):
            self.is_held = True
            self._steer()

    def consumed(self, items: int) -> None:
        """The application has dealt with this many deliveries and gaps."""
        if items >= self.depth:
            self.depth = self.depth_bytes = 0
        else:
            self.depth_bytes -= self.depth_bytes * items // self.depth
            self.depth -= items
        # Half, not one less than full: a PAUSE and a CONTINUE for every item would cost more than the item.
        if self.is_held and self.depth * 2 <= self.high_records and self.depth_bytes * 2 <= self.high_bytes:
            self.is_held = False
            self._steer()
