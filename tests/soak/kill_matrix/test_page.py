"""The page of the kill matrix shows the result of each cell, and which cells failed or were not run."""

from typing import Any

from plimsoll.soak.kill_matrix import page as generator
from plimsoll.soak.kill_matrix.cells import KillMatrixCell


def page(*found: Any) -> str:
    return generator.kill_matrix_page({one.cell: one for one in found})


def row(text: str, start: str) -> list[str]:
    return [cell.strip() for line in text.splitlines() if line.startswith(start) for cell in line.split("|")[2:-1]]


def test_a_cell_is_in_its_row_and_column_with_outcomes_and_silence(found: Any) -> None:
    one = found(outcomes={"stayed": 4, "moved": 12}, silence_seconds=1.26)
    drain = page(one).partition("## By drain, across")[0].partition("### SIGKILL")[2].partition("### SIGSTOP")[0]
    assert row(drain, "| step") == ["target"], "a victim of which no cell was run has no column"
    assert row(drain, "| cut sent") == ["12 moved, 4 stayed, 1.3 s"]
    assert set(row(drain, "| attached")) == {"not run"}


def test_a_failed_cell_has_its_reasons_and_is_counted(found: Any) -> None:
    text = page(
        found(broken=["2 gaps were reported"], gaps=2, lost=3),
        found(cell=KillMatrixCell("drain", "done", "head", "STOP")),
    )
    assert "**failed: 2 gaps were reported** 16 moved, 0.5 s, 2 gaps" in text
    assert "2 cells, 1 passed, 1 failed; 4,800 deliveries, 3 lost, 0 repeated" in text


def test_a_lost_session_is_shown_by_the_edges_of_its_members(found: Any) -> None:
    one = found(state="failed", outcomes={"cutting": 16}, homes={"source": 15, "others": 1})
    assert generator.members_text(one) == "session lost: 15 at the source, 1 at the others"


def test_cells_without_a_victim_are_listed_apart_and_not_counted(found: Any) -> None:
    text = page(found(cell=KillMatrixCell("drain", "done", None, "KILL")))
    assert "By drain, without a signal: 16 moved; the hand-over took 0.08 s" in text
    assert "0 cells, 0 passed, 0 failed" in text


def test_every_step_is_explained(found: Any) -> None:
    text = page(found())
    assert text.count("- *slots taken*:") == 2  # replay has no such step
    assert text.count("- *cut sent*:") == 3
