"""Scenarios with a group: together they have every way in which slices move, and each moves some."""

from __future__ import annotations

from collections import Counter

import pytest

from plimsoll.simulator.run import run_seed
from plimsoll.simulator.scenarios.catalogue import SCENARIOS
from plimsoll.simulator.scenarios.group_scenarios import GROUP_SCENARIOS


@pytest.mark.sampled(5)
@pytest.mark.parametrize("scenario", GROUP_SCENARIOS, ids=lambda scenario: scenario.name)
def test_slices_move_and_items_are_processed(scenario):
    assert SCENARIOS[scenario.name] is scenario
    found: Counter[str] = Counter()
    for seed in range(4):
        outcome = run_seed(scenario.name, seed)
        assert outcome.ok, f"{scenario.name} {seed}: {outcome.error or outcome.verdict}"
        found.update({**outcome.slices, "processed_once": outcome.verdict.processed_once})
    assert found["slices_moved"] + found["slices_revoked"] > 10, "the former are of the last life of the head"
    assert found["processed_once"] > 200


def test_together_they_have_every_fault_and_both_algorithms():
    for fault in ("crash_client", "crash_edge", "crash_head", "pause_client", "pause_edge", "pause_head", "one_way"):
        assert any(getattr(one.fault_rates, fault) for one in GROUP_SCENARIOS), fault
    assert {one.group.balancing for one in GROUP_SCENARIOS if one.group is not None} == {"Rates", "Pairing"}
    assert any(one.handovers.handovers for one in GROUP_SCENARIOS)


def test_only_where_heads_are_killed_a_gap_is_allowed():
    with_gaps = [one.name for one in GROUP_SCENARIOS if not one.is_gap_free]
    assert with_gaps == ["groups-heads", "groups-caches-heads", "groups-sessions-heads"]
    gap_free = [one for one in GROUP_SCENARIOS if one.is_gap_free]
    assert all(one.durable or not one.fault_rates.crash_head for one in gap_free)
