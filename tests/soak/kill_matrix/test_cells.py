"""The cells of the kill matrix: each step of each mode, each signal, each victim, once; and one that hits nobody."""

from collections import Counter

from plimsoll.soak.kill_matrix.cells import MEANINGS, MODES, SIGNALS, KillMatrixCell, all_cells, victims_of


def test_every_step_meets_every_victim_with_every_signal_once() -> None:
    cells = list(all_cells())
    assert len(cells) == len(set(cells))
    hit = Counter((cell.mode, cell.step) for cell in cells if cell.victim is not None)
    assert hit == {(mode, step): len(SIGNALS) * len(victims_of(mode)) for mode in MODES for step in MEANINGS[mode]}


def test_the_head_of_the_target_is_another_across_clusters_only() -> None:
    assert {cell.mode for cell in all_cells() if cell.victim == "far head"} == {"across"}


def test_each_mode_has_a_cell_in_which_nobody_is_hit() -> None:
    assert [cell.mode for cell in all_cells() if cell.victim is None] == list(MODES)


def test_only_a_head_that_is_killed_may_cost_publications() -> None:
    assert {(cell.victim, cell.signal) for cell in all_cells() if cell.may_gap} == {
        ("head", "KILL"), ("far head", "KILL"),
    }  # fmt: skip


def test_a_cell_says_what_it_is() -> None:
    assert str(KillMatrixCell("drain", "cut sent", "target", "STOP")) == "drain, cut sent: SIGSTOP for 3 s target"
    assert str(KillMatrixCell("drain", "cut sent", "head", "HANG")) == "drain, cut sent: SIGSTOP for 13 s head"
    assert str(KillMatrixCell("drain", "cut sent", "head", "KILL")) == "drain, cut sent: SIGKILL head"
    assert str(KillMatrixCell("replay", "done", None, "KILL")) == "replay, done: nothing"
