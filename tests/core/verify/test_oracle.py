"""The definition of the operators, case by case, and the short cut of `FilterTable` against asking every filter."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.verify.observations import Triple
from plimsoll.core.verify.oracle import OPERATORS, FilterTable, filter_key, holds, matches

NAN = math.nan


@pytest.mark.parametrize(
    ("operator", "found", "wanted", "answer"),
    [
        ("=", 1, 1, True),
        ("=", 1, 1.0, True),
        ("=", 1, True, False),
        ("=", True, 1, False),
        ("=", True, True, True),
        ("=", "1", 1, False),
        ("=", 2**53 + 1, float(2**53), False),
        ("=", NAN, NAN, False),
        ("!=", 1, 2, True),
        ("!=", 1, 1.0, False),
        ("!=", "a", 1, False),
        ("!=", True, 0, False),
        ("!=", NAN, 1, False),
        ("<", 1, 2, True),
        ("<", 2**53, 2**53 + 1.0, False),
        ("<", 2**53, 2**53 + 1, True),
        ("<", False, True, False),
        ("<", "a", "b", False),
        ("<", -math.inf, 0, True),
        ("<", NAN, 1, False),
        ("<=", 2, 2, True),
        (">", 2.5, 2, True),
        (">", 2, 2, False),
        (">=", 2, 2.0, True),
        (">=", "2", 2, False),
        ("in", "a", ("b", "a"), True),
        ("in", 1, (True, 2), False),
        ("in", 1, (), False),
        ("prefix", "abc", "ab", True),
        ("prefix", "a", "ab", False),
        ("prefix", "", "", True),
        ("suffix", "abc", "bc", True),
        ("suffix", "abc", "", True),
        ("suffix", "c", "bc", False),
        ("contains", "abc", "b", True),
        ("contains", 5, "5", False),
        ("exists", NAN, None, True),
        ("exists", "", None, True),
    ],
)
def test_an_operator_means(operator, found, wanted, answer):
    assert holds(operator, found, wanted) is answer


def test_every_operator_is_defined_above_and_no_other():
    assert {"=", "!=", "<", "<=", ">", ">=", "in", "prefix", "suffix", "contains", "exists"} == OPERATORS
    with pytest.raises(ValueError, match="not defined"):
        holds("~", 1, 1)
    with pytest.raises(ValueError, match="not defined"):
        FilterTable().number([("a", "~", 1)])


def test_a_subscription_is_a_conjunction():
    rule: list[Triple] = [("class", "=", "STOCK"), ("high", ">", 25.0)]
    assert matches(rule, {"class": "STOCK", "high": 26, "low": 1})
    assert not matches(rule, {"class": "STOCK", "high": 25})
    assert not matches(rule, {"high": 26})
    assert not matches([("a", "!=", 1)], {"b": 2}), "a missing attribute matches nothing"
    assert matches([], {}), "no predicate, no condition"


def test_filters_that_look_alike_are_told_apart():
    filters = FilterTable()
    one, floating, true = (filters.number([("a", "=", value)]) for value in (1, 1.0, True))
    assert filters.number([("a", "=", 1)]) == one
    assert filters.matching({"a": 1}) == sorted([one, floating])
    assert filters.matching({"a": True}) == [true]
    assert len(filters) == 3
    assert filter_key([("a", "in", [1, 2])]) == (("a", "in", (1, 2)),)


VALUES = st.one_of(
    st.sampled_from(["", "a", "ab", "ba"]), st.integers(-2, 2), st.booleans(), st.floats(-2, 2), st.just(NAN)
)
NAMES = st.sampled_from("xyz")
PREDICATES = st.one_of(
    st.tuples(NAMES, st.sampled_from(sorted(OPERATORS - {"in", "exists"})), VALUES),
    st.tuples(NAMES, st.just("in"), st.lists(VALUES, max_size=3)),
    st.tuples(NAMES, st.just("exists"), st.none()),
)


@given(st.lists(st.lists(PREDICATES, max_size=3), max_size=8), st.dictionaries(NAMES, VALUES))
def test_the_short_cut_finds_what_asking_all_finds(rules, attributes):
    filters = FilterTable()
    numbers = [filters.number(rule) for rule in rules]
    wanted = {number for number, rule in zip(numbers, rules, strict=True) if matches(rule, attributes)}
    assert filters.matching(attributes) == sorted(wanted)
