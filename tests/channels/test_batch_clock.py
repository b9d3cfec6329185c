"""The periods of a repetitive channel."""

from __future__ import annotations

from plimsoll.channels.batch_clock import BatchClock, period_at


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
