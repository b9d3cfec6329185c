"""The latency that a hand-over adds, by comparison with other deliveries of the same publication."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.soak.added_latency import RATIO, AddedLatency, DurationHistogram, HandoverWindow, HandoverWindows


@given(st.lists(st.floats(20e-6, 100.0), min_size=1, max_size=200), st.sampled_from([0.01, 0.5, 0.99, 1.0]))
def test_a_percentile_is_exact_to_one_bin(seconds: list[float], share: float) -> None:
    histogram = DurationHistogram()
    for one in seconds:
        histogram.add(one)
    exact = sorted(seconds)[max(0, math.ceil(len(seconds) * share - 1e-9) - 1)]
    found = histogram.percentile(share)
    assert found is not None
    assert exact / (1 + 1e-9) <= found <= exact * RATIO * (1 + 1e-9)
    assert histogram.longest == max(seconds)


@given(st.lists(st.floats(0.0, 10.0), max_size=50), st.lists(st.floats(0.0, 10.0), max_size=50))
def test_histograms_merge_and_survive_a_round_trip(first: list[float], second: list[float]) -> None:
    both, one, other = DurationHistogram(), DurationHistogram(), DurationHistogram()
    for value in first:
        both.add(value)
        one.add(value)
    for value in second:
        both.add(value)
        other.add(value)
    one.merge(DurationHistogram.from_dict(other.as_dict()))
    assert one.as_dict() == both.as_dict()
    assert one.count == len(first) + len(second)


def test_an_empty_histogram_has_no_percentiles() -> None:
    assert DurationHistogram().milliseconds() == {"count": 0, "p50": None, "p99": None, "max": None}


def test_a_window_overlaps_every_delivery_in_flight_during_it() -> None:
    windows = HandoverWindows(
        [("s", HandoverWindow(10.0, 11.0)), ("s", HandoverWindow(20.0, 21.0)), ("t", HandoverWindow(0.0, 1.0))]
    )
    for since, until in [(9.0, 10.0), (10.2, 10.3), (11.0, 12.0), (9.0, 30.0), (20.5, 25.0)]:
        assert windows.overlapping("s", since, until), (since, until)
    for since, until in [(0.0, 9.9), (11.1, 19.9), (21.1, 30.0)]:
        assert windows.overlapping("s", since, until) is None, (since, until)
    assert windows.overlapping("unknown", 0.0, 30.0) is None


MOVE = HandoverWindows([("mover", HandoverWindow(10.0, 11.0, source="e1"))])


def test_added_latency_is_the_delay_minus_the_median_outside_handovers() -> None:
    added = AddedLatency(MOVE)
    for name, delay in [("a", 0.010), ("b", 0.012), ("c", 0.020), ("mover", 0.112)]:
        added.add("p", name, 10.5, 10.5 + delay)
    added.compare()
    assert added.during.count == 1
    assert added.during.longest == pytest.approx(0.100)
    assert added.raw_during.longest == pytest.approx(0.112)
    assert added.outside.count == 3
    assert added.outside.longest == pytest.approx(0.008)


def test_a_publication_with_too_few_other_deliveries_is_not_compared() -> None:
    added = AddedLatency(MOVE)
    for name in ("a", "b", "mover"):
        added.add("p", name, 10.5, 10.6)
    added.compare()
    assert (added.during.count, added.raw_during.count) == (0, 1)


def at_two_edges(added: AddedLatency, published_at: float) -> AddedLatency:
    """A publication that takes 1 s at the source e1, 0.1 s at e2, and 0.4 s to the subscriber in a hand-over."""
    for edge, delay in (("e1", 1.0), ("e2", 0.1)):
        for number in range(3):
            added.add("p", f"{edge}-{number}", published_at, published_at + delay, edge)
    added.add("p", "mover", published_at, published_at + 0.4, "e2")
    added.compare()
    return added


def test_beside_the_source_compares_with_subscribers_that_stay_there() -> None:
    added = at_two_edges(AddedLatency(MOVE), published_at=10.5)
    assert (added.beside_source.count, added.beside_source.longest) == (1, 0.0)
    assert added.outside.longest == pytest.approx(0.45)


def test_held_up_compares_publications_made_during_the_handover_with_uninvolved_subscribers() -> None:
    added = at_two_edges(AddedLatency(MOVE), published_at=10.5)
    assert added.held_up.count == 1
    assert added.held_up.longest == pytest.approx(0.3)
    assert at_two_edges(AddedLatency(MOVE), published_at=9.9).held_up.count == 0


def test_a_handover_that_does_not_count_is_neither_inside_nor_outside() -> None:
    windows = HandoverWindows([("mover", HandoverWindow(10.0, 11.0, "e1", counts=False))])
    added = at_two_edges(AddedLatency(windows), published_at=10.5)
    assert (added.during.count, added.held_up.count, added.outside.count) == (0, 0, 6)
