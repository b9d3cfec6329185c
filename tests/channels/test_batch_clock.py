"""The periods of a repetitive channel."""

from __future__ import annotations

from plimsoll.channels.batch_clock import BatchClock, ClockWatch, period_at


def test_periods_are_counted_from_1970_and_a_channel_starts_within_one():
    assert (period_at(10.0, 109.9), period_at(10.0, 110.0), period_at(None, 110.0)) == (10, 11, 0)
    assert BatchClock(10.0, 109.9).period == 10


def test_periods_are_kept_late_or_left_out():
    clock = BatchClock(10.0, 100.0)
    for began in (110.0, 120.9, 131.1, 160.0):
        clock.begun(period_at(10.0, began), began)
    assert (clock.kept, clock.late, clock.missed, clock.period) == (3, 1, 2, 16)
    continuous = BatchClock(None, 100.0)
    continuous.begun(0, 200.0)
    assert (continuous.kept, continuous.late, continuous.missed) == (0, 0, 0)


def test_a_batch_is_late_by_the_time_since_its_period_began_even_in_the_next_one():
    assert BatchClock(10.0, 100.0).late_seconds(11, 121.5) == 11.5
    assert BatchClock(None, 100.0).late_seconds(0, 121.5) == 0


def test_a_large_batch_in_two_parts_is_one_that_kept_its_period():
    clock = BatchClock(10.0, 100.0)
    for began in (110.0, 112.0, 120.0):
        clock.begun(period_at(10.0, began), began)
    assert (clock.kept, clock.late, clock.missed) == (2, 0, 0)


def test_a_clock_that_was_set_back_by_more_than_a_period_is_followed():
    clock = BatchClock(10.0, 200.0)
    clock.follow(195.0)
    assert clock.period == 20, "the period that begins again has had its batch"
    clock.follow(101.0)
    assert clock.period == 10
    assert clock.late_seconds(20, 199.0) == 0


def test_a_watch_tells_once_that_the_clock_was_set_back():
    now, steady = [1000.0], [5.0]
    watch = ClockWatch(lambda: now[0], lambda: steady[0])
    found = []
    for passed, shown in ((60, 60), (60, 59.5), (1, -3600), (1, 1), (1, 3600)):
        steady[0] += passed
        now[0] += shown
        found.append(watch.was_set_back())
    assert found == [False, False, True, False, False]
