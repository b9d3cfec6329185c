"""The kill matrix has each step, signal and victim of each mode once, and a baseline without a victim."""

from collections import Counter

from plimsoll.soak.kill_matrix.cells import MEANINGS, MODES, SIGNALS, KillMatrixCell, all_cells, victims_of


def test_every_step_has_every_victim_with_every_signal_once() -> None:
    cells = list(all_cells())
    assert len(cells) == len(set(cells))
    hit = Counter((cell.mode, cell.step) for cell in cells if cell.victim is not None)
    assert hit == {
        (mode, step): sum(len(victims_of(mode, signal)) for signal in SIGNALS)
        for mode in MODES
        for step in MEANINGS[mode]
    }


def test_only_across_clusters_the_target_has_another_head() -> None:
    assert {cell.mode for cell in all_cells() if cell.victim == "far head"} == {"across"}


def test_each_mode_has_a_cell_without_a_victim() -> None:
    assert [cell.mode for cell in all_cells() if cell.victim is None] == list(MODES)


def test_only_a_killed_head_may_lose_publications() -> None:
    assert {(cell.victim, cell.signal) for cell in all_cells() if cell.may_gap} == {
        ("head", "KILL"), ("far head", "KILL"),
    }  # fmt: skip


def test_a_cell_as_text_has_mode_step_signal_and_victim() -> None:
    assert str(KillMatrixCell("drain", "cut sent", "target", "STOP")) == "drain, cut sent: SIGSTOP for 3 s target"
    assert str(KillMatrixCell("drain", "cut sent", "head", "HANG")) == "drain, cut sent: SIGSTOP for 13 s head"
    assert str(KillMatrixCell("drain", "cut sent", "head", "KILL")) == "drain, cut sent: SIGKILL head"
    assert str(KillMatrixCell("replay", "done", None, "KILL")) == "replay, done: nothing"
