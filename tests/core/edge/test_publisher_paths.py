"""The longest way of a topic, by what a head has said."""

from __future__ import annotations

import math

import pytest

from plimsoll.core.edge.publisher_paths import PathTable, PublisherPath
from plimsoll.core.protocol.messages import OriginPath, PublisherPaths

NEAR = OriginPath("near", 0.1, 0.0, 0.01, [(7, 0.02)])
FAR = OriginPath("far", 0.1, 0.3, 0.02)
SLOW = OriginPath("slow", 0.1, 0.0, 0.9)


def table(*origins: OriginPath, attribute: str = "topic") -> PathTable:
    made = PathTable()
    made.take(PublisherPaths(attribute, list(origins)), "topic")
    return made


def test_the_longest_over_the_heads_that_have_accepted_the_topic():
    known = table(NEAR, FAR, SLOW)
    assert known.longest(1, ["near"], "near") == PublisherPath(0.1, 0.01)
    assert known.longest(7, ["near"], "near") == PublisherPath(0.02, 0.01), "its own publishers are nearer"
    assert known.longest(7, ["near", "far"], "near") == PublisherPath(0.4, 0.02)
    assert known.longest(7, ["near", "far", "slow"], "near") == PublisherPath(0.1, 0.9), "time in heads counts, too"
    assert known.longest(7, None, "near") == PublisherPath(0.1, 0.9)


def test_before_anything_is_published_the_own_head_counts():
    assert table(NEAR, FAR).longest(1, [], "near") == PublisherPath(0.1, 0.01)


def test_heads_that_nothing_is_known_of_add_nothing():
    assert table().longest(1, ["near", "far"], "near") == PublisherPath()
    assert table(NEAR).longest(1, ["near", "gone"], "near") == PublisherPath(0.1, 0.01)


def test_topics_of_another_attribute_are_not_those_of_this_edge():
    assert table(NEAR, attribute="symbol").longest(7, ["near"], "near") == PublisherPath(0.1, 0.01)


@pytest.mark.parametrize("seconds", [-0.1, math.nan, math.inf])
def test_ways_that_cannot_be_are_left_out(seconds: float):
    for wrong in (
        OriginPath("far", seconds, 0.0, 0.0), OriginPath("far", 0.0, seconds, 0.0),
        OriginPath("far", 0.0, 0.0, seconds), OriginPath("far", 0.0, 0.0, 0.0, [(1, seconds)]),
    ):  # fmt: skip
        assert table(NEAR, wrong).longest(1, None, "near") == PublisherPath(0.1, 0.01)
