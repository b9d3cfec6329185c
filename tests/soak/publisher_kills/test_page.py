"""The page of the kill matrix of publishers, and the program that runs and writes it."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from plimsoll.soak import matrix_page
from plimsoll.soak.matrix import main
from plimsoll.soak.publisher_kills import runner
from plimsoll.soak.publisher_kills.cell_run import PublisherKillRun
from plimsoll.soak.publisher_kills.cells import PublisherKillCell, PublisherKillResult, all_cells
from plimsoll.soak.publisher_kills.page import end_text, publisher_kill_page

KILLS = runner.PublisherKills()
CELL = PublisherKillCell("cut", "old head")
FOUND = PublisherKillResult(
    cell=CELL, phase="Succeeded", reason="Drained", moved=12, at={"new head": 12}, settled_seconds=5.04, delivered=5000,
    lost=0, duplicated=0, reordered=0, gaps=0, excused=0, unknown=0,
)  # fmt: skip


def test_a_cell_in_words():
    assert end_text(FOUND) == "Succeeded (Drained), 12 moved, 12 at the new head, 5.0 s"
    other = replace(FOUND, at={"old head": 2, "new head": 10}, gaps=2, unknown=3, broken=["1 lost"])
    assert matrix_page.cell_text(other, end_text) == (
        "**failed: 1 lost** Succeeded (Drained), 12 moved, 10 at the new head, 2 at the old head, 5.0 s, 2 gaps,"
        " 3 unknown"
    )


def test_the_page_has_each_cell_in_its_place_and_says_what_did_not_run():
    text = publisher_kill_page({CELL: FOUND})
    assert "1 of 24 cells were run, 1 passed, 0 failed; 5,000 deliveries" in text
    [row] = [line for line in text.splitlines() if line.startswith("| cut")]
    assert row == f"| cut | not run | {end_text(FOUND)} | not run | not run | not run | not run |"


def test_results_survive_and_cells_with_a_result_are_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(PublisherKillRun, "run", lambda self: replace(FOUND, cell=self._cell))
    KILLS.save(tmp_path, {CELL: replace(FOUND, broken=["lost"])})
    page = tmp_path / "page.md"
    assert main(KILLS, ["--report", str(tmp_path), "--write", str(page)]) == 1
    assert "24 of 24 cells were run, 23 passed, 1 failed" in page.read_text()
    assert main(KILLS, ["--report", str(tmp_path), "--only", "cut,old head"]) == 0
    assert list(KILLS.load(tmp_path)) == list(all_cells())


@pytest.mark.sweep
@pytest.mark.timeout(1200)  # a fleet, a killed head, and the wait until it has come to rest
def test_the_old_head_killed_behind_the_cut_costs_no_more_than_gaps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):  # fmt: skip
    code = main(KILLS, ["--only", "cut,old head", "--report", str(tmp_path)])
    assert code == 0, capsys.readouterr()
