"""The event heap: virtual time, and a total order of all that happens.

An event is `(at, seq, action, args)`; what was scheduled first happens first among those of one time, so nothing is
left to chance but what a seeded generator decides. Time moves only here. Nothing is called off: who may change their
mind looks again when the time has come.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

EventAction = Callable[..., None]


class EventQueue:
    """A heap of events. `now` is virtual, in seconds; `events` counts those that have happened."""

    def __init__(self) -> None:
        self.now = 0.0
        self.events = 0
        self._heap: list[tuple[float, int, EventAction, tuple[Any, ...]]] = []
        self._seq = 0

    def at(self, at: float, action: EventAction, *args: object) -> None:
        """Let `action(*args)` happen at a time; in the past means now."""
        self._seq += 1
        heapq.heappush(self._heap, (at if at > self.now else self.now, self._seq, action, args))

    def after(self, seconds: float, action: EventAction, *args: object) -> None:
        self.at(self.now + seconds, action, *args)

    def run(self, until: float) -> None:
        """Let happen what is due by then, and let time pass to it."""
        heap, pop = self._heap, heapq.heappop
        while heap and heap[0][0] <= until:
            self.now, _, action, args = pop(heap)
            self.events += 1
            action(*args)
        self.now = max(self.now, until)
