"""The event heap: virtual time, and a total order of all events.

An event is `(at, seq, action, args)`. Events of the same time run in the order in which they were scheduled, so only
seeded generators decide anything. Time advances only here. Events cannot be cancelled: an action that may have become
obsolete checks that when it runs.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

EventAction = Callable[..., None]


class EventQueue:
    """A heap of events. `now` is virtual time in seconds; `events` counts the events that have run."""

    def __init__(self) -> None:
        self.now = 0.0
        self.events = 0
        self._heap: list[tuple[float, int, EventAction, tuple[Any, ...]]] = []
        self._seq = 0

    def at(self, at: float, action: EventAction, *args: object) -> None:
        """Schedule `action(*args)`; a time in the past means now."""
        self._seq += 1
        heapq.heappush(self._heap, (at if at > self.now else self.now, self._seq, action, args))

    def after(self, seconds: float, action: EventAction, *args: object) -> None:
        self.at(self.now + seconds, action, *args)

    def run(self, until: float) -> None:
        """Run all events that are due by `until`, and advance the clock to it."""
        heap, pop = self._heap, heapq.heappop
        while heap and heap[0][0] <= until:
            self.now, _, action, args = pop(heap)
            self.events += 1
            action(*args)
        self.now = max(self.now, until)
