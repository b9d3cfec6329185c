"""Profiles: rows of equal subscribers, and what a row takes with it, against Table 1 and against plain sets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.policies.hand import pair_of

from plimsoll.core.policies.model.profile import ProfileRow, SubscriptionProfile, profile_rows
from plimsoll.core.policies.model.traffic import SampleBlock, SampledTraffic

TRAFFIC = SampledTraffic([SampleBlock(width=6, rate=0.5, size_bytes=100.0)])
STOCK = ProfileRow("stock", 0b110111, ("a", "b"))
ABOVE_15 = ProfileRow("above 15", 0b110100, ("c",))
SPORTS = ProfileRow("sports", 0b001000, ("d",))


def test_the_rates_of_table_1():
    """PADRES 2006, 4.1: of [class,=,'STOCK'] the target takes in all but one publication a second already."""
    profile = SubscriptionProfile(TRAFFIC, (STOCK, ABOVE_15, SPORTS), accepting=0b110001)
    assert profile.rate(STOCK) == pytest.approx(2.5)
    pair = pair_of(profile)
    assert pair.extra_rate(STOCK) == pytest.approx(1.0)
    pair.choose(STOCK, 1)
    assert pair.accepting == 0b110111
    assert pair.extra_rate(ABOVE_15) == 0.0


def test_what_others_need_is_not_saved():
    profile = SubscriptionProfile(TRAFFIC, (STOCK, ABOVE_15, SPORTS))
    assert profile.input_rate == pytest.approx(3.0)
    pair = pair_of(profile)
    assert pair.saved_rate(ABOVE_15) == 0.0
    assert pair.saved_rate(STOCK) == pytest.approx(1.0)
    assert pair.saved_rate(SPORTS) == pytest.approx(0.5)


def test_each_subscriber_of_a_row_takes_its_own_bytes():
    profile = SubscriptionProfile(TRAFFIC, (SPORTS,), overhead_bytes=20.0)
    assert profile.output_bytes_per_second(SPORTS) == pytest.approx(0.5 * 120.0)


def test_subscribers_that_ask_for_the_same_are_one_row():
    rows = profile_rows([("b", "k", 3, 1), ("c", "j", 1, 2), ("a", "k", 3, 1)])
    assert rows == (ProfileRow("j", 1, ("c",), 2), ProfileRow("k", 3, ("a", "b")))
    with pytest.raises(ValueError, match="a and b both ask for 'k'"):
        profile_rows([("b", "k", 3, 1), ("a", "k", 2, 1)])


@given(st.lists(st.integers(0, 63), min_size=1, max_size=6), st.integers(0, 63))
def test_rates_are_those_of_sets_of_publications(bits: list[int], accepting: int):
    rows = tuple(ProfileRow(str(i), each, (str(i),)) for i, each in enumerate(bits))
    profile = SubscriptionProfile(TRAFFIC, rows, accepting)
    sets = [{i for i in range(6) if each >> i & 1} for each in bits]
    taken = {i for i in range(6) if accepting >> i & 1}
    assert profile.input_rate == pytest.approx(0.5 * len(set().union(*sets)))
    pair = pair_of(profile)
    assert pair.extra_rate(rows[0]) == pytest.approx(0.5 * len(sets[0] - taken))
    assert pair.saved_rate(rows[0]) == pytest.approx(0.5 * len(sets[0] - set().union(*sets[1:])))
