"""The worlds for mutants: the unchanged product keeps the laws there, and each world has the events that it is for."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.simulator.mutants import worlds

SEEDS = range(3)
BESIDE = ("lease-end", "doubts", "stopped", "logged-gaps")
"""Worlds for events outside hand-overs; few hand-overs succeed in them."""

HAPPENS = {
    "lease-end": ("crash_client",),
    "doubts": ("crash_head", "crash_edge"),
    "two-heads": ("crash_head",),
    "head-and-edge": ("crash_head", "crash_edge"),
    "stopped": ("pause_client",),
    "logged-gaps": ("wall", "crash_edge"),
    "vanish": ("crash_client",),
    "far-bumpy": ("reconnect", "wall"),
    "edge-crash-across": ("crash_edge",),
}


@pytest.mark.parametrize("world", worlds.OWN)
def test_nothing_is_broken_without_a_mutant(world: str) -> None:
    happened: Counter[str] = Counter()
    for seed in SEEDS:
        outcome = worlds.run(world, seed)
        assert not worlds.broken(world, outcome), f"{world} seed {seed}:\n{outcome.error or outcome.verdict}"
        happened.update(outcome.faults)
        happened.update(outcome.handovers)
    assert happened["moved"] or world in BESIDE, "a world without a successful hand-over tests nothing"
    for what in HAPPENS.get(world, ()):
        assert happened[what], f"{world} is for {what}, and there was none"
