"""The fewest units that do as much as a plan of Pulsar: found where all placements of its bundles can be tried."""

from __future__ import annotations

import pytest
from tests.core.policies.fleet_laws import fleet_for, policies, run

from plimsoll.core.policies.pulsar import fewest_moves

OURS = next(chosen for chosen in policies() if chosen.label == "Pulsar, ThresholdShedder")
SEEDS = range(12)


def test_fewer_units_move_where_all_placements_can_be_tried(monkeypatch: pytest.MonkeyPatch):
    found = [run(fleet_for(OURS, seed), OURS, optimum=False) for seed in SEEDS]
    reasons = [move.reason for one in found for plan in one.plans for move in plan.moves]
    assert any("fewest moves, " in reason for reason in reasons)
    monkeypatch.setattr(fewest_moves, "PLACEMENTS_AT_MOST", 1)
    alone = [run(fleet_for(OURS, seed), OURS, optimum=False) for seed in SEEDS]
    assert not any("fewest moves" in move.reason for one in alone for plan in one.plans for move in plan.moves)
    assert sum(one.moved for one in found) < sum(one.moved for one in alone)
