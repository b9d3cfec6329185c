"""Each report is counted once; one that may be a repetition is late; no epoch locks a broker out permanently."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.telemetry.ingest.report_sequence import SILENT_US, WINDOW, ReportSequence


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 200)), max_size=200))
def test_nothing_is_counted_twice_and_everything_is_judged(said: list[tuple[int, int]]):
    numbers, counted = ReportSequence(), set()
    highest = (0, 0)
    for epoch, seq in said:
        verdict = numbers.classify(epoch, seq, 0)
        if (epoch, seq) in counted:
            assert verdict in ("duplicate", "late")
        elif epoch > highest[0] or (epoch == highest[0] and seq > highest[1] - WINDOW):
            assert verdict == "counted"
        else:
            assert verdict == "late"
        if verdict == "counted":
            counted.add((epoch, seq))
            highest = max(highest, (epoch, seq))


def test_the_window_ends_where_it_ends():
    numbers = ReportSequence()
    assert numbers.classify(1, WINDOW + 1, 0) == "counted"
    assert numbers.classify(1, 2, 0) == "counted"
    assert numbers.classify(1, 2, 0) == "duplicate"
    assert numbers.classify(1, 1, 0) == "late"
    assert numbers.classify(1, 10 * WINDOW, 0) == "counted"
    assert numbers.classify(1, 10 * WINDOW, 0) == "duplicate"
    assert numbers.classify(1, 10 * WINDOW - 1, 0) == "counted"


def test_a_lower_epoch_is_taken_once_the_higher_one_has_been_silent():
    numbers = ReportSequence()
    assert numbers.classify(9, 5, 0) == "counted"
    assert numbers.classify(3, 1, SILENT_US) == "late"
    assert numbers.classify(3, 1, SILENT_US + 1) == "counted"
    assert numbers.classify(3, 2, SILENT_US + 2) == "counted"
    assert numbers.classify(9, 6, SILENT_US + 3) == "counted", "a higher epoch is always news"


def test_an_epoch_that_was_there_before_does_not_come_back():
    numbers = ReportSequence()
    numbers.classify(3, 1, 0)
    numbers.classify(9, 1, 0)
    assert numbers.classify(3, 2, 10 * SILENT_US) == "late"
