"""How long a broker will take for a publication when its subscriptions have changed.

`Linear` is the paper's: time goes with the number of subscriptions, as it does where each of them is looked at. An
index looks at few of them, and what takes time is what it finds: `Fitted` goes with the matches of a publication, by
a line through what was measured. Both are values; `Fit` is what a broker keeps to make the second.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

HALF_LIFE = 20_000.0
"""After how many publications an observation counts half."""

PRIOR = 0.02
"""Where matches hardly vary, a line through the origin is believed: as much as what was seen, if the standard deviation
of matches is this part of their root mean square."""

OUTLIER = 10.0
"""What takes so many times as long as expected was not the broker's doing, and counts as no more than that."""


@dataclass(frozen=True, slots=True)
class Change:
    """What comes or goes: subscriptions in the matching engine, and matches of a publication on average."""

    subscriptions: int = 0
    matches: float = 0.0


class MatchDelay(Protocol):
    """A model of the matching delay of one broker."""

    @property
    def delay_seconds(self) -> float:
        """As things are."""

    def after(self, change: Change) -> float:
        """Seconds for a publication, at least 0, when this has changed."""


@dataclass(frozen=True, slots=True)
class Linear:
    """d' = (n + dn) / n x d. PADRES 2006, eq. 4. `subscriptions`: n; `delay_seconds`: d."""

    subscriptions: int
    delay_seconds: float

    def after(self, change: Change) -> float:
        """With no subscriptions nothing is known of what one would cost: the delay stays as it is."""
        if self.subscriptions <= 0:
            return self.delay_seconds
        return max(0, self.subscriptions + change.subscriptions) / self.subscriptions * self.delay_seconds


@dataclass(frozen=True, slots=True)
class Fitted:
    """d = a + b x matches. `matches`: of a publication, on average, as things are."""

    base_seconds: float
    seconds_per_match: float
    matches: float

    @property
    def delay_seconds(self) -> float:
        """As things are, on the line."""
        return self.base_seconds + self.seconds_per_match * self.matches

    def after(self, change: Change) -> float:
        """On the line, at the new mean of matches."""
        return self.base_seconds + self.seconds_per_match * max(0.0, self.matches + change.matches)


class Fit:
    """Least squares over what a broker takes for its publications, with the past forgotten by and by.

    It remembers five sums. Neither base nor slope is ever negative.
    """

    __slots__ = ("_keep", "_matches", "_products", "_seconds", "_squares", "_weight")

    def __init__(self, half_life: float = HALF_LIFE) -> None:
        if not half_life > 0.0:
            raise ValueError(f"half_life is a number of publications above 0, not {half_life}")
        self._keep = math.log(0.5) / half_life
        self._weight = self._matches = self._seconds = self._squares = self._products = 0.0

    def note(self, matches: float, seconds: float, publications: int = 1) -> None:
        """So many publications had so many matches in all and took so long in all."""
        if publications < 1:
            return
        x, y = matches / publications, seconds / publications
        base, slope = self._line()
        if (expected := base + slope * x) > 0.0:
            y = min(y, OUTLIER * expected)
        keep, weight = math.exp(self._keep * publications), float(publications)
        self._weight = self._weight * keep + weight
        self._matches = self._matches * keep + weight * x
        self._seconds = self._seconds * keep + weight * y
        self._squares = self._squares * keep + weight * x * x
        self._products = self._products * keep + weight * x * y

    def model(self) -> Fitted:
        """The line as it is now, at the mean of matches."""
        base, slope = self._line()
        return Fitted(base, slope, self._matches / self._weight if self._weight else 0.0)

    def _line(self) -> tuple[float, float]:
        """Base and slope."""
        if not self._weight:
            return 0.0, 0.0
        x, y = self._matches / self._weight, self._seconds / self._weight
        square = self._squares / self._weight
        if not square:
            return y, 0.0
        spread, together = max(0.0, square - x * x), self._products / self._weight - x * y
        prior = PRIOR * PRIOR * square
        # Shrunk towards y / x, the slope of the line through the origin, which is also the steepest there may be.
        slope = (together + prior * y / x) / (spread + prior)
        slope = min(max(slope, 0.0), y / x)
        return y - slope * x, slope
