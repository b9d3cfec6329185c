"""Percentiles by their definition, per second and per edge."""

import pytest

from plimsoll.demo.analysis.delays import DeliveryDelays, percentile, summary


@pytest.mark.parametrize(
    ("share", "value"), [(0.5, 50), (0.99, 99), (1.0, 100), (0.001, 1)]
)  # fmt: skip
def test_a_percentile_is_the_smallest_value_that_this_share_does_not_exceed(share, value):
    assert percentile(range(1, 101), share) == value


def test_nothing_has_no_percentile():
    assert summary([]) == {"count": 0, "p50": None, "p99": None, "max": None}


def test_one_value_is_all_of_them():
    assert summary([0.25]) == {"count": 1, "p50": 0.25, "p99": 0.25, "max": 0.25}


def test_delays_by_second_and_edge():
    delays = DeliveryDelays(start=100.0)
    for edge, at, delay in [("b1", 100.1, 0.1), ("b1", 100.9, 0.3), ("b2", 102.5, 0.2)]:
        delays.take(edge, at, delay)
    assert delays.edges == ["b1", "b2"]
    assert delays.summary() == {"count": 3, "p50": 0.2, "p99": 0.3, "max": 0.3}
    assert delays.summary("b2")["count"] == 1
    assert delays.series() == {
        "seconds": [1, 3], "count": [2, 1], "p50": [0.1, 0.2], "p99": [0.3, 0.2], "max": [0.3, 0.2],
    }  # fmt: skip
    assert delays.series("b1")["seconds"] == [1]
    assert delays.series("none") == {"seconds": []}


def test_two_of_the_same_start_add_up():
    one, other = DeliveryDelays(10.0), DeliveryDelays(10.0)
    one.take("b1", 10.5, 0.1)
    other.take("b1", 10.7, 0.3)
    other.take("b2", 11.7, 0.2)
    one.add(other)
    assert one.edges == ["b1", "b2"]
    assert one.summary("b1") == {"count": 2, "p50": 0.1, "p99": 0.3, "max": 0.3}


def test_whole_seconds_between_two_times():
    delays = DeliveryDelays(10.0)
    for at, delay in ((10.9, 5.0), (11.5, 0.1), (12.5, 0.3), (13.5, 0.2), (14.2, 7.0)):
        delays.take("e", at, delay)
    assert delays.between(0.5, 4.0) == {"count": 3, "p50": 0.2, "p99": 0.3, "max": 0.3}
