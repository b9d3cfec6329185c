"""What waits for one unit at an edge: its depth, how fast it comes and goes, and how long it waits.

Looked at once in a report interval. Between two looks messages are taken to come and go evenly, first in, first out, as
they do in the live queues (docs/delay-sensitive.md): so the wait of the message that leaves now is the time since the
count of arrivals was what the count of departures is now.
"""

from __future__ import annotations

from typing import Final

LOOKS_REMEMBERED: Final = 64
"""Looks since the message that leaves now came. Above it every second one is forgotten."""


class UnitQueue:
    """`depth`: messages that wait. `arrived`, `left`: of the last interval. `wait_seconds`: of what leaves now.

    `matched`: what the attachment had counted at the last look. Messages that pass a unit by while its queue is full
    are fetched from the head's log later; they wait there, and count (`passed`).
    """

    __slots__ = ("_came", "_total", "arrived", "depth", "is_new", "left", "matched", "passed", "wait_seconds", "waited")

    def __init__(self, matched: int, queued: int, now: float) -> None:
        self.matched, self.depth = matched, queued
        self.arrived = self.left = self.passed = 0
        self.wait_seconds = self.waited = 0.0
        self.is_new = True
        self._total = queued
        self._came: list[tuple[float, int]] = [(now, queued)]

    def look(self, matched: int, queued: int, now: float, *, is_passed_by: bool) -> None:
        """The interval that ends now. `queued`: messages in the edge's queues for it.

        `is_passed_by`: the stream's messages go to the log, to be fetched from there, and not into its queue.
        """
        self.arrived, self.matched = matched - self.matched, matched
        self.passed = self.passed + self.arrived if is_passed_by else 0
        depth = queued + self.passed
        # What came by another way, as from the log, has arrived as well: nothing leaves that has not.
        self.arrived = max(self.arrived, depth - self.depth)
        self.left, self.depth = self.depth + self.arrived - depth, depth
        self._total += self.arrived
        self.waited, self.wait_seconds = self.wait_seconds, self._wait(now)
        self.is_new = False

    def late(self, allowed_seconds: float) -> int:
        """How many of those that left in the interval had waited longer than they may."""
        low, high = sorted((self.waited, self.wait_seconds))
        if allowed_seconds >= high:
            return 0
        share = 1.0 if allowed_seconds < low else (high - allowed_seconds) / (high - low)
        return round(self.left * share)

    def _wait(self, now: float) -> float:
        if not self.depth:
            self._came = [(now, self._total)]
            return 0.0
        gone, came = self._total - self.depth, self._came
        came.append((now, self._total))
        while len(came) > 2 and came[1][1] <= gone:
            del came[0]
        if len(came) > LOOKS_REMEMBERED:
            del came[1:-1:2]
        (before, low), (after, high) = came[0], came[1]
        share = (gone - low) / (high - low) if high > low else 1.0
        return now - (before + (after - before) * min(1.0, max(0.0, share)))
