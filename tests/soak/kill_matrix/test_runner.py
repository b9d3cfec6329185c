"""The program of the kill matrix, and some of its cells in real processes."""

from pathlib import Path
from typing import Any

import pytest

from plimsoll.soak.kill_matrix import runner
from plimsoll.soak.kill_matrix.cells import KillMatrixCell


def test_results_survive_a_round_trip(found: Any, tmp_path: Path) -> None:
    one = found(broken=["lost"])
    runner.save_results(tmp_path / runner.STATE, {one.cell: one})
    assert runner.load_results(tmp_path / runner.STATE) == {one.cell: one}
    assert runner.load_results(tmp_path / "none") == {}


def test_cells_are_selected_by_their_words_in_any_order() -> None:
    cell = KillMatrixCell("drain", "cut sent", "target", "KILL")
    for only in ([], ["drain"], ["target, cut sent"], ["replay", "KILL"]):
        assert runner._is_selected(cell, only), only
    for only in (["replay"], ["drain,source"], ["cut"]):
        assert not runner._is_selected(cell, only), only


def test_a_cell_that_does_not_exist_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert runner.main(["--only", "replay,slots taken", "--report", str(tmp_path)]) == 2
    assert "no cell matches" in capsys.readouterr().err


def test_cells_with_a_result_are_not_run_again_and_a_failed_cell_fails_the_run(
    found: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[KillMatrixCell] = []

    def run(cell: KillMatrixCell, folder: Path) -> Any:
        ran.append(cell)
        return found(cell=cell)

    monkeypatch.setattr(runner, "_run", run)
    failed = found(broken=["1 lost"])
    runner.save_results(tmp_path / runner.STATE, {failed.cell: failed})
    page = tmp_path / "page.md"
    assert runner.main(["--report", str(tmp_path), "--write", str(page)]) == 1
    assert len(ran) == 350
    assert failed.cell not in ran
    assert "351 cells, 1 failed" in capsys.readouterr().out
    assert "348 cells, 347 passed, 1 failed" in page.read_text()
    assert runner.main(["--report", str(tmp_path), "--only", "drain,cut sent,target,KILL"]) == 0
    assert ran[350:] == [failed.cell]


@pytest.mark.slow
@pytest.mark.timeout(180)  # a fleet, and the wait for residue to go, which may take a lease
@pytest.mark.parametrize(
    "words",
    [
        "drain,cut done,source,KILL",
        "drain,done,durable head,KILL",
        pytest.param("replay,cut sent,target,KILL", marks=pytest.mark.sweep),
    ],
)
def test_a_broker_killed_at_the_cut_loses_nothing(
    words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = runner.main(["--only", words, "--report", str(tmp_path)])
    printed = capsys.readouterr()
    assert code == 0, printed
    (one,) = runner.load_results(tmp_path / runner.STATE).values()
    assert (one.lost, one.duplicated, one.reordered, one.gaps, one.orphaned) == (0, 0, 0, 0, 0)
    assert one.delivered > 0
    assert sum(one.outcomes.values()) == sum(one.homes.values()) == 16
