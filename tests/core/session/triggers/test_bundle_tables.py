"""A cluster with bundles balances itself: splits, shedding, late units; and heads are told what the store has."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.session.bundling import STEP_OF_TOPICS, Bundling, pulsar
from tests.core.session.model import Faults

from plimsoll.core.policies.model.hash_ranges import Partition
from plimsoll.core.protocol.topic_units import unit_name

FOUR = Partition.of_count(4)
CALM = Faults()


def world_of(seed: int = 3, faults: Faults = CALM, **own: Any) -> Bundling:
    """a has bundles 0, 1 and 2, at 480, 240 and 60 deliveries a second of 100 bytes; b has bundle 3, at 20."""
    world = Bundling(seed=seed, policy=pulsar(**own), faults=faults)
    for number in range(32):
        rate = (30.0, 15.0, 3.75, 1.25)[number // 8]
        world.topic(number, rate, 2, "a" if number < 24 else "b")
    return world


def plans(world: Bundling) -> list[str]:
    return sorted(one.request.name for one in world.store.values() if not one.request.parent)


def test_the_head_is_told_again_and_again_by_the_mediator_of_today():
    world = world_of()
    world.run(5.0)
    assert len(world.head.tables) >= 4
    assert {(table.mediator, table.version, tuple(table.boundaries)) for table in world.head.tables} == {
        (1, 0, FOUR.boundaries)
    }
    world.start()
    world.run(3.0)
    assert world.head.bundles.version == (2, 0)


def test_an_edge_far_above_the_average_sheds_bundles_and_is_left_alone_then():
    world = world_of()
    world.run(2.0)
    assert world.usage() == [0.78, 0.02, 0.0]
    world.until(lambda: bool(plans(world)) and world.named(plans(world)[0]).is_over)
    session = world.named(plans(world)[0])
    assert (session.phase, session.reason) == ("Succeeded", "Moved")
    world.run(60.0)
    assert max(world.usage()) < 0.6
    places = {edge for bundle in FOUR.ranges for edge in world.places(bundle)}
    assert places == {"a", "b", "c"}
    for bundle in FOUR.ranges:
        assert world.places(bundle) == {world.head.bundles.owners[bundle]}
    before = {edge: set(names) for edge, names in world.serves.items()}
    world.run(300.0)
    assert world.serves == before, "under constant load nothing moves any more"


def test_the_new_owner_is_told_of_until_loads_have_settled_since_moves_may_be_over_before_a_table_arrives():
    world = world_of()
    world.until(lambda: bool(world.head.tables) and bool(world.head.tables[-1].assigned), seconds=60.0)
    assigned = world.head.tables[-1].assigned[0]
    bundle = FOUR.range_of(assigned.low)
    world.until(lambda: world.places(bundle) == {assigned.edge}, seconds=60.0)
    world.head.tables.clear()
    world.run(1.5)
    assert any(assigned in table.assigned for table in world.head.tables)


def test_a_hot_bundle_is_split_and_its_halves_find_their_edges():
    world = world_of(split={"maxMessageRate": "400"})
    world.until(lambda: len(world.partition) == 5, seconds=120.0)
    world.until(lambda: all(len(world.places(bundle)) <= 1 for bundle in world.partition.ranges), seconds=120.0)
    world.until(lambda: max(world.usage()) < 0.6, seconds=120.0)
    stored = {tuple(save.memory["boundaries"]) for save in world.remembered}
    assert {tuple(table.boundaries) for table in world.head.tables} <= {FOUR.boundaries, *stored}


def test_units_that_came_to_another_edge_follow_their_bundle():
    world = world_of(shedding={"strategy": "None"})
    strays = [unit_name(f"stray{number}", STEP_OF_TOPICS) for number in range(3)]
    for name in strays:
        world.move(name, "c")
    world.until(lambda: set(strays) <= world.serves["a"], seconds=60.0)
    assert world.places(FOUR.ranges[0]) == {"a"}


def test_subscribers_without_a_topic_stay_and_the_plan_says_so():
    world = world_of()
    world.fill("a", 5, "whole")
    world.until(lambda: bool(plans(world)) and world.named(plans(world)[0]).is_over)
    session = world.named(plans(world)[0])
    assert session.plan is not None
    assert session.plan.faults == []
    assert [(stay.kind, stay.count) for stay in session.plan.stays if stay.kind == "NoTopic"] == [("NoTopic", 5)]
    assert sum(name.startswith("whole") for name in world.serves["a"]) == 5


@pytest.mark.parametrize("seed", range(8))
def test_with_faults_every_bundle_ends_at_its_owner(seed: int):
    """Lost and repeated messages, dying mediators and restarting heads, for a while."""
    faults = Faults(
        loss=0.1, repeat=0.1, delay=0.1, mediator_dies=0.003, head_restarts=0.001, leaves=0.02, heal_at=1_000_080.0
    )
    world = world_of(seed, faults, split={"maxMessageRate": "400"}, unload="Lookup" if seed % 2 else "Transfer")
    world.run(80.0)
    world.run(200.0)
    for bundle in world.partition.ranges:
        assert world.places(bundle) <= {world.head.bundles.owners.get(bundle, "")}, bundle.name
    stored = {tuple(save.memory["boundaries"]) for save in world.remembered}
    assert {tuple(table.boundaries) for table in world.head.tables} <= {FOUR.boundaries, *stored}
