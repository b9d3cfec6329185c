"""Histograms of delays: exact means, percentiles within two per cent."""

import random

import pytest

from plimsoll.simulator.queueing.delays import DelayHistogram, DelaysOverTime


def test_mean_is_exact_and_percentiles_are_near():
    draw, histogram = random.Random(1), DelayHistogram()
    values = [draw.expovariate(10.0) + 1e-4 for _ in range(5000)]
    for value in values:
        histogram.add(value, 2)
    values.sort()
    assert histogram.mean == pytest.approx(sum(values) / len(values))
    for share in (0.5, 0.9, 0.99):
        assert histogram.percentile(share) == pytest.approx(values[int(share * len(values)) - 1], rel=0.03)


def test_nothing_has_no_delay():
    assert DelayHistogram().mean is None
    assert DelayHistogram().percentile(0.5) is None


def test_intervals_are_kept_apart():
    delays = DelaysOverTime(10.0)
    delays.add(5.0, 1.0, 3)
    delays.add(15.0, 2.0, 1)
    assert delays.between(0.0, 10.0).mean == 1.0
    assert delays.between(0.0, 20.0).mean == 1.25
    assert delays.total == 4
