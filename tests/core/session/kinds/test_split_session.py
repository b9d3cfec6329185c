"""Splits that users ask for: stored before any broker is told, or refused with a reason and without a trace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.core.session.aggregating import Aggregating
from tests.core.session.bundling import Bundling, pulsar

from plimsoll.core.policies.model.hash_ranges import Partition
from plimsoll.core.session import FleetView

FOUR = Partition.of_count(4)
NAMES = [bundle.name for bundle in FOUR.ranges]


def world_of(**own: Any) -> Bundling:
    world = Bundling(seed=3, policy=pulsar(**own))
    for number in range(16):
        world.topic(number, 1.0, 2)
    world.run(4.0)
    return world


def asked(world: Any, *bundles: str, **fields: Any) -> str:
    uid = world.ask("cut", source="east", action="Split", select={"bundles": list(bundles)}, **fields)
    world.until_over(uid, seconds=60.0)
    return str(uid)


def test_a_bundle_is_split_and_nothing_moves():
    world = world_of(split={"unloadHalves": False})
    before = {edge: set(names) for edge, names in world.serves.items()}
    session = world.session(asked(world, NAMES[0]))
    assert (session.phase, session.reason, session.kind) == ("Succeeded", "Divided", "split")
    assert session.message == f"{NAMES[0]} is split at 0x20000000"
    world.until(lambda: world.partition == FOUR.split(FOUR.ranges[0], 0x20000000))
    world.run(10.0)
    assert world.serves == before


def test_several_are_split_together_or_not_at_all():
    world = world_of()
    session = world.session(asked(world, NAMES[0], "0x00000000_0x00001000"))
    assert (session.phase, session.reason) == ("Rejected", "NoSplit")
    world.run(5.0)
    assert world.partition == FOUR
    asked_for = world.session(world.ask("both", source="east", action="Split", select={"bundles": NAMES[:2]}))
    world.until(lambda: len(world.partition) == 6)
    assert asked_for.name == "both"


@pytest.mark.parametrize(
    ("bundles", "own", "why"),
    [
        (["0x00000000_0x80000000"], {}, "is not a bundle of the cluster now"),
        ([NAMES[3]], {}, "has 0 topics"),
        ([NAMES[0]], {"bundles": {"initial": 4, "maximum": 4}}, "4 is the most that the policy allows"),
    ],
)
def test_what_cannot_be_split_has_its_reason(bundles: list[str], own: dict[str, Any], why: str):
    world = world_of(**own)
    session = world.session(asked(world, *bundles))
    assert (session.phase, session.reason) == ("Rejected", "NoSplit")
    assert why in session.message


def test_a_dry_run_says_where_and_splits_nothing():
    world = world_of()
    session = world.session(asked(world, NAMES[0], mode="DryRun"))
    assert (session.phase, session.reason) == ("Succeeded", "DryRun")
    assert session.message == f"{NAMES[0]} is split at 0x20000000"
    world.run(5.0)
    assert world.partition == FOUR


def test_a_cluster_without_bundles_has_nothing_to_split():
    world = Aggregating()
    session = world.session(asked(world, NAMES[0]))
    assert (session.phase, session.reason) == ("Rejected", "NoBundles")


@pytest.mark.parametrize("dies_at", range(1, 12))
def test_a_mediator_that_dies_has_told_no_broker_what_is_not_stored(dies_at: int):
    world = world_of(split={"unloadHalves": False})
    world.dies_at = world.effects + dies_at
    session = world.session(asked(world, NAMES[0]))
    assert session.phase == "Succeeded"
    world.until(lambda: len(world.partition) == 5)
    stored = [tuple(save.memory["boundaries"]) for save in world.remembered]
    told = [tuple(table.boundaries) for table in world.head.tables]
    assert set(told) <= {FOUR.boundaries, *stored}


def test_a_split_waits_for_reports_of_the_edge_that_owns_the_bundle():
    """A mediator that has just begun knows no topics yet: that is no reason to refuse."""
    world = Bundling(seed=3, policy=pulsar(split={"unloadHalves": False}))
    for number in range(16):
        world.topic(number, 1.0, 2)
    session = world.session(asked(world, NAMES[0]))
    assert (session.phase, session.reason) == ("Succeeded", "Divided")


def test_a_split_whose_edge_does_not_report_ends_with_its_time_in_the_queue():
    world = world_of()
    owner, since, seen = world.head.bundles.owners[FOUR.ranges[0]], world.now, world.view

    def view() -> FleetView:
        found = seen()
        silent = replace(found.edges[owner], report_age_seconds=world.now - since + 1.0)
        return replace(found, edges={**found.edges, owner: silent})

    world.view = view  # the edge has been silent since
    uid = world.ask("cut", source="east", action="Split", select={"bundles": [NAMES[0]]}, limits={"queueFor": "6s"})
    world.until_over(uid, seconds=60.0)
    session = world.session(uid)
    assert session.reason == "QueueTimeout"
    assert f"{owner} has not reported since" in session.message
    assert world.partition == FOUR
