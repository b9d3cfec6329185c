"""The shuffle by the letter: from empty, the heaviest first."""

from __future__ import annotations

from dataclasses import replace

from tests.core.policies.bad.small import MIXED, fleet, loads, sample, ways

from plimsoll.core.policies.bad.fleet import bad_fleet
from plimsoll.core.policies.bad.greedy_shuffle import greedy_shuffle


def test_everybody_is_placed_from_empty():
    before = fleet(**MIXED)
    assert loads(before.after(greedy_shuffle(before))) == [36.0, 34.0, 40.0]


def test_a_shuffle_is_one_step_with_a_reason_for_each():
    step = greedy_shuffle(fleet(**MIXED))
    assert all(len(move.subscribers) == 1 and "u = " in move.reason for move in step.moves)
    assert all(move.source != move.target for move in step.moves)


def test_of_equal_brokers_the_own_one_comes_first():
    assert greedy_shuffle(fleet(B1="", B2="a", B3="")).moves == ()


def test_those_that_stay_are_there_from_the_beginning():
    given = replace(sample(B1="a a a", B2=""), staying={"B1-0": "is excluded"})
    step = greedy_shuffle(bad_fleet(given))
    assert ways([step]) == [("B1-1", "B2")], "B1 has 20 already; then both have 20, and the own one comes first"


def test_a_broker_that_takes_no_channel_keeps_some_of_its_own():
    given = replace(sample(B1="a a", B2="d"), takes=frozenset({"B2"}))
    before = bad_fleet(given)
    step = greedy_shuffle(before)
    assert {move.target for move in step.moves} <= {"B2"}
    assert loads(before.after(step)) == [20.0, 24.0]
