"""Figures follow their definitions exactly, and no order of rows changes a bit of them."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.telemetry.metric_statistics import (
    NANO,
    PERCENTILES,
    compute_statistics,
    load_skew,
    percentile_rank,
    to_billionths,
)

VALUES = st.lists(st.integers(0, 10**15), min_size=1, max_size=60)


@given(VALUES)
def test_figures_are_what_they_are_defined_to_be(values: list[int]):
    found = compute_statistics(values, [(sum(values), len(values))])
    assert found is not None
    real = [value / NANO for value in values]
    assert found.n == len(values)
    assert found.mean == pytest.approx(statistics.fmean(real), rel=1e-12)
    assert found.stddev == pytest.approx(statistics.pstdev(real), rel=1e-9, abs=1e-9)
    assert found.max == max(real)
    for percent, value in zip(PERCENTILES, (found.p50, found.p95, found.p99), strict=True):
        below = [each for each in real if each <= value]
        smaller = [each for each in real if each < value]
        assert 100 * len(below) >= percent * len(real), "this percentage is not above it"
        assert 100 * len(smaller) < percent * len(real), "and it is the smallest such value"
    assert found.skew == 1.0


@given(VALUES, st.integers(0, 10**6))
def test_order_changes_nothing(values: list[int], seed: int):
    brokers = [(value, 1) for value in values]
    mixed = random.Random(seed).sample(values, len(values))
    assert compute_statistics(values, brokers) == compute_statistics(mixed, [(value, 1) for value in mixed])


def test_nothing_has_no_figures():
    assert compute_statistics([], []) is None


@pytest.mark.parametrize(("n", "percent", "place"), [(1, 50, 0), (2, 50, 0), (3, 50, 1), (20, 95, 18), (100, 99, 98)])
def test_percentiles_are_nearest_ranks(n: int, percent: int, place: int):
    assert percentile_rank(n, percent) == place


def test_values_are_rounded_to_billionths_half_to_even():
    assert (to_billionths(0.25), to_billionths(1e-9), to_billionths(2.5e-9)) == (250_000_000, 1, 2)


def test_skew_is_of_means_of_brokers_not_of_reports():
    assert load_skew([(30, 3), (10, 1)]) == 1.0, "each has a mean of 10"
    assert load_skew([(30, 1), (10, 1)]) == 1.5
    assert load_skew([(0, 5), (0, 1)]) == 1.0, "nothing is carried evenly"


def test_large_sums_stay_exact():
    values = [10**15 - 1, 10**15]
    found = compute_statistics(values, [(value, 1) for value in values])
    assert found is not None
    assert found.stddev == 0.5 / NANO
    assert math.isfinite(found.mean)
