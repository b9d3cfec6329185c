"""A mutant that no world finds is found by its scripted test: the test passes, and fails with the rule broken."""

from __future__ import annotations

import pytest
from tests.simulator.mutants.catalogue import ALL
from tests.simulator.mutants.finding import recorded
from tests.simulator.mutants.rewriting import plant
from tests.simulator.mutants.scripted import SCRIPTED


@pytest.mark.sampled(25)
@pytest.mark.parametrize("name", SCRIPTED)
def test_the_scripted_test_finds_the_mutant(name: str, monkeypatch: pytest.MonkeyPatch):
    test, arguments = SCRIPTED[name]
    test(*arguments)
    plant(monkeypatch, ALL[name].changes)
    with pytest.raises(AssertionError):
        test(*arguments)


def test_every_mutant_is_found_in_a_world_or_by_a_test_or_breaks_no_law():
    in_worlds = {name for name, one in recorded().items() if one.world}
    harmless = {name for name, mutant in ALL.items() if mutant.harmless}
    assert set(ALL) - in_worlds - harmless - set(SCRIPTED) == set()
    assert set(SCRIPTED) & (in_worlds | harmless) == set(), "found in a world: remove it from SCRIPTED"
