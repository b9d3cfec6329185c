"""Assignment functions: the examples of the text, uniformity, what has no slice, and stamps of groups."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.policies.consumer_groups.assignment_functions import AssignmentFunction, SliceStamper
from plimsoll.core.predicates import parse
from plimsoll.core.protocol.wire import Scalar


def test_the_sensors_of_the_text() -> None:
    # DPSLB 2014, figure 13
    modulo = AssignmentFunction("Modulo", 10, "sensor")
    assert [modulo.slice_of({"sensor": sensor}, "p", 1) for sensor in (21, 1, 52, 19)] == [1, 1, 2, 9]


def test_modulo_takes_whole_numbers_alone() -> None:
    modulo = AssignmentFunction("Modulo", 10, "sensor")
    assert modulo.slice_of({"sensor": 52.0}, "p", 1) == 2
    assert modulo.slice_of({"sensor": -3}, "p", 1) == 7
    for value in (2.5, True, "21", float("nan"), float("inf")):
        assert modulo.slice_of({"sensor": value}, "p", 1) is None
    assert modulo.slice_of({}, "p", 1) is None


@pytest.mark.parametrize("kind", ["Modulo", "Hash", "Random"])
def test_two_nodes_with_six_and_four_slices_process_60_and_40_percent(kind: str) -> None:
    # DPSLB 2014, figure 11
    function = AssignmentFunction(kind, 10, "id")  # type: ignore[arg-type]  # one of its literals
    drawn = random.Random(7)
    counts = Counter(function.slice_of({"id": drawn.getrandbits(32)}, "p", n) for n in range(100_000))
    first = sum(counts[number] for number in range(6)) / 100_000
    assert abs(first - 0.6) < 0.01
    assert set(counts) == set(range(10))


def test_a_publisher_has_one_slice() -> None:
    function = AssignmentFunction("Publisher", 16)
    assert len({function.slice_of({"x": n}, "feed-1", n) for n in range(100)}) == 1
    assert len({function.slice_of({}, f"feed-{n}", 1) for n in range(200)}) == 16


def test_a_range_is_divided_evenly() -> None:
    function = AssignmentFunction("Range", 4, "latitude", -90.0, 90.0)
    values = (-90.0, -45.1, -45.0, 0, 44.9, 45, 90)
    assert [function.slice_of({"latitude": each}, "p", 1) for each in values] == [0, 0, 1, 2, 2, 3, 3]
    for outside in (-90.1, 90.1, float("nan"), "0", None):
        attributes: dict[str, Scalar] = {} if outside is None else {"latitude": outside}
        assert function.slice_of(attributes, "p", 1) is None


@given(
    st.sampled_from(["Modulo", "Hash", "Publisher", "Random", "Range"]),
    st.integers(1, 10_000),
    st.one_of(st.integers(-(2**63), 2**63), st.floats(), st.text(), st.booleans()),
    st.integers(1, 2**40),
)
def test_a_slice_is_one_of_the_group_and_always_the_same(kind: str, count: int, value: Scalar, number: int) -> None:
    function = AssignmentFunction(kind, count, "a", -1e6, 1e6)  # type: ignore[arg-type]  # one of its literals
    found = function.slice_of({"a": value}, "p", number)
    assert found is None or 0 <= found < count
    assert function.slice_of({"a": value}, "p", number) == found


def test_a_stamp_of_the_publisher_counts_only_for_a_function_of_its_own() -> None:
    modulo = SliceStamper("readings", None, AssignmentFunction("Modulo", 10, "sensor"))
    assert modulo.stamp({"sensor": 21, "slice.readings": 5}, "p", 1) == 1
    assert modulo.stamp({"slice.readings": 5}, "p", 1) is None
    own = SliceStamper("readings", None, AssignmentFunction("Application", 10))
    assert own.stamp({"slice.readings": 5}, "p", 1) == 5
    for wrong in (10, -1, True, "5", 5.0):
        assert own.stamp({"slice.readings": wrong}, "p", 1) is None


def test_an_item_without_a_slice_goes_nowhere_or_by_hash() -> None:
    function = AssignmentFunction("Modulo", 10, "sensor")
    assert SliceStamper("g", None, function).stamp({"x": 1}, "p", 1) is None
    by_hash = SliceStamper("g", None, function, "Hash")
    assert by_hash.stamp({"x": 1}, "p", 1) == by_hash.stamp({"x": 2}, "p", 2) is not None


def test_a_group_stamps_what_its_filter_matches() -> None:
    stamper = SliceStamper("g", parse("[class,=,'READING']"), AssignmentFunction("Publisher", 4))
    assert stamper.asks_for({"class": "READING"})
    assert not stamper.asks_for({"class": "STOCK"})
