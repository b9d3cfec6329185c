"""Edges with their bundles, and predictions after a move."""

from __future__ import annotations

from dataclasses import replace

from tests.core.policies.pulsar.small import RANGES, names, sample

from plimsoll.core.policies.model.hash_ranges import Partition
from plimsoll.core.policies.model.plan import PlanMove
from plimsoll.core.policies.pulsar.fleet import PulsarFleet, pulsar_fleet
from plimsoll.core.policies.rebalancer import Step

PARTITION = Partition.of_count(8)


def moved(fleet: PulsarFleet, bundle: int, source: str, target: str) -> PulsarFleet:
    units = fleet.served[source][RANGES[bundle]].units
    name = RANGES[bundle].name
    return fleet.after(Step((PlanMove(name, units, source, target, ""),), owners=((name, target),)))


def test_bundles_are_listed_by_throughput():
    fleet = pulsar_fleet(sample(a={0: 10.0, 1: 30.0}, b={2: 5.0}), PARTITION)
    assert [each.bundle for each in fleet.owned("a")] == [RANGES[1], RANGES[0]]
    assert [each.throughput for each in fleet.owned("a")] == [60.0, 20.0], "in and out"
    assert fleet.owners == {RANGES[0]: "a", RANGES[1]: "a", RANGES[2]: "b"}


def test_a_move_takes_the_load_along_and_back_again():
    before = pulsar_fleet(sample(a={0: 100.0, 1: 300.0}, b={2: 50.0}), PARTITION)
    after = moved(before, 1, "a", "b")
    assert [round(load.output_utilization, 6) for load in before.loads] == [0.4, 0.05]
    assert [round(load.output_utilization, 6) for load in after.loads] == [0.1, 0.35]
    assert [load.subscribers for load in after.loads] == [1, 2]
    assert after.owners[RANGES[1]] == "b"
    back = moved(after, 1, "b", "a")
    assert [round(load.output_utilization, 6) for load in back.loads] == [0.4, 0.05]
    assert [load.output_utilization for load in before.loads] == [0.4, 0.05], "a fleet is a value"


def test_units_away_from_their_bundle_are_late_and_join_the_others():
    given = sample(a={0: 100.0}, b={0: 40.0, 1: 10.0})
    fleet = pulsar_fleet(replace(given, owners={names(0)[0]: "a", names(1)[0]: "b"}), PARTITION)
    assert [(edge, units.bundle) for edge, units in fleet.late()] == [("b", RANGES[0])]
    after = moved(fleet, 0, "b", "a")
    assert list(after.late()) == []
    assert len(after.served["a"][RANGES[0]].units) == 2
    assert fleet.owned("b")[0].bundle == RANGES[1], "what is late is not its own"


def test_a_bundle_stays_as_long_as_one_of_its_units_has_to():
    given = sample(a={0: 1.0, 1: 2.0})
    name = given.profiles["a"].rows[0].names[0]
    fleet = pulsar_fleet(replace(given, staying={name: "moved just now"}), PARTITION)
    assert {units.bundle: units.fixed for units in fleet.owned("a")} == {
        RANGES[0]: f"{name}: moved just now", RANGES[1]: ""
    }  # fmt: skip


def test_owners_that_are_not_known_are_those_who_serve():
    fleet = pulsar_fleet(replace(sample(a={0: 1.0}), owners={"not a bundle": "a", names(0)[0]: "gone"}), PARTITION)
    assert fleet.owners == {RANGES[0]: "a"}


def test_what_a_user_wants_to_be_unloaded_comes_first():
    given = replace(sample(a={0: 1.0, 1: 1.0}), unload=(names(1)[0], "0x00000000_0x00000001"), target="b")
    fleet = pulsar_fleet(given, PARTITION, unload=[*names(0), *names(1)])
    assert (fleet.unload, fleet.target) == ((RANGES[1], RANGES[0]), "b")
