"""The workload is seeded and varied, and the subscription language and the oracle agree on it."""

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
    rng = random.Random(7)
    matched = 0
    for _ in range(3000):
        rule, attributes = draw_subscription(rng), draw_attributes(rng)
        expected = matches(rule, attributes)
        matched += expected
        parsed = predicates.parse(subscription_text(rule))
        assert parsed.matches(attributes) is expected, (subscription_text(rule), attributes)
    assert 500 < matched < 2500, "subscriptions often match, and often do not"


def test_a_zero_traffic_subscription_matches_no_publication():
    rng = random.Random(1)
    rule = draw_subscription(rng, zero_traffic=True)
    assert not any(matches(rule, draw_attributes(rng)) for _ in range(500))


def test_a_workload_depends_on_its_seed_alone():
    load = WorkloadSize()
    names = ["a", "b"]
    plans = [draw_publications(load, random.Random(seed), 1.0, names) for seed in (1, 1, 2)]
    assert plans[0] == plans[1] != plans[2]
    assert len(plans[0]) == load.publications
    assert plans[0] == sorted(plans[0], key=lambda one: one.at)
    assert all(1.0 <= one.at <= 1.0 + load.seconds for one in plans[0])
    changes = draw_changes(load, random.Random(1), 1.0, names)
    assert changes == draw_changes(load, random.Random(1), 1.0, names)
    assert {one.predicates is None for one in draw_changes(WorkloadSize(changes=50), random.Random(1), 1.0, names)} == {
        True,
        False,
    }
