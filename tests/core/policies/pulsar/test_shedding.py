"""Which edges shed bundles."""

from __future__ import annotations

import pytest

from plimsoll.core.policies.pulsar.shedding import AvgThresholds, avg_reliefs, pair_hits, pairs, threshold_reliefs


def test_threshold_shedder_sheds_down_to_its_line():
    (relief,) = threshold_reliefs({"a": 0.9, "b": 0.3, "c": 0.3}, 0.1)
    assert (relief.source, relief.target, relief.hits_all) == ("a", "", True)
    assert relief.share == pytest.approx(0.3 / 0.9), "from 0.9 to 0.6"
    assert relief.reason == "usage 0.900 is above 0.600, the average plus 0.1"


@pytest.mark.parametrize("usage", [[50, 50, 50, 50, 50, 0], [12, 2, 1, 1], [80] * 10 + [0]])
def test_threshold_shedder_never_sheds_towards_an_idle_broker(usage: list[int]):
    """Cases that its users have reported. It is the letter; AvgShedder is there for them."""
    by_name = {f"e-{number:02}": each / 100 for number, each in enumerate(usage)}
    assert threshold_reliefs(by_name, 0.1) == ()


def test_avg_shedder_does_so_after_some_looks():
    usage = {f"e-{number:02}": 0.8 for number in range(10)} | {"e-10": 0.0}
    hits: dict[str, int] = {}
    found = []
    for _ in range(3):
        hits = pair_hits(hits, usage, AvgThresholds())
        found.append([(each.source, each.target, each.share) for each in avg_reliefs(hits, usage, AvgThresholds())])
    assert found == [[], [("e-00", "e-10", 0.5)], [("e-00", "e-10", 0.5)]]


def test_a_small_difference_takes_eight_looks_and_a_change_of_pair_begins_again():
    limits, usage, hits = AvgThresholds(), {"a": 0.5, "b": 0.3}, dict[str, int]()
    for look in range(1, 9):
        hits = pair_hits(hits, usage, limits)
        assert bool(avg_reliefs(hits, usage, limits)) == (look == 8)
    hits = pair_hits(hits, {"a": 0.4, "b": 0.3}, limits)
    assert hits == {}, "closer than the threshold"
    hits = pair_hits(pair_hits({}, usage, limits), {"a": 0.3, "b": 0.5}, limits)
    assert hits == {"low:b/a": 1}


def test_pairs_join_the_highest_with_the_lowest():
    usage = {"a": 0.1, "b": 0.9, "c": 0.5, "d": 0.4, "e": 0.45}
    assert pairs(usage) == [("b", "a"), ("c", "d")]
    assert pairs({}) == []
    assert avg_reliefs({}, {"a": 0.0, "b": 0.0}, AvgThresholds()) == ()
