"""A kill matrix as a program: which cells are run, what is stored, and how it ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import pytest

from plimsoll.soak.matrix import Matrix, is_selected, main


class Square(msgspec.Struct, frozen=True):
    row: str
    column: str

    @property
    def words(self) -> frozenset[str]:
        return frozenset((self.row, self.column))

    def __str__(self) -> str:
        return f"{self.row}{self.column}"


class Found(msgspec.Struct):
    cell: Square
    broken: list[str] = []


class UnreachableError(RuntimeError):
    """A cell cannot be run."""


class Board(Matrix[Square, Found]):
    """`ran`: what was run. `ends`: what a cell raises, or why it fails."""

    program, title, about, file, order, example = "board", "board", "A board.", "board.json", "row,column", "a,1"
    errors = (UnreachableError,)
    result_type = Found

    def __init__(self, **ends: BaseException | str) -> None:
        self.ran: list[str] = []
        self.ends = ends

    def cells(self) -> Iterator[Square]:
        return (Square(row, column) for row in "ab" for column in "12")

    def run(self, cell: Square, folder: Path) -> Found:
        self.ran.append(str(cell))
        end = self.ends.get(str(cell), "")
        if isinstance(end, BaseException):
            raise end
        return Found(cell, [end] if end else [])

    def text(self, result: Found) -> str:
        return f"found {result.cell}"

    def page(self, found: Mapping[Square, Found]) -> str:
        return " ".join(map(str, found))


def play(board: Board, folder: Path, *more: str) -> int:
    return main(board, ["--report", str(folder), *more])


def test_cells_with_a_result_are_not_run_again_unless_they_are_selected(tmp_path: Path):
    board = Board()
    board.save(tmp_path, {Square("b", "1"): Found(Square("b", "1"))})
    assert play(board, tmp_path) == 0
    assert board.ran == ["a1", "a2", "b2"]
    assert play(board, tmp_path, "--only", "1,b") == 0
    assert board.ran[3:] == ["b1"]


def test_a_failed_cell_fails_the_run_and_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert play(Board(a2="2 lost"), tmp_path) == 1
    shown = capsys.readouterr().out
    assert "a2: FAILED, found a2; 0 s\n  2 lost\n" in shown
    assert "4 cells, 1 failed" in shown
    assert play(Board(), tmp_path) == 1, "its result is kept"
    assert play(Board(), tmp_path, "--only", "a,2") == 0


def test_results_are_in_the_order_of_the_cells_and_so_is_the_page(tmp_path: Path):
    board = Board()
    assert board.load(tmp_path) == {}
    cells = [Square("b", "2"), Square("a", "1")]
    board.save(tmp_path, {cell: Found(cell, ["lost"]) for cell in cells})
    assert list(board.load(tmp_path).values()) == [Found(cell, ["lost"]) for cell in reversed(cells)]
    page = tmp_path / "page.md"
    play(board, tmp_path, "--write", str(page))
    assert page.read_text() == "a1 a2 b1 b2"


@pytest.mark.parametrize(
    ("end", "code", "said"),
    [(UnreachableError("no fleet"), 1, "board: no fleet"), (KeyboardInterrupt(), 130, "interrupted")],
)
def test_what_was_run_before_an_end_is_kept(
    end: BaseException, code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    board = Board(b1=end)
    assert play(board, tmp_path) == code
    assert said in capsys.readouterr().err
    assert list(map(str, board.load(tmp_path))) == ["a1", "a2"]


def test_cells_are_selected_by_their_words_in_any_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    cell = Square("a", "1")
    for only in ([], ["a"], ["1, a"], ["b", "1"]):
        assert is_selected(cell, only), only
    for only in (["b"], ["a,2"]):
        assert not is_selected(cell, only), only
    assert play(Board(), tmp_path, "--only", "c") == 2
    assert "no cell matches ['c']; give `row,column`" in capsys.readouterr().err
