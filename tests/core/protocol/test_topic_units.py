"""Names of units, and hashes of topics."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.protocol.topic_units import HASH_END, hash_of_unit, subscriber_of_unit, topic_hash, unit_name


@given(st.text(min_size=1, max_size=40), st.integers(0, HASH_END))
def test_a_unit_is_known_by_its_name(subscriber: str, topic: int):
    name = unit_name(subscriber, topic)
    assert (hash_of_unit(name), subscriber_of_unit(name)) == (topic, subscriber)


@pytest.mark.parametrize("name", ["app", "app#", "app#0000000", "app#0000000g", "app#0000000F", "#00000000", ""])
def test_another_name_is_a_subscriber_as_a_whole(name: str):
    assert hash_of_unit(name) is None
    assert subscriber_of_unit(name) == name


def test_equal_topics_have_one_hash():
    """A subscription to 1 selects 1.0 as well, so both are one topic."""
    assert topic_hash(1) == topic_hash(1.0) != topic_hash(1.5)
    assert topic_hash("123456789") == 0xCBF43926, "the check value of CRC-32"
    assert topic_hash(True) == topic_hash("true"), "they share a bundle, and nothing else"


def test_any_topic_has_a_hash():
    assert 0 <= topic_hash("\ud800") <= HASH_END, "half of a surrogate pair cannot be encoded in the plain way"
