"""Maintenance windows: when balancing that nobody asked for may move subscribers. Times are seconds since 1970.

A window is a wall clock's: it is not scaled with the fleet's time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from plimsoll.core.spec.clusters import MaintenanceWindow
from plimsoll.core.spec.cron import Schedule

_schedule = lru_cache(maxsize=1024)(Schedule.parse)


def is_open(windows: Sequence[MaintenanceWindow], now: float) -> bool:
    """Whether one of the windows is open, its beginning included and its end not; without any it always is."""
    return not windows or any(closes_at([window], now) is not None for window in windows)


def closes_at(windows: Sequence[MaintenanceWindow], now: float) -> float | None:
    """When the last of the windows that are open now closes, or None if none is open."""
    ends = (
        last + window.duration.seconds
        for window in windows
        if (last := _schedule(window.schedule).last(now, window.duration.seconds)) is not None
    )
    return max((end for end in ends if end > now), default=None)


def opens_at(windows: Sequence[MaintenanceWindow], now: float) -> float:
    """When a window is open next: now, if one is or there are none."""
    if is_open(windows, now):
        return now
    return min(_schedule(window.schedule).next(now) for window in windows)
