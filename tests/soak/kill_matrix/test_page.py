"""The page of the kill matrix says what its cells came to, and what was not run or not kept."""

from typing import Any

from plimsoll.soak.kill_matrix import page as table
from plimsoll.soak.kill_matrix.cells import KillMatrixCell


def page(*found: Any) -> str:
    return table.kill_matrix_page({one.cell: one for one in found})


def row(text: str, start: str) -> list[str]:
    return [cell.strip() for line in text.splitlines() if line.startswith(start) for cell in line.split("|")[2:-1]]


def test_a_cell_stands_in_its_row_and_column_with_outcomes_and_silence(found: Any) -> None:
    one = found(outcomes={"stayed": 4, "moved": 12}, silence_seconds=1.26)
    drain = page(one).partition("## By drain, across")[0].partition("### SIGKILL")[2].partition("### SIGSTOP")[0]
    assert row(drain, "| cut sent") == ["not run", "not run", "not run", "12 moved, 4 stayed, 1.3 s", "not run"]
    assert set(row(drain, "| attached")) == {"not run"}


def test_a_broken_cell_says_what_was_broken_and_is_counted(found: Any) -> None:
    text = page(
        found(broken=["2 gaps were told"], gaps=2, lost=3), found(cell=KillMatrixCell("drain", "done", "head", "STOP"))
    )
    assert "**broken: 2 gaps were told** 16 moved, 0.5 s, 2 gaps" in text
    assert "2 cells, 1 kept, 1 broken; 4,800 deliveries, 3 lost, 0 repeated" in text


def test_a_lost_session_is_told_by_where_its_members_are(found: Any) -> None:
    one = found(state="failed", outcomes={"cutting": 16}, homes={"source": 15, "others": 1})
    assert table.members_text(one) == "session lost: 15 at the source, 1 at the others"


def test_cells_in_which_nobody_is_hit_are_told_apart_and_not_counted(found: Any) -> None:
    text = page(found(cell=KillMatrixCell("drain", "done", None, "KILL")))
    assert "By drain, with nobody hit: 16 moved; the hand-over took 0.08 s" in text
    assert "0 cells, 0 kept, 0 broken" in text


def test_every_step_is_explained(found: Any) -> None:
    text = page(found())
    assert text.count("- *slots taken*:") == 2  # replay has no such step
    assert text.count("- *cut sent*:") == 3
