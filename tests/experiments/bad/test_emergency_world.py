"""The emergency scenario: the paper's counts, results by period, none without a report."""

from itertools import pairwise

import pytest

from plimsoll.experiments.bad.emergency_world import CHANNELS, EmergencyPlan, area_of, emergency_world, near

PERIODS = {channel.name: channel.period_seconds for channel in CHANNELS}


def test_the_counts_are_about_the_papers():
    """BAD 2019: in total 2,200 front-end and 610 back-end ones; its ranges alone give 2,400 of the first on average."""
    worlds = [emergency_world(EmergencyPlan(reports=0), seed) for seed in range(5)]
    assert all(world.front_end == pytest.approx(2200, rel=0.2) for world in worlds)
    assert all(world.back_end == pytest.approx(610, rel=0.15) for world in worlds)


def test_each_subscriber_has_one_to_five_channels_and_one_to_three_subscriptions_of_each():
    for each in emergency_world(EmergencyPlan(reports=0), 1).subscribers:
        names = [one.channel for one in each.parameters]
        assert 1 <= len(set(names)) <= 5
        assert all(1 <= names.count(name) <= 3 for name in names)


def test_results_are_periods_apart_and_hold_every_report_once():
    world = emergency_world(EmergencyPlan(subscribers=60, reports=300, seconds=300.0), 2)
    for one, results in world.results.items():
        gaps = [later - earlier for earlier, later in pairwise(results.times)]
        period = PERIODS[one.channel]
        assert all(gap / period == pytest.approx(round(gap / period)) for gap in gaps)
    of_types = [results for one, results in world.results.items() if one.channel == "Emergency of Type"]
    assert sum(sum(each.sizes) for each in of_types) <= 300 * 700
    assert all(size >= 200 for results in world.results.values() for size in results.sizes)


def test_without_reports_there_are_no_results():
    world = emergency_world(EmergencyPlan(reports=0), 1)
    assert not any(results.times for results in world.results.values())


def test_the_same_seed_is_the_same_world_and_another_one_another():
    plan = EmergencyPlan(subscribers=20, reports=100, seconds=60.0)
    assert emergency_world(plan, 3) == emergency_world(plan, 3)
    assert emergency_world(plan, 3) != emergency_world(plan, 4)


def test_near_is_an_area_and_those_around_it():
    assert area_of((0.0, 0.0)) == 0
    assert near(0) == [0, 1, 4, 5]
    assert len(near(5)) == 9
    assert near(area_of((0.999, 0.999))) == [10, 11, 14, 15]
