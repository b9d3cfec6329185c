"""Seeds that once found a fault of the machines, each with the fault.

A change of the machines changes the run of a seed, so a seed may no longer reach the situation that it is kept for.
"""

from __future__ import annotations

import pytest

from plimsoll.simulator.run import run_seed

SEEDS = [
    ("head-restart", 16, "an edge took position 2 of a new head epoch for position 2 of the old one, and dropped it"),
    ("small-log", 98, "the first of two adjacent gaps named the last offsets of both, so the second was suppressed"),
    (
        "small-log",
        3010,
        "a gap between heads that was followed by another named no offsets, so no receiver could place it",
    ),
    ("head-restart-tree", 6, "a restarted head dropped publications of its neighbours while it had no covers yet"),
    ("head-restart-tree", 9, "the gap for a restarted neighbour was lost with the link that it was sent on"),
    (
        "sessions-everything",
        125,
        "the head of a target remembered for a minute a member that a restarted head had forgotten",
    ),
    ("lossy", 5, "credit that was lost on its way was never granted again, so an open link stalled for ever"),
    ("sessions-deadlines", 1001, "the law took a topic whose units all went singly, to two edges, for one moved whole"),
    ("sessions-deadlines", 1056, "the same in the other cluster"),
    (
        "sessions-bundles-lookup-faults",
        1011,
        "the run ended between a session whose lookups went elsewhere and the one that brings late units",
    ),
]


@pytest.mark.parametrize(("scenario", "seed", "fault"), SEEDS, ids=[f"{name}-{seed}" for name, seed, _ in SEEDS])
def test_a_seed_that_found_a_fault_keeps_the_laws(scenario: str, seed: int, fault: str):
    outcome = run_seed(scenario, seed)
    assert outcome.ok, f"{fault}:\n{outcome.verdict}"
