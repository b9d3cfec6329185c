"""The page of the kill matrix of slices, and one cell by its program."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from plimsoll.core.verify.slice_kill_cells import SliceKillCell, SliceKillResult
from plimsoll.soak import matrix_page
from plimsoll.soak.slice_kills.page import end_text, slice_kill_page
from plimsoll.soak.slice_kills.runner import SliceKills

CELL = SliceKillCell("Cache", "cache sent", "before", "taker")
FOUND = SliceKillResult(
    cell=CELL, way="from the log (lost)", at="giver", pause_seconds=0.25, processed_once=240, redelivered=3, lost=0,
    repeated=0, reordered=0, gaps=0, cached=0,
)  # fmt: skip


def test_a_cell_in_words():
    assert end_text(FOUND) == "from the log (lost), at the giver, 0.25 s, 3 again"
    merged = replace(FOUND, way="merged", cached=1234, redelivered=0, gaps=2)
    assert end_text(merged) == "merged, 1,234 B, at the giver, 0.25 s, 2 gaps"
    assert matrix_page.cell_text(replace(FOUND, broken=["1 lost"]), end_text).startswith("**failed: 1 lost** ")


def test_the_page_has_each_cell_in_its_place_and_says_what_did_not_run():
    text = slice_kill_page({CELL: FOUND})
    assert "1 of 168 cells were run, 1 passed, 0 failed; 240 items processed once, 3 came again" in text
    [row] = [line for line in text.splitlines() if line.startswith("| before *cache sent*")]
    assert row == f"| before *cache sent* | not run | {end_text(FOUND)} | not run | not run | not run | not run |"
    failed = slice_kill_page({CELL: replace(FOUND, broken=["2 gaps"], lost=3)})
    assert "0 passed, 1 failed; 240 items processed once, 3 came again with a mark; 3 lost" in failed


def test_a_cell_is_run_by_its_program(tmp_path: Path):
    found = SliceKills().run(SliceKillCell("Deliver", "asked", "before", None), tmp_path)
    assert (found.way, found.at, found.broken) == ("from the log", "taker", [])
