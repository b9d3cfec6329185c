"""The page of the kill matrix of heads that forget nothing, and one cell by its program."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from plimsoll.core.verify.head_kill_cells import HeadKillCell, HeadKillResult
from plimsoll.soak import matrix_page
from plimsoll.soak.head_kills.page import end_text, head_kill_page
from plimsoll.soak.head_kills.runner import HeadKills

CELL = HeadKillCell("across", "cut done", "before", "far head", "standby")
FOUND = HeadKillResult(
    cell=CELL, outcomes={"detached": 1, "moved": 3}, homes={"target": 4}, pause_seconds=0.234, delivered=1822, lost=0,
    repeated=0, reordered=0, gaps=0, unknown=0,
)  # fmt: skip


def test_a_cell_in_words():
    assert end_text(FOUND) == "1 detached, 3 moved, 0.23 s"
    assert end_text(replace(FOUND, outcomes={}, gaps=2)) == "4 at the target, 0.23 s, 2 gaps"
    assert matrix_page.cell_text(replace(FOUND, broken=["1 lost"]), end_text).startswith("**failed: 1 lost** ")


def test_the_page_has_each_cell_in_its_place_and_says_what_did_not_run():
    text = head_kill_page({CELL: FOUND})
    assert "1 of 240 cells were run, 1 passed, 0 failed; 1,822 deliveries; 0 lost" in text
    [row] = [line for line in text.splitlines() if line.startswith("| before *cut done*") and "moved" in line]
    assert row.split(" | ")[6] == end_text(FOUND)
    assert row.count("not run") == 7
    failed = head_kill_page({CELL: replace(FOUND, broken=["2 gaps"], gaps=2, unknown=3)})
    assert "0 passed, 1 failed; 1,822 deliveries; 0 lost, 0 repeated, 0 out of order, 2 gaps, 3 unknown" in failed


def test_a_cell_is_run_by_its_program(tmp_path: Path):
    found = HeadKills().run(HeadKillCell("drain", "prepare sent", "before", None, "disk"), tmp_path)
    assert (found.outcomes, found.homes, found.broken) == ({"moved": 4}, {"target": 4}, [])
