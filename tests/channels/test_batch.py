"""What a batch consumes and what its commit says."""

from __future__ import annotations

from plimsoll.channels.batch import Result, RowCounts, RowRange, first_commit, next_commit, planned_ranges


def test_ranges_begin_behind_the_places_and_are_bounded():
    ranges = planned_ranges({"a": 10, "b": 5}, {"a": 12, "b": 5, "c": 7}, most=100)
    assert ranges == {"a": RowRange(11, 12), "b": RowRange(6, 5), "c": RowRange(8, 7)}
    assert [each.count for each in ranges.values()] == [2, 0, 0]
    assert planned_ranges({"a": 10}, {"a": 1000}, most=100) == {"a": RowRange(11, 110)}


def test_a_feed_that_was_begun_anew_is_read_from_its_first_row():
    assert planned_ranges({"a": 10}, {"a": 3}) == {"a": RowRange(1, 3)}


def test_a_commit_sums_up_and_keeps_places_of_feeds_without_new_rows():
    first = first_commit({"a": 10, "b": 5}, 1, {"a": "d1", "b": "d2"})
    assert (first.number, first.before, first.places) == (0, 0, {"a": 10, "b": 5})
    second = next_commit(
        first, {"a": 14}, RowCounts(4, 2, 1, 1), (("fire",),), (Result({"x": 1}),),
        unasked=2, invalid=3, at_us=20, query_us=5, late_us=3, due_us=12, datasets={"a": "d3"},
    )  # fmt: skip
    third = next_commit(
        second, {"b": 6}, RowCounts(1, 1), (), (Result({"x": 2}), Result({"x": 3})), unasked=0,
        invalid=0, at_us=3, query_us=5,
    )  # fmt: skip
    assert (first.last_due_us, second.last_due_us, third.datasets) == (1, 12, {"a": "d3", "b": "d2"})
    assert (third.number, third.places) == (2, {"a": 14, "b": 6})
    assert third.totals.rows == RowCounts(5, 3, 1, 1)
    assert (third.totals.results, third.before, third.totals.unasked, third.totals.invalid_results) == (3, 1, 2, 3)
