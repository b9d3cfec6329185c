"""The program of the kill matrix, and some of its cells in real processes."""

from pathlib import Path
from typing import Any

import pytest

from plimsoll.soak.kill_matrix import runner
from plimsoll.soak.kill_matrix.cell_run import KillMatrixCellRun
from plimsoll.soak.matrix import main

KILLS = runner.HandoverKills()


def test_a_cell_is_run_stored_and_shown(
    found: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(KillMatrixCellRun, "run", lambda self: found(cell=self._cell))
    page = tmp_path / "page.md"
    assert main(KILLS, ["--report", str(tmp_path), "--write", str(page)]) == 0
    assert list(KILLS.load(tmp_path)) == list(KILLS.cells())
    killed = sum(cell.victim is not None for cell in KILLS.cells())
    assert f"{killed} cells, {killed} passed, 0 failed" in page.read_text()
    shown = capsys.readouterr().out
    assert "drain, cut sent: SIGKILL target: passed, done, 16 moved; 0 s" in shown
    assert f"{len(list(KILLS.cells()))} cells, 0 failed" in shown


def test_a_cell_has_these_words(found: Any) -> None:
    assert found().cell.words == {"drain", "cut sent", "target", "KILL"}


@pytest.mark.sampled(1)
@pytest.mark.slow
@pytest.mark.timeout(1200)  # a fleet, and the wait for residue to go, which may take a lease
@pytest.mark.parametrize(
    "words",
    [
        "drain,cut done,source,KILL",
        "drain,done,durable head,KILL",
        "drain,cut done,head with standby,KILL",
        pytest.param("replay,cut sent,target,KILL", marks=pytest.mark.sweep),
    ],
)
def test_a_broker_killed_at_the_cut_loses_nothing(
    words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(KILLS, ["--only", words, "--report", str(tmp_path)])
    printed = capsys.readouterr()
    assert code == 0, printed
    (one,) = KILLS.load(tmp_path).values()
    assert (one.lost, one.duplicated, one.reordered, one.gaps, one.orphaned) == (0, 0, 0, 0, 0)
    assert one.delivered > 0
    assert sum(one.outcomes.values()) == sum(one.homes.values()) == 16
