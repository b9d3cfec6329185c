"""When a batch is due."""

from __future__ import annotations

from plimsoll.channels.batch import RowRange
from plimsoll.channels.batch_clock import BatchClock

NONE, SOME = [RowRange(3, 2)], [RowRange(3, 2), RowRange(1, 1)]


def test_a_continuous_channel_has_one_as_soon_as_there_are_rows():
    clock = BatchClock(None, 100.0)
    assert not clock.is_due(NONE, 200.0)
    assert clock.is_due(SOME, 100.0)


def test_a_period_has_one_with_or_without_rows_and_those_that_were_missed_are_not_made_up_for():
    clock = BatchClock(10.0, 100.0)
    assert not clock.is_due(SOME, 109.9)
    assert clock.is_due(NONE, 110.0)
    assert clock.is_due(NONE, 139.0), "one that fails is tried again"
    clock.begun(139.0)
    assert not clock.is_due(SOME, 139.9)
    assert clock.is_due(NONE, 140.0)


def test_within_a_period_there_is_nothing_to_look_for():
    assert BatchClock(None, 100.0).wait_seconds(100.0) == 0
    clock = BatchClock(10.0, 100.0)
    assert (clock.wait_seconds(101.5), clock.wait_seconds(110.0)) == (8.5, 0.0)
    clock.begun(110.0)
    assert clock.wait_seconds(113.0) == 7.0


def test_periods_are_kept_late_or_missed():
    clock = BatchClock(10.0, 100.0)
    for began in (110.0, 120.9, 131.1, 160.0):
        clock.begun(began)
    assert (clock.kept, clock.late, clock.missed) == (3, 1, 2)
    continuous = BatchClock(None, 100.0)
    continuous.begun(200.0)
    assert (continuous.kept, continuous.late, continuous.missed) == (0, 0, 0)
