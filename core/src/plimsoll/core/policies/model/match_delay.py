"""How long a broker will take per publication once its subscriptions have changed.

`LinearMatchDelay` is the paper's: time is proportional to the number of subscriptions, as if each were checked and a
publication cost nothing besides. `SubscriptionMatchDelay` has a base as well. An index checks few subscriptions and
spends its time on the matches that it finds: `FittedMatchDelay` is linear in the matches of a publication. These two
are fitted to measurements; a broker keeps a `SubscriptionDelayFitter` and a `MatchDelayFitter` to make them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

HALF_LIFE = 20_000.0
"""After this many publications an observation counts half."""

PRIOR = 0.02
"""Weight of a line through the origin, for when matches hardly vary: it counts as much as the data when the standard
deviation of matches is this fraction of their root mean square."""

OUTLIER = 10.0
"""A time above this multiple of the expected one was not caused by the broker, and is capped there."""


@dataclass(frozen=True, slots=True)
class MatchLoadChange:
    """A change of subscriptions in the matching engine, and of the average matches of a publication."""

    subscriptions: int = 0
    matches: float = 0.0


class MatchDelayModel(Protocol):
    """A model of the matching delay of one broker."""

    @property
    def delay_seconds(self) -> float:
        """The matching delay without a change."""

    def after(self, change: MatchLoadChange) -> float:
        """Seconds for a publication, at least 0, when this has changed."""


@dataclass(frozen=True, slots=True)
class LinearMatchDelay:
    """d' = (n + dn) / n x d. PADRES 2006, eq. 4. `subscriptions`: n; `delay_seconds`: d."""

    subscriptions: int
    delay_seconds: float

    def after(self, change: MatchLoadChange) -> float:
        """Without subscriptions the cost of one is unknown, so the delay stays as it is."""
        if self.subscriptions <= 0:
            return self.delay_seconds
        return max(0, self.subscriptions + change.subscriptions) / self.subscriptions * self.delay_seconds


@dataclass(frozen=True, slots=True)
class SubscriptionMatchDelay:
    """d = a + b x subscriptions. `subscriptions`: the current number."""

    base_seconds: float
    seconds_per_subscription: float
    subscriptions: int

    @property
    def delay_seconds(self) -> float:
        """The delay on the line, without a change."""
        return self.after(MatchLoadChange())

    def after(self, change: MatchLoadChange) -> float:
        """The delay on the line, at the new number of subscriptions."""
        count = max(0, self.subscriptions + change.subscriptions)
        return self.base_seconds + self.seconds_per_subscription * count


@dataclass(frozen=True, slots=True)
class FittedMatchDelay:
    """d = a + b x matches. `matches`: the current average per publication."""

    base_seconds: float
    seconds_per_match: float
    matches: float

    @property
    def delay_seconds(self) -> float:
        """The delay on the line, without a change."""
        return self.base_seconds + self.seconds_per_match * self.matches

    def after(self, change: MatchLoadChange) -> float:
        """The delay on the line, at the new mean of matches."""
        return self.base_seconds + self.seconds_per_match * max(0.0, self.matches + change.matches)


class MatchDelayFitter:
    """Least squares over a broker's times per publication, with exponential decay.

    It keeps five sums. Neither base nor slope is ever negative.
    """

    __slots__ = ("_keep", "_matches", "_products", "_seconds", "_squares", "_weight")

    def __init__(self, half_life: float = HALF_LIFE) -> None:
        if not half_life > 0.0:
            raise ValueError(f"half_life is a number of publications above 0, not {half_life}")
        self._keep = math.log(0.5) / half_life
        self._weight = self._matches = self._seconds = self._squares = self._products = 0.0

    def note(self, matches: float, seconds: float, publications: int = 1) -> None:
        """Add an observation: total matches and total seconds of a number of publications."""
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

    def model(self) -> FittedMatchDelay:
        """The current line, at the mean of matches."""
        base, slope = self._line()
        return FittedMatchDelay(base, slope, self._matches / self._weight if self._weight else 0.0)

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
        # Shrunk towards y / x, the slope of the line through the origin, which is also the steepest one allowed.
        slope = (together + prior * y / x) / (spread + prior)
        slope = min(max(slope, 0.0), y / x)
        return max(y - slope * x, 0.0), slope  # rounding may leave a base below 0, which no report has
