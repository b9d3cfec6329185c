"""Seeds that once found a fault of the machines; each says what it was.

A seed replays the same course only as long as the machines send the same frames, so these are a memory, not a proof.
"""

from __future__ import annotations

import pytest

from plimsoll.simulator.run import run_seed

SEEDS = [
    ("head-restart", 16, "an edge took position 2 of a new head epoch for position 2 of the old one, and dropped it"),
    ("small-log", 98, "of two gaps in a row the first told the last offsets of both, so the second was taken for told"),
    ("small-log", 3010, "a gap between heads that another one followed named no offsets, so nobody could place it"),
    ("head-restart-tree", 6, "a restarted head dropped what neighbours relayed before it knew who needs it"),
    ("head-restart-tree", 9, "the gap of a restarted neighbour went down with the link that it was told on"),
    ("lossy", 5, "credit that was lost on its way was never given again: an open link stood still for ever"),
]


@pytest.mark.parametrize(("scenario", "seed", "fault"), SEEDS)
def test_what_was_found_once_stays_mended(scenario: str, seed: int, fault: str):
    outcome = run_seed(scenario, seed)
    assert outcome.ok, f"{fault}:\n{outcome.verdict}"
