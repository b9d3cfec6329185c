"""Every mutant is found in its recorded run, and without the mutant that run keeps the laws.

If a change of the product makes a recorded run pass, `python -m tests.simulator.mutants` looks for another one.
"""

from __future__ import annotations

import pytest
from tests.simulator.mutants import worlds
from tests.simulator.mutants.catalogue import ALL, SECTIONS
from tests.simulator.mutants.finding import broken_laws, recorded
from tests.simulator.mutants.rewriting import plant

FOUND = {name: one for name, one in recorded().items() if one.world}
RUNS = sorted({(one.world, one.seed) for one in FOUND.values()})


def test_each_mutant_has_a_unique_name_and_a_recorded_search():
    assert sum(map(len, SECTIONS.values())) == len(ALL)
    assert [name for name, mutant in ALL.items() if not mutant.harmless and name not in recorded()] == []
    assert [name for name in FOUND if name not in ALL or ALL[name].harmless] == []


@pytest.mark.sampled(40)
@pytest.mark.parametrize("name", FOUND)
def test_a_mutant_is_found(name: str):
    one = FOUND[name]
    laws, outcome = broken_laws(ALL[name], one.world, one.seed)
    assert laws, f"{one.world} {one.seed} does not find {name}, which breaks: {ALL[name].rule}\n{outcome.error}"


@pytest.mark.sampled(25)
@pytest.mark.parametrize(("world", "seed"), RUNS)
def test_the_product_keeps_the_laws_where_mutants_are_found(world: str, seed: int):
    outcome = worlds.run(world, seed)
    assert not worlds.broken(world, outcome), f"{world} {seed}:\n{outcome.error or outcome.verdict}"


@pytest.mark.sampled(without=("changes-after-the-cut", "force-detach"))
@pytest.mark.parametrize("name", [name for name in ALL if ALL[name].harmless])
def test_a_harmless_mutant_breaks_no_law(name: str, monkeypatch: pytest.MonkeyPatch):
    plant(monkeypatch, ALL[name].changes)
    for world in ALL[name].worlds:
        outcome = worlds.run(world, 0)
        assert not worlds.broken(world, outcome), f"{world} 0:\n{outcome.error or outcome.verdict}"
