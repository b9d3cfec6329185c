"""Delivery delays of a run: for each interval of time a histogram with bins of equal ratio."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable

SMALLEST_SECONDS = 1e-5
BINS_PER_FACTOR_OF_E = 50
"""Two delays in one bin differ by two per cent at most."""


class DelayHistogram:
    """Counts of delays by bin, with the exact sum."""

    __slots__ = ("bins", "count", "total_seconds")

    def __init__(self) -> None:
        self.bins: Counter[int] = Counter()
        self.count, self.total_seconds = 0, 0.0

    def add(self, seconds: float, count: int) -> None:
        """Count this many deliveries of one delay."""
        self.count += count
        self.total_seconds += seconds * count
        self.bins[int(math.log(max(seconds, SMALLEST_SECONDS) / SMALLEST_SECONDS) * BINS_PER_FACTOR_OF_E)] += count

    @property
    def mean(self) -> float | None:
        """The mean in seconds; None without deliveries."""
        return self.total_seconds / self.count if self.count else None

    def percentile(self, share: float) -> float | None:
        """The delay in seconds that this share of the deliveries did not exceed; None without deliveries."""
        left = share * self.count
        for number, count in sorted(self.bins.items()):
            left -= count
            if left <= 0:
                return SMALLEST_SECONDS * math.exp((number + 0.5) / BINS_PER_FACTOR_OF_E)
        return None


class DelaysOverTime:
    """Histograms by interval of the time at which a delivery arrived."""

    def __init__(self, interval_seconds: float = 1.0) -> None:
        self.interval_seconds = interval_seconds
        self.intervals: defaultdict[int, DelayHistogram] = defaultdict(DelayHistogram)

    def add(self, at: float, seconds: float, count: int) -> None:
        """Count deliveries that arrive at `at`, `seconds` after they were published."""
        self.intervals[int(at / self.interval_seconds)].add(seconds, count)

    def between(self, start: float, end: float) -> DelayHistogram:
        """All deliveries of the intervals that begin within this time."""
        return joined(
            self.intervals[number] for number in sorted(self.intervals)
            if start <= number * self.interval_seconds < end
        )  # fmt: skip

    @property
    def total(self) -> int:
        return sum(each.count for each in self.intervals.values())


def joined(histograms: Iterable[DelayHistogram]) -> DelayHistogram:
    """The histogram of all deliveries together."""
    whole = DelayHistogram()
    for each in histograms:
        whole.bins.update(each.bins)
        whole.count += each.count
        whole.total_seconds += each.total_seconds
    return whole
