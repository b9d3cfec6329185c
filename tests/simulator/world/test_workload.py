"""The plan of a run is seeded, varied, and means the same to the language of subscriptions and to the oracle."""

from __future__ import annotations

import random

from plimsoll.core import predicates
from plimsoll.core.verify.oracle import matches
from plimsoll.simulator.world.workload import (
    WorkloadSize,
    draw_attributes,
    draw_changes,
    draw_publications,
    draw_subscription,
    subscription_text,
)


def test_the_language_and_the_oracle_agree():
    draw = random.Random(7)
    met = 0
    for _ in range(3000):
        rule, said = draw_subscription(draw), draw_attributes(draw)
        mine = matches(rule, said)
        met += mine
        assert predicates.parse(subscription_text(rule)).matches(said) is mine, (subscription_text(rule), said)
    assert 500 < met < 2500, "publications and subscriptions often meet, and often do not"


def test_a_zero_traffic_subscription_meets_nothing():
    draw = random.Random(1)
    rule = draw_subscription(draw, zero_traffic=True)
    assert not any(matches(rule, draw_attributes(draw)) for _ in range(500))


def test_a_plan_is_made_of_its_seed_alone():
    load = WorkloadSize()
    names = ["a", "b"]
    plans = [draw_publications(load, random.Random(seed), 1.0, names) for seed in (1, 1, 2)]
    assert plans[0] == plans[1] != plans[2]
    assert len(plans[0]) == load.publications
    assert plans[0] == sorted(plans[0], key=lambda one: one.at)
    assert all(1.0 <= one.at <= 1.0 + load.seconds for one in plans[0])
    turns = draw_changes(load, random.Random(1), 1.0, names)
    assert turns == draw_changes(load, random.Random(1), 1.0, names)
    assert {one.predicates is None for one in draw_changes(WorkloadSize(changes=50), random.Random(1), 1.0, names)} == {
        True,
        False,
    }
