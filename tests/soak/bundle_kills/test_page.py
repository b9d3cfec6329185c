"""The page of the kill matrix of bundles, and the program that runs and writes it."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from plimsoll.soak import matrix_page
from plimsoll.soak.bundle_kills import runner
from plimsoll.soak.bundle_kills.cell_run import BundleKillRun
from plimsoll.soak.bundle_kills.cells import BundleKillCell, BundleKillResult, all_cells
from plimsoll.soak.bundle_kills.page import bundle_kill_page, end_text
from plimsoll.soak.matrix import main

KILLS = runner.BundleKills()
CELL = BundleKillCell("lookup", "released", "head")
FOUND = BundleKillResult(
    cell=CELL, phase="Succeeded", reason="Moved", moved=27, bundles=2, at="another edge", settled_seconds=5.04,
    delivered=5000, lost=0, duplicated=0, reordered=0, gaps=0, excused=0,
)  # fmt: skip


def test_a_cell_in_words():
    assert end_text(FOUND) == "Succeeded (Moved), 27 moved, at another edge, 5.0 s"
    split = replace(FOUND, cell=BundleKillCell("split", "told", "owner"), bundles=3, at="owner", gaps=2)
    assert end_text(split) == "Succeeded (Moved), 3 bundles, at the owner, 5.0 s, 2 gaps"
    assert matrix_page.cell_text(replace(FOUND, broken=["1 lost"]), end_text).startswith("**failed: 1 lost** ")


def test_the_page_has_each_cell_in_its_place_and_says_what_did_not_run():
    text = bundle_kill_page({CELL: FOUND})
    assert "1 of 36 cells were run, 1 passed, 0 failed; 5,000 deliveries" in text
    [row] = [line for line in text.splitlines() if line.startswith("| released")]
    assert row == f"| released | not run | {end_text(FOUND)} | not run | not run |"
    failed = bundle_kill_page({CELL: replace(FOUND, broken=["2 gaps"], lost=3)})
    assert "1 of 36 cells were run, 0 passed, 1 failed; 5,000 deliveries, 3 lost" in failed


def test_results_survive_and_cells_with_a_result_are_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(BundleKillRun, "run", lambda self: replace(FOUND, cell=self._cell))
    KILLS.save(tmp_path, {CELL: replace(FOUND, broken=["lost"])})
    page = tmp_path / "page.md"
    assert main(KILLS, ["--report", str(tmp_path), "--write", str(page)]) == 1
    assert "36 of 36 cells were run, 35 passed, 1 failed" in page.read_text()
    assert main(KILLS, ["--report", str(tmp_path), "--only", "lookup,released,head"]) == 0
    assert list(KILLS.load(tmp_path)) == list(all_cells())
    assert "lookup, released: SIGKILL head: passed, Succeeded (Moved), 27 moved" in capsys.readouterr().out


@pytest.mark.sweep
@pytest.mark.timeout(1200)  # a fleet, a killed head, and the wait until it has come to rest
def test_a_head_killed_while_a_bundle_is_released_loses_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):  # fmt: skip
    code = main(KILLS, ["--only", "lookup,released,head", "--report", str(tmp_path)])
    assert code == 0, capsys.readouterr()
