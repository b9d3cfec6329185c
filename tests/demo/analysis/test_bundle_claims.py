"""Claims on bundles: each is held by its figure and by nothing else, and never without a figure."""

from dataclasses import replace

import pytest
from tests.demo.analysis.test_bundle_history import FIRST, HIGH, LOW, SECOND, look

from plimsoll.demo.analysis.bundle_claims import BundleFigures, UsageSpread, judged_claims, mean_usage, spread

GOOD = BundleFigures(
    counts={"lost": 0, "duplicated": 0, "reordered": 0},
    looks=[
        look(1.0, {LOW: "e-0", HIGH: "e-1"}, rates={LOW: 1500.0}),
        look(2.0, {FIRST: "e-0", SECOND: "e-1", HIGH: "e-1"}, rates={FIRST: 1200.0, SECOND: 300.0}),
    ],
    limit=1000.0,
    threshold=0.1,
    shed=1,
    before=UsageSpread(0.5, 0.3, 0.3),
    after=UsageSpread(0.2, 0.15, 0.08),
    transfer_seconds=0.1,
    lookup_seconds=0.4,
    owned_again_seconds=3.0,
)


def unmet(figures):
    return [claim.claim for claim in judged_claims(figures) if not claim.held]


def test_all_are_held_by_a_good_run():
    assert unmet(GOOD) == []


@pytest.mark.parametrize("name", ["lost", "duplicated", "reordered"])
def test_one_wrong_delivery_is_one_too_many(name):
    assert unmet(replace(GOOD, counts={**GOOD.counts, name: 1})) == [f"deliveries {name}"]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"shed": 0}, "ThresholdShedder"),
        ({"after": UsageSpread(0.2, 0.15, 0.11)}, "highest usage above the average"),
        ({"threshold": 0.05}, "highest usage above the average"),
        ({"transfer_seconds": 2.1}, "Transfer"),
        ({"lookup_seconds": 5.1}, "Lookup"),
        ({"owned_again_seconds": 10.1}, "killed edge"),
        ({"transfer_seconds": None}, "Transfer"),
        ({"lookup_seconds": None}, "Lookup"),
        ({"owned_again_seconds": None}, "killed edge"),
        ({"limit": 1500.0}, "hot bundle"),
    ],
)
def test_a_figure_beyond_its_bound_or_missing_unholds_its_claim_alone(change, what):
    (claim,) = unmet(replace(GOOD, **change))
    assert what in claim


def test_a_spread_that_was_not_measured_holds_nothing():
    assert len(unmet(replace(GOOD, after=UsageSpread(None, None, None)))) == 1


def test_halves_with_one_owner_must_be_below_the_limit():
    together = look(2.0, {FIRST: "e-0", SECOND: "e-0", HIGH: "e-1"}, rates={FIRST: 1200.0, SECOND: 300.0})
    assert unmet(replace(GOOD, looks=[GOOD.looks[0], together])) == [
        "parts of the hot bundle with one owner and a load above the limit"
    ]
    below = replace(together, rates={FIRST: 900.0, SECOND: 300.0})
    assert unmet(replace(GOOD, looks=[GOOD.looks[0], below])) == []


def test_a_half_that_was_split_again_counts_by_its_parts():
    again = look(3.0, {"0x00000000_0x20000000": "e-0", "0x20000000_0x40000000": "e-1", SECOND: "e-0", HIGH: "e-1"})
    assert unmet(replace(GOOD, looks=[*GOOD.looks, again])) == []
    alone = look(
        3.0,
        {**dict.fromkeys(again.owners, "e-0"), HIGH: "e-1"},
        rates={SECOND: 2000.0, **dict.fromkeys(again.owners, 1.0)},
    )
    assert unmet(replace(GOOD, looks=[*GOOD.looks, alone])) == []
    hot = look(3.0, alone.owners, rates={**alone.rates, SECOND: 2000.0})
    assert len(unmet(replace(GOOD, looks=[*GOOD.looks, hot]))) == 1


def test_without_a_split_both_claims_on_it_are_unmet():
    assert len(unmet(replace(GOOD, looks=GOOD.looks[:1]))) == 2


def test_a_bundle_served_by_two_edges_has_not_one_owner():
    last = replace(GOOD.looks[-1], serving={HIGH: ("e-0", "e-1")})
    assert unmet(replace(GOOD, looks=[*GOOD.looks, last])) == ["bundles without one owner at the end"]
    assert "bundles without one owner at the end" in unmet(replace(GOOD, looks=[]))


def test_the_spread_of_usages():
    found = spread({"e-0": 0.1, "e-1": 0.3}, ["e-1", "e-1", "e-0"])
    assert found.cov == pytest.approx(0.5)
    assert found.above == found.above_of_several == pytest.approx(0.1)
    assert spread({"e-0": 0.0, "e-1": 0.0}, []) == spread({}, []) == UsageSpread(None, None, None)


def test_an_edge_with_one_bundle_sheds_none_and_is_not_judged():
    found = spread({"e-0": 0.5, "e-1": 0.2, "e-2": 0.2}, ["e-0", "e-1", "e-1", "e-2", "e-2"])
    assert found.above == pytest.approx(0.2)
    assert found.above_of_several == pytest.approx(-0.1)
    assert spread({"e-0": 0.5}, ["e-0"]).above_of_several is None


def test_the_usage_of_an_edge_is_averaged_between_two_times():
    columns = {
        "seconds": [1.0, 2.0, 3.0], "input_utilization": [0.9, 0.1, 0.5], "output_utilization": [0.9, 0.3, 0.4],
    }  # fmt: skip
    assert mean_usage(columns, 1.5, 3.0) == pytest.approx(0.4)
    assert mean_usage(columns, 4.0, 5.0) == 0.0
