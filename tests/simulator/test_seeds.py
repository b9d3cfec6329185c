"""Seeds that once found a fault of the machines; each says what it was.

A seed replays the same course only as long as the machines send the same frames, so these are a memory, not a proof.
"""

from __future__ import annotations

import pytest

from plimsoll.simulator.run import run

SEEDS = [
    ("head-restart", 16, "an edge took position 2 of a new head epoch for position 2 of the old one, and dropped it"),
    ("lossy", 5, "credit that was lost on its way was never given again: an open link stood still for ever"),
]


@pytest.mark.parametrize(("scenario", "seed", "fault"), SEEDS)
def test_what_was_found_once_stays_mended(scenario: str, seed: int, fault: str):
    outcome = run(scenario, seed)
    assert outcome.ok, f"{fault}:\n{outcome.verdict}"
