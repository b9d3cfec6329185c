"""The world of the simulation: ten to thirty of 1,000 back-end subscriptions each, results at the channel's period."""

from dataclasses import replace
from itertools import pairwise

import pytest

from plimsoll.experiments.bad.large_world import CHANNEL_PERIODS, LargePlan, large_world

SMALL = LargePlan(subscribers=300, seconds=300.0)


def test_the_counts_are_those_of_the_plan():
    world = large_world(SMALL, 1)
    assert (len(world.brokers), len(world.subscribers)) == (10, 300)
    assert all(10 <= len(set(each.parameters)) <= 30 for each in world.subscribers)
    assert world.back_end <= 1000
    assert world.front_end == pytest.approx(20 * 300, rel=0.05)


def test_channels_differ_in_period():
    for one, results in large_world(SMALL, 1).results.items():
        assert len(results.times) == len(results.sizes)
        period = CHANNEL_PERIODS[int(one.channel[1:])]
        assert all(later - earlier == pytest.approx(period) for earlier, later in pairwise(results.times))
        assert results.times[-1] < 300.0


def test_the_same_seed_is_the_same_world():
    plan = replace(SMALL, subscribers=20)
    assert large_world(plan, 1) == large_world(plan, 1)
    assert large_world(plan, 1) != large_world(plan, 2)
