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
    clock.begin(139.0)
    assert not clock.is_due(SOME, 139.9)
    assert clock.is_due(NONE, 140.0)
