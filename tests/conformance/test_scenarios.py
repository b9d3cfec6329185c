"""The scenarios: our own client keeps to all of them, and each catches a client that does not."""

from __future__ import annotations

import pytest
from tests.conformance.memory_client import MemoryClient
from tests.conformance.mutants import MUTANTS, Mutant

from plimsoll.conformance import SCENARIOS, Scenario, play

BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
OURS = [scenario for scenario in SCENARIOS if "full" in scenario.profiles]


@pytest.mark.parametrize("scenario", OURS, ids=lambda one: one.name)
def test_our_own_client_keeps_to_it(scenario: Scenario):
    verdict = play(scenario, MemoryClient)
    assert verdict.is_kept, "\n".join([verdict.found, *verdict.exchange])


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: f"{one.scenario}: {one.broken}")
def test_a_wrong_client_is_caught(mutant: Mutant, monkeypatch: pytest.MonkeyPatch):
    mutant.apply(monkeypatch)
    verdict = play(BY_NAME[mutant.scenario], MemoryClient)
    assert not verdict.is_kept, "\n".join(["the mutant was not caught", *verdict.exchange])
    assert verdict.rule is not None
    assert verdict.found
    assert verdict.exchange


def test_every_scenario_catches_a_wrong_client():
    assert set(BY_NAME) == {mutant.scenario for mutant in MUTANTS}


def test_names_are_used_once():
    assert len(BY_NAME) == len(SCENARIOS)
