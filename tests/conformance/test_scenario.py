"""Scenarios and the profiles that they are for."""

from __future__ import annotations

from tests.conformance.memory_client import MemoryClient

from plimsoll.conformance import PROFILES, SCENARIOS, play


def test_each_is_for_a_profile():
    assert [scenario.name for scenario in SCENARIOS if not scenario.profiles & set(PROFILES)] == []


def test_only_the_full_profile_asks_for_attach():
    asked: set[str] = set()
    for scenario in SCENARIOS:
        if "full" in scenario.profiles:
            verdict = play(scenario, MemoryClient)
            if any("MOVE_TO(" in line for line in verdict.exchange):
                asked.add(scenario.name)
    assert asked
    assert [each.name for each in SCENARIOS if each.name in asked and "simple" in each.profiles] == []
