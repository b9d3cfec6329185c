"""The kill matrix as a program; and some of its cells, in real processes."""

from pathlib import Path
from typing import Any

import pytest

from plimsoll.soak.kill_matrix import runner
from plimsoll.soak.kill_matrix.cells import KillMatrixCell


def test_what_was_found_is_read_again_as_it_was(found: Any, tmp_path: Path) -> None:
    one = found(broken=["lost"])
    runner.save_results(tmp_path / runner.STATE, {one.cell: one})
    assert runner.load_results(tmp_path / runner.STATE) == {one.cell: one}
    assert runner.load_results(tmp_path / "none") == {}


def test_cells_are_meant_by_their_words_in_any_order() -> None:
    cell = KillMatrixCell("drain", "cut sent", "target", "KILL")
    for only in ([], ["drain"], ["target, cut sent"], ["replay", "KILL"]):
        assert runner._is_selected(cell, only), only
    for only in (["replay"], ["drain,source"], ["cut"]):
        assert not runner._is_selected(cell, only), only


def test_a_cell_that_does_not_exist_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert runner.main(["--only", "replay,slots taken", "--report", str(tmp_path)]) == 2
    assert "no cell is meant by" in capsys.readouterr().err


def test_cells_that_were_run_are_not_run_again_and_a_broken_one_fails(
    found: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[KillMatrixCell] = []

    def run(cell: KillMatrixCell, folder: Path) -> Any:
        ran.append(cell)
        return found(cell=cell)

    monkeypatch.setattr(runner, "_run", run)
    broken = found(broken=["1 lost"])
    runner.save_results(tmp_path / runner.STATE, {broken.cell: broken})
    page = tmp_path / "page.md"
    assert runner.main(["--report", str(tmp_path), "--write", str(page)]) == 1
    assert len(ran) == 323
    assert broken.cell not in ran
    assert "324 cells, 1 broken" in capsys.readouterr().out
    assert "321 cells, 320 kept, 1 broken" in page.read_text()
    assert runner.main(["--report", str(tmp_path), "--only", "drain,cut sent,target,KILL"]) == 0
    assert ran[323:] == [broken.cell]


@pytest.mark.slow
@pytest.mark.timeout(180)  # two fleets, one after the other, with everything that a lease takes
@pytest.mark.parametrize(
    "words", ["drain,cut done,source,KILL", pytest.param("replay,cut sent,target,KILL", marks=pytest.mark.sweep)]
)
def test_a_broker_killed_at_the_cut_costs_nothing(
    words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = runner.main(["--only", words, "--report", str(tmp_path)])
    said = capsys.readouterr()
    assert code == 0, said
    (one,) = runner.load_results(tmp_path / runner.STATE).values()
    assert (one.lost, one.duplicated, one.reordered, one.gaps, one.orphaned) == (0, 0, 0, 0, 0)
    assert one.delivered > 0
    assert sum(one.outcomes.values()) == sum(one.homes.values()) == 16
