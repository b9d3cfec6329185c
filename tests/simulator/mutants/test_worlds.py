"""Worlds in which mutants show themselves: sound machines keep the laws there, and what a world is for happens."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.simulator.mutants import worlds

SEEDS = range(3)
BESIDE = ("lease-end", "doubts", "stopped", "logged-gaps")
"""What these are about happens beside hand-overs, which seldom get anywhere there."""

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
    assert happened["moved"] or world in BESIDE, "a world in which nobody is moved shows nothing"
    for what in HAPPENS.get(world, ()):
        assert happened[what], f"{world} is about {what}, and there was none"
