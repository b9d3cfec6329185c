"""LDM and SDM: who goes where, when they stop, and that they always do."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from tests.core.policies.bad.small import ALIKE, MIXED, fleet, imbalance, loads, sample, ways

from plimsoll.core.policies.bad.dynamic_moves import Migration, MoveLimits, is_lower, migrations
from plimsoll.core.policies.bad.fleet import BadFleet, bad_fleet
from plimsoll.core.policies.rebalancer import Step

ANY = MoveLimits(alpha=0.15, beta=0.0)


def migrated(some: BadFleet, scheme: Migration, limits: MoveLimits = ANY) -> tuple[list[Step], BadFleet]:
    steps = migrations(some, scheme, limits)
    taken: list[Step] = []
    while True:
        try:
            taken.append(next(steps))
        except StopIteration as over:
            return taken, over.value


def test_ldm_sends_the_heaviest_to_the_least_loaded():
    before = fleet(**MIXED)
    assert imbalance(before).cov == pytest.approx(1.026, abs=5e-4)
    steps, after = migrated(before, "LoadBased")
    assert ways(steps) == [("B1-0", "B3"), ("B1-3", "B2")], "ab to B3, then ad to B2"
    assert loads(after) == [40.0, 34.0, 36.0]
    assert imbalance(after).cov == pytest.approx(0.068, abs=5e-4)


def test_sdm_goes_where_most_is_shared_and_ldm_where_least_is_carried():
    before = fleet(**ALIKE)
    assert imbalance(before).mean == pytest.approx(24.7, abs=0.05)
    assert ways(migrated(before, "SimilarityBased")[0])[0] == ("B1-0", "B2")
    assert ways(migrated(before, "LoadBased")[0])[0] == ("B1-0", "B3")


def test_sdm_never_goes_to_a_broker_at_the_mean_or_above():
    """B2 shares all of it and is above the mean of 35: B3 gets it, which shares nothing."""
    steps, _ = migrated(fleet(B1="a a a a a", B2="a a a", B3="c"), "SimilarityBased")
    assert ways(steps)[0][1] == "B3"


def test_nothing_moves_below_beta():
    assert migrated(fleet(**ALIKE), "LoadBased", MoveLimits(beta=300.0)) == ([], fleet(**ALIKE))
    assert migrated(fleet(**ALIKE), "LoadBased", MoveLimits(beta=24.6))[0]


def test_nothing_moves_within_alpha():
    assert not migrated(fleet(**ALIKE), "LoadBased", MoveLimits(alpha=0.8, beta=0.0))[0]


@pytest.mark.parametrize("scheme", ["LoadBased", "SimilarityBased"])
def test_one_heavy_subscriber_ends_it(scheme: Migration):
    """By the letter it would go back and forth for ever: 200 and 0, 0 and 200, ..."""
    steps, after = migrated(fleet({"a": 100.0}, B1="a", B2=""), scheme)
    assert len(steps) <= 1
    assert sorted(loads(after)) == [0.0, 200.0]


def test_the_heaviest_that_helps_moves_if_a_heavier_one_does_not():
    steps, after = migrated(fleet({"a": 100.0, "b": 5.0, "c": 10.0}, B1="a b", B2="c"), "LoadBased")
    assert ways(steps) == [("B1-1", "B2")]
    assert loads(after) == [200.0, 30.0]


def test_fewer_brokers_at_the_highest_load_are_progress():
    """B1 and B2 are both at 40: each is relieved in turn, though the highest falls with the second only."""
    steps, after = migrated(fleet({"a": 10.0, "b": 10.0}, B1="a b", B2="a b", B3=""), "LoadBased")
    assert len(steps) >= 2
    assert max(loads(after)) < 40.0


@pytest.mark.parametrize(
    ("after", "before", "expected"),
    [([3, 4], [5, 1], True), ([5, 1], [5, 1], False), ([5, 6], [5, 1], False), ([5, 1, 4], [5, 5, 0], True)],
)
def test_what_counts_as_lower(after: list[float], before: list[float], *, expected: bool):
    assert is_lower(after, before) is expected


def test_subscribers_that_stay_and_brokers_that_take_nothing_are_left_alone():
    given = replace(sample(**MIXED), staying={"B1-0": "is excluded"}, takes=frozenset({"B2"}))
    steps, _ = migrated(bad_fleet(given), "LoadBased")
    assert "B1-0" not in dict(ways(steps))
    assert {target for _, target in ways(steps)} == {"B2"}


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("scheme", ["LoadBased", "SimilarityBased"])
def test_every_step_lowers_the_highest_load_and_it_ends(seed: int, scheme: Migration):
    drawn = random.Random(seed)
    rates = {text: drawn.choice([1.0, 2.0, 10.0, 100.0]) for text in "abcdefgh"}
    brokers = {
        f"B{number}": " ".join(
            "".join(drawn.sample("abcdefgh", drawn.randint(1, 4))) for _ in range(drawn.randint(0, 8))
        )
        for number in range(drawn.randint(2, 5))
    }
    some = fleet(rates, **brokers)
    steps, last = migrated(some, scheme, MoveLimits(0.01, 0.0))
    for step in steps:
        after = some.after(step)
        assert is_lower(loads(after), loads(some))
        some = after
    assert loads(some) == loads(last)
