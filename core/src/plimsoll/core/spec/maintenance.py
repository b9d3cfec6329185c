"""Maintenance windows: when automatic balancing may move subscribers. Times are seconds since 1970.

Windows follow the wall clock: they are not scaled with the fleet's time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from plimsoll.core.spec.cron import CronSchedule
from plimsoll.core.spec.types.cluster import MaintenanceWindow

_schedule = lru_cache(maxsize=1024)(CronSchedule.parse)


def is_window_open(windows: Sequence[MaintenanceWindow], now: float) -> bool:
    """Whether a window is open, from its beginning to before its end. Without windows, it is always open."""
    return not windows or any(windows_close_at([window], now) is not None for window in windows)


def windows_close_at(windows: Sequence[MaintenanceWindow], now: float) -> float | None:
    """When the last of the currently open windows closes, or None if none is open."""
    ends = (
        last + window.duration.seconds
        for window in windows
        if (last := _schedule(window.schedule).last(now, window.duration.seconds)) is not None
    )
    return max((end for end in ends if end > now), default=None)


def next_window_at(windows: Sequence[MaintenanceWindow], now: float) -> float:
    """When a window is next open: now, if one is open or there are none."""
    if is_window_open(windows, now):
        return now
    return min(_schedule(window.schedule).next(now) for window in windows)
