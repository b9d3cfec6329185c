"""The event heap: virtual time, and a total order of all that happens.

An event is `(at, seq, action)`; what was scheduled first happens first among those of one time, so nothing is left to
chance but what a seeded generator decides. Time moves only here.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

Action = Callable[..., None]


class Timer:
    """A scheduled event, which may be called off."""

    __slots__ = ("action", "args", "at")

    def __init__(self, at: float, action: Action, args: tuple[Any, ...]) -> None:
        self.at, self.args = at, args
        self.action: Action | None = action

    def cancel(self) -> None:
        self.action = None


class Schedule:
    """A heap of events. `now` is virtual, in seconds; `events` counts those that have happened."""

    def __init__(self) -> None:
        self.now = 0.0
        self.events = 0
        self._heap: list[tuple[float, int, Timer]] = []
        self._seq = 0

    def at(self, at: float, action: Action, *args: Any) -> Timer:
        """Let `action(*args)` happen at a time; in the past means now."""
        self._seq += 1
        timer = Timer(max(at, self.now), action, args)
        heapq.heappush(self._heap, (timer.at, self._seq, timer))
        return timer

    def after(self, seconds: float, action: Action, *args: Any) -> Timer:
        return self.at(self.now + seconds, action, *args)

    def run(self, until: float) -> None:
        """Let happen what is due by then, and let time pass to it."""
        heap = self._heap
        while heap and heap[0][0] <= until:
            at, _, timer = heapq.heappop(heap)
            if timer.action is not None:
                self.now = at
                self.events += 1
                timer.action(*timer.args)
        self.now = max(self.now, until)
