"""What a hand-over adds to the delay of deliveries, against the same publication's others."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.local.soak.latency import RATIO, Added, Histogram, Windows


@given(st.lists(st.floats(20e-6, 100.0), min_size=1, max_size=200), st.sampled_from([0.01, 0.5, 0.99, 1.0]))
def test_a_percentile_is_right_to_one_bin(seconds: list[float], share: float) -> None:
    histogram = Histogram()
    for one in seconds:
        histogram.add(one)
    exact = sorted(seconds)[max(0, math.ceil(len(seconds) * share - 1e-9) - 1)]
    found = histogram.percentile(share)
    assert found is not None
    assert exact / (1 + 1e-9) <= found <= exact * RATIO * (1 + 1e-9)
    assert histogram.longest == max(seconds)


@given(st.lists(st.floats(0.0, 10.0), max_size=50), st.lists(st.floats(0.0, 10.0), max_size=50))
def test_histograms_add_up_and_survive_a_file(first: list[float], second: list[float]) -> None:
    both, one, other = Histogram(), Histogram(), Histogram()
    for value in first:
        both.add(value)
        one.add(value)
    for value in second:
        both.add(value)
        other.add(value)
    one.join(Histogram.of(other.as_dict()))
    assert one.as_dict() == both.as_dict()
    assert one.count == len(first) + len(second)


def test_nothing_has_no_percentile() -> None:
    assert Histogram().milliseconds() == {"count": 0, "p50": None, "p99": None, "max": None}


def test_a_window_is_touched_by_whatever_was_under_way_within_it() -> None:
    windows = Windows([("s", (10.0, 11.0)), ("s", (20.0, 21.0)), ("t", (0.0, 1.0))])
    for since, until in [(9.0, 10.0), (10.2, 10.3), (11.0, 12.0), (9.0, 30.0), (20.5, 25.0)]:
        assert windows.touch("s", since, until), (since, until)
    for since, until in [(0.0, 9.9), (11.1, 19.9), (21.1, 30.0)]:
        assert not windows.touch("s", since, until), (since, until)
    assert not windows.touch("unknown", 0.0, 30.0)


def test_added_is_the_delay_less_the_median_of_those_outside() -> None:
    added = Added(Windows([("mover", (10.0, 11.0))]))
    for name, delay in [("a", 0.010), ("b", 0.012), ("c", 0.020), ("mover", 0.112)]:
        added.take("p", name, 10.5, 10.5 + delay)
    added.fold()
    assert added.within.count == 1
    assert added.within.longest == pytest.approx(0.100)
    assert added.raw_within.longest == pytest.approx(0.112)
    assert added.outside.count == 3
    assert added.outside.longest == pytest.approx(0.008)


def test_a_publication_that_nearly_nobody_else_had_is_not_compared() -> None:
    added = Added(Windows([("mover", (10.0, 11.0))]))
    for name in ("a", "b", "mover"):
        added.take("p", name, 10.5, 10.6)
    added.fold()
    assert (added.within.count, added.unpaired, added.raw_within.count) == (0, 1, 1)
