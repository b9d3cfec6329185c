"""The policy as a whole: looks, splits, and when it asks for a plan."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.core.policies.pulsar.small import RANGES, load, names, sample

from plimsoll.core.policies.model.bundle_load import BundleLoad
from plimsoll.core.policies.model.hash_ranges import HashRange, Partition
from plimsoll.core.policies.model.load import BrokerLoad
from plimsoll.core.policies.pulsar.policy import Pulsar, whole_load
from plimsoll.core.policies.pulsar.splitting import Split, SplitLimits
from plimsoll.core.policies.rebalancer import FleetLook, Memory, fleet_plan

EIGHT = Pulsar(bundles=8)


def look(**usage: float) -> FleetLook:
    return FleetLook(tuple(BrokerLoad(name=name, cpu_ratio=value) for name, value in sorted(usage.items())))


def after(policy: Pulsar, *looks: FleetLook, memory: Memory | None = None) -> Memory:
    found = memory or {}
    for each in looks:
        found = policy.observe(json.loads(json.dumps(found)), each)  # as from a store
    return found


def test_a_burst_is_overloaded_at_the_third_look():
    even, burst = look(a=0.3, b=0.3, c=0.3), look(a=0.9, b=0.3, c=0.3)
    found = [bool(EIGHT.wanted(after(EIGHT, even, *[burst] * number))) for number in range(4)]
    assert found == [False, False, False, True]


def test_ours_sheds_only_while_the_load_is_still_there():
    """The smoothed usage stays high for looks after the load has gone; the letter goes on shedding."""
    looks = [look(a=0.9, b=0.1), look(a=0.5, b=0.5)]
    assert EIGHT.wanted(after(EIGHT, *looks)) == ""
    letter = replace(EIGHT, rules="Text")
    assert letter.wanted(after(letter, *looks)).startswith("a: usage 0.860 is above")


def test_an_edge_with_one_bundle_asks_for_no_plan():
    bundles = {"a": (BundleLoad(RANGES[0]),), "b": (BundleLoad(RANGES[1]), BundleLoad(RANGES[2]))}
    high_a = [replace(each, bundles=bundles[each.name]) for each in look(a=0.5, b=0.1).loads]
    high_b = [replace(each, bundles=bundles[each.name]) for each in look(a=0.1, b=0.5).loads]
    assert EIGHT.wanted(after(EIGHT, FleetLook(tuple(high_a)))) == ""
    assert EIGHT.wanted(after(EIGHT, FleetLook(tuple(high_b)))).startswith("b: usage 0.500 is above")
    letter = replace(EIGHT, rules="Text")
    assert letter.wanted(after(letter, FleetLook(tuple(high_a)))).startswith("a: usage 0.500 is above")


def test_after_moves_the_partition_stays():
    memory = EIGHT.split(after(EIGHT, look(a=0.9, b=0.1)), Split(RANGES[0], 9, "hot"))
    kept = EIGHT.after_moves(memory)
    assert EIGHT.partition(kept) == Partition.of_count(8).split(RANGES[0], 9)
    assert set(kept) == {"boundaries", "version"}
    assert replace(EIGHT, rules="Text").after_moves(memory)["usage"] == {"a": 0.9, "b": 0.1}


def test_a_hot_bundle_is_split_at_a_look_and_its_halves_are_unloaded():
    hot = replace(load("a", {0: 10.0}), bundles=(BundleLoad(RANGES[0], topics=1001),))
    memory = after(EIGHT, FleetLook((hot, load("b", {1: 10.0}))))
    parted = EIGHT.partition(memory)
    assert parted == Partition.of_count(8).split(RANGES[0], 0x10000000)
    assert (memory["unload"], memory["version"]) == ([each.name for each in parted.ranges[:2]], 1)
    assert EIGHT.wanted(memory).startswith("2 bundles to unload: 0x00000000_0x10000000")
    quiet = replace(EIGHT, unload_halves=False)
    assert after(quiet, FleetLook((hot, load("b", {1: 10.0}))))["unload"] == []
    assert EIGHT.partition(after(replace(EIGHT, splits=False), FleetLook((hot,)))) == Partition.of_count(8)


def test_the_most_bundles_bound_all_splits_of_a_look():
    loads = tuple(replace(load(f"e-{n}", {}), bundles=(BundleLoad(RANGES[n], topics=2000),)) for n in range(8))
    policy = replace(EIGHT, limits=SplitLimits(most_bundles=10))
    assert len(policy.partition(after(policy, FleetLook(loads)))) == 10
    assert len(policy.partition(after(policy, FleetLook(loads), FleetLook(loads)))) == 10


@pytest.mark.parametrize(
    ("bundle", "loads", "why"),
    [
        (HashRange(0, 0x100), [], "is not a bundle of the cluster now; 0x00000000_0x20000000 has its first hash"),
        (RANGES[0], [], "has 0 topics"),
        (RANGES[0], [BundleLoad(RANGES[0], topics=1)], "has 1 topics"),
    ],
)
def test_a_split_by_hand_may_have_a_reason_against_it(bundle: HashRange, loads: list[BundleLoad], why: str):
    found = EIGHT.split_of({}, bundle, loads, "by hand")
    assert isinstance(found, str)
    assert why in found
    full = replace(EIGHT, limits=SplitLimits(most_bundles=8))
    assert "8 is the most that the policy allows" in str(full.split_of({}, RANGES[0], loads, "by hand"))


def test_a_bundle_at_two_edges_counts_once():
    one, other = (
        BundleLoad(RANGES[0], 3, 5, 7, 10.0, 20.0, 1.0, 2.0),
        BundleLoad(RANGES[0], 1, 1, 0, 10.0, 5.0, 1.0, 1.0),
    )
    assert whole_load(RANGES[0], [one, other]) == BundleLoad(RANGES[0], 3, 6, 7, 10.0, 25.0, 1.0, 3.0)


def test_units_that_stay_away_from_their_bundle_ask_for_a_plan():
    seen = FleetLook((load("a", {0: 1.0}), load("b", {1: 1.0})), owners={names(0)[0]: "b"})
    assert EIGHT.wanted(after(EIGHT, seen)) == "", "some may be on their way"
    assert "another edge than their bundle" in EIGHT.wanted(after(EIGHT, seen, seen))
    gone = replace(seen, owners={names(0)[0]: "a"})
    assert EIGHT.wanted(after(EIGHT, seen, gone, seen)) == ""


def test_a_plan_follows_from_sample_and_memory():
    given = sample(a={0: 500.0, 1: 300.0}, b={3: 50.0})
    memory = after(EIGHT, FleetLook(given.loads))
    made = fleet_plan(EIGHT, given, memory)
    assert [(move.key, move.target) for move in made.moves] == [(names(1)[0], "b")]
    assert made.owners == ((names(1)[0], "b"),)
    assert [round(each.output_utilization, 3) for each in made.after] == [0.5, 0.35]


def test_avg_shedder_asks_by_its_pairs_and_a_policy_may_shed_nothing():
    policy = replace(EIGHT, shedder="AvgShedder")
    apart = look(a=0.9, b=0.1)
    assert [bool(policy.wanted(after(policy, *[apart] * number))) for number in (1, 2)] == [False, True]
    idle = replace(EIGHT, shedder="None")
    assert idle.wanted(after(idle, *[apart] * 9)) == ""


@pytest.mark.parametrize("memory", [{"boundaries": "x", "usage": [1], "hits": {"a": "b"}, "unload": 7, "late": True}])
def test_a_memory_of_another_version_is_read_as_far_as_it_can_be(memory: Memory):
    assert EIGHT.partition(memory) == Partition.of_count(8)
    assert EIGHT.wanted(memory) == ""
    assert EIGHT.observe(memory, look(a=0.1))["usage"] == {"a": 0.1}
