"""The fewest moves that do as much as a plan of BAD, in fleets so small that every placement can be tried."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.core.policies.bad.small import MIXED, fleet, sample

from plimsoll.core.policies.bad import Bad, fewest_moves
from plimsoll.core.policies.bad.imbalance import Imbalance
from plimsoll.core.policies.rebalancer import fleet_plan

OURS = Bad(beta=0.0)
LETTER = replace(OURS, rules="Paper")


def test_a_shuffle_of_a_small_fleet_needs_fewer_moves():
    """By the letter all five that can go move; two are enough for loads of 36, 34 and 40."""
    letter, ours = (fleet_plan(policy, sample(**MIXED), {}) for policy in (LETTER, OURS))
    assert sum(len(move.subscribers) for move in letter.moves) > sum(len(move.subscribers) for move in ours.moves)
    assert all(move.reason.startswith("fewest moves: F of ") for move in ours.moves)
    assert (letter.ended, ours.ended) == ("Balanced", "Balanced")
    assert letter.stopped.split(",")[0] == ours.stopped.split(",")[0]


def test_what_is_found_is_as_good():
    start = fleet(**MIXED)
    taken, reached, _ = LETTER._taken(start)
    found = fewest_moves.fewest_moves(start, reached, OURS.overload)
    assert taken
    assert found is not None
    after = start.after(found)
    loads = [[broker.load for broker in each.brokers.values()] for each in (after, reached)]
    assert max(loads[0]) <= max(loads[1])
    assert Imbalance.of(loads[0]).cov <= Imbalance.of(loads[1]).cov + 1e-9


def test_where_too_many_placements_are_possible_the_plan_stays(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fewest_moves, "PLACEMENTS_AT_MOST", 1)
    assert fleet_plan(OURS, sample(**MIXED), {}).moves == fleet_plan(LETTER, sample(**MIXED), {}).moves


def test_without_moves_there_are_none_fewer():
    start = fleet(**MIXED)
    assert fewest_moves.fewest_moves(start, start, OURS.overload) is None
