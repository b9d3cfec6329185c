"""How numbers are aggregated: exact definitions, so that every implementation gets the same figures to the last bit.

A value is first rounded to whole billionths (`nano`: half to even). Sums and sums of squares are of whole numbers, so
the order of the rows does not matter, and only the last step is a division.

- mean: sum / n. stddev: of the population, sqrt((n x squares - sum^2) / n^2).
- A percentile is a value that occurred, by nearest rank: the smallest such that p percent of the values are not above
  it, which is number ceil(n x p / 100) of the sorted values, counted from 1 (SQL's `percentile_disc`).
- skew: the greatest mean of a broker / the mean of the brokers' means; 1 if all carry the same, or nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

NANO: Final = 1_000_000_000
PERCENTILES: Final = (50, 95, 99)


class MetricStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """One metric over one window, in the unit of its column. `n`: values, one per report."""

    n: int
    mean: float
    stddev: float
    max: float
    p50: float
    p95: float
    p99: float
    skew: float


def to_billionths(value: float) -> int:
    """The value in whole billionths."""
    return round(value * NANO)


def percentile_rank(n: int, percent: int) -> int:
    """The index of a percentile among `n` sorted values."""
    return -(-n * percent // 100) - 1


def compute_statistics(values: Iterable[int], broker_means: Sequence[tuple[int, int]]) -> MetricStatistics | None:
    """Statistics of values in billionths; `broker_means` has (sum, n) of each broker's values. None without values."""
    ordered = sorted(values)
    if not ordered:
        return None
    p50, p95, p99 = (ordered[percentile_rank(len(ordered), percent)] for percent in PERCENTILES)
    return statistics_from_sums(
        len(ordered), sum(ordered), sum(v * v for v in ordered), ordered[-1], (p50, p95, p99), broker_means
    )


def statistics_from_sums(
    n: int, total: int, squares: int, largest: int, percentiles: tuple[int, int, int],
    broker_means: Sequence[tuple[int, int]],
) -> MetricStatistics:  # fmt: skip
    """From exact sums (billionths; squares in billionths squared) to figures. `n` is at least 1."""
    p50, p95, p99 = percentiles
    return MetricStatistics(
        n=n,
        mean=total / (n * NANO),
        stddev=math.sqrt(max(0, n * squares - total * total) / (n * n * NANO * NANO)),
        max=largest / NANO,
        p50=p50 / NANO,
        p95=p95 / NANO,
        p99=p99 / NANO,
        skew=load_skew(broker_means),
    )


def load_skew(broker_means: Sequence[tuple[int, int]]) -> float:
    """The load of the most loaded broker over the mean of all: a ratio, 1 if there is no load."""
    means = [total / n for total, n in broker_means]
    average = math.fsum(means) / len(means)  # exact before rounding, so the order does not matter
    return max(means) / average if average > 0 else 1.0
