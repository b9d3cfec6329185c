"""Correlated topics: by name, and by rates that rise together."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.policies.model.topic_correlation import (
    LOOKS_AT_MOST,
    LOOKS_NEEDED,
    TOPICS_COMPARED,
    TopicCorrelation,
    coefficient,
    correlation_of_spec,
    with_look,
)
from plimsoll.core.protocol.topic_units import topic_hash
from plimsoll.core.spec.parser import parse_block
from plimsoll.core.spec.types.policy import PolicySpec

STEADY = (50.0,) * 12
BURST = (50.0,) * 8 + (100.0,) * 4
LATER = (20.0,) * 8 + (45.0,) * 4
FALLING = (80.0,) * 8 + (10.0,) * 4


def test_rates_that_rise_together_are_correlated_and_no_others():
    assert coefficient(BURST, LATER) == pytest.approx(1.0)
    assert coefficient(BURST, FALLING) == pytest.approx(-1.0)
    assert coefficient(BURST, STEADY) is None, "a rate that does not change rises with none"
    assert coefficient(BURST[-7:], LATER) is None, "too few common looks"
    assert coefficient((0.0,) * 12, BURST) is None


def test_noise_is_not_taken_for_correlation():
    """Of 1,000 pairs of independent rates with a third of noise, by far most are far below the threshold."""
    draw = random.Random(1)
    found = [
        coefficient(*(tuple(draw.gauss(50.0, 16.0) for _ in range(LOOKS_AT_MOST)) for _ in range(2))) or 0.0
        for _ in range(1000)
    ]
    assert sum(each >= 0.8 for each in found) <= 1


def test_a_group_of_the_policy_is_correlated_whatever_its_rates_are():
    own = TopicCorrelation(groups=(("north", frozenset({1, 2})), ("south", frozenset({3, 4}))))
    assert list(own.correlated(1, [1, 2, 3], {})) == [(2, "both are of the group north")]


def test_the_reason_names_the_coefficient():
    found = dict(TopicCorrelation().correlated(1, [2, 3, 4], {1: BURST, 2: LATER, 3: FALLING, 4: STEADY}))
    assert found == {2: "their rates rise together, coefficient 1.00"}


def test_a_topic_counts_from_its_first_look_and_two_that_come_at_once_have_not_risen():
    history: dict[int, tuple[float, ...]] = {}
    for number in range(12):
        history = with_look(history, {1: 10.0} if number < 6 else {1: 10.0, 2: 50.0, 3: 50.0})
    assert history == {1: (10.0,) * 12, 2: (50.0,) * 6, 3: (50.0,) * 6}
    assert not dict(TopicCorrelation().correlated(2, [3], history))


def test_a_topic_that_stops_is_seen_to_fall_and_forgotten_later():
    history = with_look({}, {1: 10.0, 2: 20.0})
    history = with_look(history, {1: 10.0})
    assert history[2] == (20.0, 0.0)
    for _ in range(LOOKS_AT_MOST):
        history = with_look(history, {1: 10.0})
    assert history.keys() == {1}
    assert len(history[1]) == LOOKS_AT_MOST


@given(st.dictionaries(st.integers(0, 2**32 - 1), st.floats(0.0, 1e6), max_size=100), st.integers(1, 40))
def test_a_history_is_bounded_whatever_comes(rates: dict[int, float], looks: int):
    history: dict[int, tuple[float, ...]] = {}
    for _ in range(looks):
        history = with_look(history, rates)
    assert len(history) <= TOPICS_COMPARED
    assert all(len(series) == min(looks, LOOKS_AT_MOST) for series in history.values())


@given(
    st.lists(st.floats(0.0, 1e6), min_size=LOOKS_NEEDED, max_size=LOOKS_AT_MOST),
    st.lists(st.floats(0.0, 1e6), min_size=LOOKS_NEEDED, max_size=LOOKS_AT_MOST),
)
def test_the_coefficient_is_symmetric_and_at_most_one(one: list[float], other: list[float]):
    found = coefficient(tuple(one), tuple(other))
    assert found == coefficient(tuple(other), tuple(one))
    assert found is None or -1.000001 <= found <= 1.000001


def spec(**correlation: object) -> PolicySpec:
    own = {"topicAttribute": "topic", **({"correlation": correlation} if correlation else {})}
    return parse_block(PolicySpec, {"type": "DelaySensitive", "delaySensitive": own})


def test_the_policy_says_which_topics_are_kept_apart():
    assert correlation_of_spec(None) is None
    assert correlation_of_spec(spec()) == TopicCorrelation()
    assert correlation_of_spec(spec(apart=False)) is None
    found = correlation_of_spec(spec(above="900m", groups=[{"name": "north", "topics": ["a", "b"]}]))
    assert found == TopicCorrelation(0.9, (("north", frozenset({topic_hash("a"), topic_hash("b")})),))
