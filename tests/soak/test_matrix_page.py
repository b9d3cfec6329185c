"""What the pages of all kill matrices have."""

from __future__ import annotations

from dataclasses import dataclass, field

from plimsoll.soak import matrix_page


@dataclass
class Judged:
    said: str
    broken: list[str] = field(default_factory=list)


def text(one: Judged) -> str:
    return one.said


def test_a_table_has_a_row_for_each_step_and_says_what_was_not_run():
    found = [("cut", [matrix_page.cell_text(each, text) for each in (Judged("moved"), None)])]
    assert list(matrix_page.table("step", ["head", "edge"], found)) == [
        "| step | head | edge |", "|---|---|---|", "| cut | moved | not run |",
    ]  # fmt: skip
    assert list(matrix_page.meanings([("cut", "the cut is made")])) == ["- *cut*: the cut is made."]


def test_a_failed_cell_says_why_and_is_counted():
    ones = [Judged("moved"), Judged("moved", ["1 lost", "2 repeated"])]
    assert matrix_page.cell_text(ones[1], text) == "**failed: 1 lost; 2 repeated** moved"
    assert matrix_page.passed_of(ones, 5) == "2 of 5 cells were run, 1 passed, 1 failed"
