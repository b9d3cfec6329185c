"""Unloading, by hand-over and by lookup."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.session.aggregating import Aggregating
from tests.core.session.bundling import Bundling, pulsar

from plimsoll.core.policies.model.hash_ranges import Partition
from plimsoll.core.protocol import messages as msg

FOUR = Partition.of_count(4)
NAMES = [bundle.name for bundle in FOUR.ranges]


def world_of(seed: int = 3, **own: Any) -> Bundling:
    """Bundles 0 and 1 at a, 2 at b."""
    world = Bundling(seed=seed, policy=pulsar(**own))
    for number in range(24):
        world.topic(number, 1.0, 2, "a" if number < 16 else "b")
    world.run(4.0)
    return world


def asked(world: Any, *bundles: str, **fields: Any) -> str:
    uid = world.ask("unload", source="east", action="Unload", select={"bundles": list(bundles)}, **fields)
    world.until_over(uid, seconds=100.0)
    return str(uid)


def test_a_bundle_is_handed_over_whole_to_the_edge_that_is_named():
    world = world_of()
    session = world.session(asked(world, NAMES[0], target="c"))
    assert (session.phase, session.reason, session.counts()["moved"]) == ("Succeeded", "Moved", 16)
    assert world.places(FOUR.ranges[0]) == {"c"}
    assert world.head.bundles.owners[FOUR.ranges[0]] == "c"
    assert world.places(FOUR.ranges[1]) == {"a"}
    assert session.plan is not None
    assert session.plan.bundles == {NAMES[0]: "c"}


def test_newcomers_between_plan_and_cut_end_where_the_bundle_does():
    world = world_of()
    uid = world.ask("unload", source="east", action="Unload", select={"bundles": NAMES[:1]}, target="c")
    world.until(lambda: world.mediator.sessions[uid].plan is not None)
    late = []
    for number in range(50):
        world.topic(number % 8, 1.0, 0)
        late.append(f"late{number:02}#{(number % 8) * 0x08000000:08x}")
        world.look_up(late[-1])
        world.step()
    world.until_over(uid)
    world.until(lambda: world.places(FOUR.ranges[0]) == {"c"})
    assert set(late) <= world.serves["c"]


def test_without_a_target_the_policy_chooses_one():
    world = world_of()
    session = world.session(asked(world, NAMES[0]))
    assert session.reason == "Moved"
    assert world.places(FOUR.ranges[0]) == {"c"}, "it has the least message rate"


@pytest.mark.parametrize("dies_at", [0, *range(1, 30, 2)])
def test_by_lookup_the_units_of_a_bundle_find_another_edge(dies_at: int):
    world = world_of(unload="Lookup")
    world.dies_at = world.effects + dies_at if dies_at else 0
    session = world.session(asked(world, NAMES[0]))
    assert (session.phase, session.reason) == ("Succeeded", "Moved")
    assert session.counts()["moved"] == 16
    assert session.plan is not None
    assert session.plan.handover == "lookup"
    assert world.places(FOUR.ranges[0]) == {world.head.bundles.owners[FOUR.ranges[0]]}
    assert world.places(FOUR.ranges[1]) == {"a"}
    numbers = {each.number for table in world.head.tables for each in table.released}
    assert len(numbers) == 1, "however often it is said, by whichever mediator"


@pytest.mark.parametrize("target", ["b", "c"])
def test_an_edge_that_users_have_named_is_not_left_to_a_lookup(target: str):
    world = world_of(unload="Lookup")
    session = world.session(asked(world, NAMES[0], target=target))
    assert session.plan is not None
    assert (session.reason, session.plan.handover) == ("Moved", "drain")
    assert world.places(FOUR.ranges[0]) == {target}
    assert not any(table.released for table in world.head.tables)


def test_units_that_do_not_come_back_are_said_to_be_gone(monkeypatch: Any):
    world = world_of(unload="Lookup")
    monkeypatch.setattr(world, "look_up", lambda name: world.serves["a"].discard(name))
    session = world.session(asked(world, NAMES[0]))
    assert (session.phase, session.reason) == ("RolledBack", "NobodyMoved")
    assert session.counts()["gone"] == 16


def test_what_the_last_listing_has_shown_counts_when_time_is_up(monkeypatch: Any):
    """Half of the units are drawn to their old edge, so the session waits; then the head answers no more."""
    world = world_of(unload="Lookup")
    half = [name for name in world.serves["a"] if FOUR.ranges[0].holds(int(name[-8:], 16))][:8]
    look_up = world.look_up
    monkeypatch.setattr(world, "look_up", lambda name: None if name in half else look_up(name))
    uid = world.ask("unload", source="east", action="Unload", select={"bundles": NAMES[:1]})
    world.until(lambda: len(world.places(FOUR.ranges[0])) == 2)
    world.run(3.0)
    answer = world.head.on
    monkeypatch.setattr(world.head, "on", lambda said: None if isinstance(said, msg.ListSubscribers) else answer(said))
    world.until_over(uid, seconds=100.0)
    session = world.session(uid)
    assert (session.phase, session.reason) == ("Succeeded", "Partial")
    assert (session.counts()["moved"], session.counts()["stayed"]) == (8, 8)


@pytest.mark.parametrize(
    ("bundles", "fields", "reason"),
    [
        (["0x00000000_0x80000000"], {}, "NotFound"),
        ([NAMES[0]], {"target": "w", "scope": "Global"}, "NotFound"),
        ([NAMES[0]], {"target": "zz"}, "NotFound"),
    ],
)
def test_what_cannot_be_unloaded_has_its_reason(bundles: list[str], fields: dict[str, Any], reason: str):
    world = world_of()
    session = world.session(asked(world, *bundles, **fields))
    assert (session.phase, session.reason) == ("Rejected", reason)


def test_a_cluster_without_bundles_has_nothing_to_unload():
    world = Aggregating()
    session = world.session(asked(world, NAMES[0]))
    assert (session.phase, session.reason) == ("Rejected", "NoBundles")


def test_units_that_come_late_are_handed_over_and_their_bundle_keeps_its_owner():
    """Released, the bundle would be given to another edge, and what is served elsewhere would be late again."""
    world = world_of(unload="Lookup")
    owners = dict(world.head.bundles.owners)
    away = [name for name in sorted(world.serves["a"]) if FOUR.ranges[0].holds(int(name[-8:], 16))][:4]
    for name in away:
        world.move(name, "c")
    world.until(lambda: any(each.is_over and not each.parent for each in world.mediator.sessions.values()))
    [session] = [each for each in world.mediator.sessions.values() if not each.parent]
    assert (session.phase, session.reason, session.counts()["moved"]) == ("Succeeded", "Moved", 4)
    assert session.plan is not None
    assert session.plan.handover == "drain"
    assert world.head.bundles.owners == owners
    assert world.places(FOUR.ranges[0]) == {"a"}
    assert not any(table.released for table in world.head.tables)
