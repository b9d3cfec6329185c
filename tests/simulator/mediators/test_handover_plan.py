"""Plans of hand-overs are drawn from their seed, with the requested mix of kinds."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

from plimsoll.simulator.mediators.handover_plan import TIGHT_SECONDS, HandoverMix, PlannedHandover, draw_handovers
from plimsoll.simulator.world.brokers import FleetShape

MANY = HandoverMix(200, replay=0.5, across=0.5, tight=0.5)


def drawn(mix: HandoverMix = MANY, shape: FleetShape | None = None, seed: int = 1) -> list[PlannedHandover]:
    return draw_handovers(mix, shape or FleetShape(3, 2), random.Random(seed), 1.0, 2.0)


def test_a_plan_depends_on_its_seed_alone():
    assert drawn() == drawn() != drawn(seed=2)
    assert draw_handovers(HandoverMix(), FleetShape(), random.Random(1), 1.0, 2.0) == []


def test_sources_and_targets_are_edges_of_their_heads():
    for move in drawn():
        assert move.source.startswith(move.head + "e")
        assert move.target.startswith(move.target_head + "e")
        assert move.source != move.target
        assert not (move.replay and move.head != move.target_head), "by replay only within a cluster"
        assert 1 <= move.count <= MANY.batch


def test_every_kind_occurs():
    plan = drawn()
    assert [move.at for move in plan] == sorted(move.at for move in plan)
    assert {move.end for move in plan} == {"cut", "abort-preparing", "abort-ready", "abort-late"}
    assert {move.replay for move in plan} == {move.stale for move in plan} == {True, False}
    assert {move.head == move.target_head for move in plan} == {True, False}
    assert min(move.prepare_seconds for move in plan) < TIGHT_SECONDS[1] < max(move.prepare_seconds for move in plan)
    assert min(move.drain_seconds for move in plan) < TIGHT_SECONDS[1] < max(move.drain_seconds for move in plan)
    assert any(one.at - other.at < 0.05 for other, one in itertools.pairwise(plan))


def test_a_cluster_of_one_edge_moves_to_another_cluster():
    plan = drawn(replace(MANY, across=0.0), FleetShape(3, 1))
    assert all(move.head != move.target_head for move in plan)
