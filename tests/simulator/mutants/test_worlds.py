"""The worlds for mutants: unbroken machines keep the laws in them, and each world has the events that it is for."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.simulator.mutants import worlds

SEEDS = range(3)
BESIDE = (
    "lease-end",
    "doubts",
    "stopped",
    "logged-gaps",
    "slow-disk",
    "rare-syncs",
    "far-away",
    "standby-often",
    "switched-often",
)
"""Worlds whose events happen outside hand-overs, so that members seldom move there."""

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
    "far-away": ("pause_client", "crash_edge", "crash_head"),
    "away-across": ("pause_client", "crash_edge"),
    "standby-often": ("crash_head", "crash_standby"),
}


@pytest.mark.sampled(12)
@pytest.mark.parametrize("world", worlds.OWN)
def test_unbroken_machines_keep_the_laws(world: str) -> None:
    happened: Counter[str] = Counter()
    for seed in SEEDS:
        outcome = worlds.run(world, seed)
        assert not worlds.broken(world, outcome), f"{world} seed {seed}:\n{outcome.error or outcome.verdict}"
        happened.update(outcome.faults)
        happened.update(outcome.handovers)
    assert happened["moved"] or world in BESIDE, "a world in which no subscriber moves tests nothing"
    for what in HAPPENS.get(world, ()):
        assert happened[what], f"{world} is about {what}, and there was none"
