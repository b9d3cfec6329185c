"""The line of a broker's matching delay over its number of subscriptions, fitted to what it has measured.

A number of subscriptions lasts for hours, and then there is nothing to learn from the last publications: the line needs
what was measured at other numbers, long ago. So measurements are kept by level, numbers within a quarter of one
another, and one level pushes out nothing of another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from plimsoll.core.policies.model.match_delay import HALF_LIFE, OUTLIER, PRIOR, SubscriptionMatchDelay

LEVEL_RATIO = 1.25
"""Numbers of subscriptions within this ratio share a level."""

KEPT_FOR = 50.0 * HALF_LIFE
"""After this many publications at other levels, what was measured at one counts half."""

DOUBT = 1.0
"""Weight of the line through the origin, in publications: it matters while there are few."""


@dataclass(slots=True)
class _Level:
    """Means of the publications at one level, and how many there were; `noted_at` counts all publications."""

    weight: float = 0.0
    subscriptions: float = 0.0
    seconds: float = 0.0
    noted_at: float = 0.0


class SubscriptionDelayFitter:
    """Least squares over the levels. Neither base nor slope is ever negative; without a spread the base is 0."""

    __slots__ = ("_count", "_levels")

    def __init__(self) -> None:
        self._levels: dict[int, _Level] = {}
        self._count = 0.0

    def note(self, subscriptions: float, seconds: float, publications: int = 1) -> None:
        """Add an observation: the total seconds of a number of publications, at this number of subscriptions."""
        if publications < 1 or not subscriptions > 0.0:
            return
        each = seconds / publications
        base, slope = self._line()
        if (expected := base + slope * subscriptions) > 0.0:
            each = min(each, OUTLIER * expected)
        level = self._levels.setdefault(round(math.log(subscriptions, LEVEL_RATIO)), _Level())
        kept = min(level.weight, HALF_LIFE)
        share = publications / (kept + publications)
        level.subscriptions += share * (subscriptions - level.subscriptions)
        level.seconds += share * (each - level.seconds)
        level.weight = kept + publications
        self._count += publications
        level.noted_at = self._count

    def model(self, subscriptions: int) -> SubscriptionMatchDelay | None:
        """The line, at a number of subscriptions; None if nothing has been noted."""
        return SubscriptionMatchDelay(*self._line(), subscriptions) if self._levels else None

    def _line(self) -> tuple[float, float]:
        """Base and slope."""
        levels = [(level.weight * 0.5 ** ((self._count - level.noted_at) / KEPT_FOR), level)
                  for level in self._levels.values()]  # fmt: skip
        whole = sum(weight for weight, _ in levels)
        if not whole:
            return 0.0, 0.0
        x = sum(weight * level.subscriptions for weight, level in levels) / whole
        y = sum(weight * level.seconds for weight, level in levels) / whole
        square = sum(weight * level.subscriptions**2 for weight, level in levels) / whole
        spread = max(0.0, square - x * x)
        together = sum(weight * (level.subscriptions - x) * (level.seconds - y) for weight, level in levels) / whole
        # Shrunk towards y / x, the slope of the line through the origin, which is also the steepest one allowed: by as
        # much as a few publications weigh, and further if the numbers of subscriptions hardly differ.
        prior = (PRIOR * PRIOR / 10.0 + DOUBT / whole / 10.0) * square
        slope = (together + prior * y / x) / (spread + prior)
        slope = min(max(slope, 0.0), y / x)
        return max(
            y - slope * x, 0.0
        ), slope  # through the origin rounding may leave a base below 0, which no report has
