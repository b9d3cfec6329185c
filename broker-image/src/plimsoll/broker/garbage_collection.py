"""Runs Python's cyclic garbage collector at chosen times, outside of the traffic.

A head's log is some hundred thousand small objects. Left to itself, the collector walks all of them whenever they have
grown by a quarter: measured, 30 to 55 ms for a log of 64 MiB, which is the worst latency that a publication meets. The
young generations are left alone (0.4 ms); the old one is collected now and then, and after connections were lost, since
a lost link leaves cycles that hold its window.
"""

from __future__ import annotations

import gc
from typing import Final

DISABLED_THRESHOLD: Final = 1_000_000
LOST_CONNECTIONS: Final = 64
SHORTEST_SECONDS: Final = 10.0
LONGEST_SECONDS: Final = 600.0


class GarbageCollectionSchedule:
    """Runs the old generation's collection; call `collect_if_due` now and then with the connections lost so far."""

    def __init__(self, now: float) -> None:
        self.collections = 0
        self._at, self._lost = now, 0
        self._before = gc.get_threshold()

    def start(self) -> None:
        """Exempt all present objects from later collections."""
        young, middle, _ = self._before
        gc.collect()
        gc.freeze()
        gc.set_threshold(young, middle, DISABLED_THRESHOLD)

    def collect_if_due(self, now: float, lost: int) -> bool:
        """Collect if it is time; true if it was."""
        waited = now - self._at
        if waited < LONGEST_SECONDS and (waited < SHORTEST_SECONDS or lost - self._lost < LOST_CONNECTIONS):
            return False
        gc.collect()
        self.collections += 1
        self._at, self._lost = now, lost
        return True

    def stop(self) -> None:
        gc.set_threshold(*self._before)
        gc.unfreeze()
