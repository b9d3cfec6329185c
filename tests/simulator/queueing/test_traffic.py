"""Rates that change in steps: an interval that a change divides goes on at the new rate."""

import math

import pytest

from plimsoll.simulator.queueing.traffic import RateStep, Traffic, TrafficPublisher


def publisher(*steps: tuple[float, float]) -> TrafficPublisher:
    return TrafficPublisher("p", "h", ({"x": 1},), tuple(RateStep(*step) for step in steps))


def test_the_interval_is_that_of_the_rate():
    assert publisher((0, 4)).after(1.0) == 1.25


def test_an_interval_goes_on_at_the_new_rate():
    one = publisher((0, 1), (10, 2))
    assert one.after(9.5) == 10.25  # half of it at one a second, half at two


@pytest.mark.parametrize(("at", "expected"), [(9.5, 20.5), (25.0, 26.0)])
def test_a_publisher_that_rests_goes_on_where_it_stopped(at: float, expected: float):
    one = publisher((0, 1), (10, 0), (20, 1))
    assert one.after(at) == expected


def test_one_that_stops_for_good_has_no_next():
    assert math.isinf(publisher((0, 1), (10, 0)).after(9.5))


def test_no_rate_before_the_first_step():
    assert publisher((5, 1)).rate(4.9) == 0.0
    assert publisher((5, 1)).after(0.0) == 6.0


def test_times_say_when_each_publication_is_due():
    one = TrafficPublisher("p", "h", ({"x": 1},), (), times=(2.0, 2.5, 9.0))
    assert (one.begins_at, one.after(2.0), one.after(2.5)) == (2.0, 2.5, 9.0)
    assert math.isinf(one.after(9.0))
    assert one.publishes_at(9.0)


def test_times_are_shifted_with_the_rest():
    (one,) = Traffic([TrafficPublisher("p", "h", ({"x": 1},), (), times=(2.0, 9.0))], []).shifted(10.0).publishers
    assert one.times == (12.0, 19.0)
