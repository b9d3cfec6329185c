"""Runs the cells of a kill matrix, stores their results in a file, and writes a page from it.

A cell with a result in the file is not run again, unless `--only` selects it.
"""

from __future__ import annotations

import argparse
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from plimsoll.core.printable import printable_lines
from plimsoll.demo.command import interruptible
from plimsoll.demo.workers.worker_process import WorkerError


class Cell(Protocol):
    """One run of a matrix."""

    @property
    def words(self) -> frozenset[str]:
        """What `--only` selects it by."""

    def __hash__(self) -> int: ...


class CellResult(Protocol):
    """`broken`: why the cell failed; empty if it has passed."""

    broken: list[str]

    @property
    def cell(self) -> Any: ...


C = TypeVar("C", bound=Cell)
R = TypeVar("R", bound=CellResult)


class Matrix(ABC, Generic[C, R]):
    """A kill matrix: its cells, and how they are run and shown.

    `program`: the module that runs it. `title`: before its errors. `file`: of the results, in the folder of the report.
    `order`, `example`: the words of a cell. `errors`: for which a cell cannot be run.
    """

    program: str
    title: str
    about: str
    file: str
    order: str
    example: str
    errors: tuple[type[Exception], ...] = (WorkerError,)
    result_type: type[R]

    @abstractmethod
    def cells(self) -> Iterator[C]:
        """All cells, in the order of the page."""

    @abstractmethod
    def run(self, cell: C, folder: Path) -> R:
        """Run a cell; its fleet and its journals are in `folder`."""

    @abstractmethod
    def text(self, result: R) -> str:
        """A result in a few words."""

    @abstractmethod
    def page(self, found: Mapping[C, R]) -> str:
        """The page of these results, as Markdown."""

    # -- stored results

    def load(self, folder: Path) -> dict[C, R]:
        """The stored results in the order of the cells, empty without a file."""
        path = folder / self.file
        if not path.exists():
            return {}
        stored = [msgspec.convert(one, self.result_type) for one in msgspec.json.decode(path.read_bytes())]
        found = {one.cell: one for one in stored}
        return {cell: found[cell] for cell in self.cells() if cell in found}

    def save(self, folder: Path, found: Mapping[C, R]) -> None:
        """Replace the file atomically."""
        path = folder / self.file
        beside = path.with_name(path.name + ".new")
        beside.write_bytes(msgspec.json.format(msgspec.json.encode(list(found.values())), indent=1))
        beside.replace(path)


def main(matrix: Matrix[C, R], argv: Sequence[str] | None = None) -> int:
    """Run the missing cells and write the page; 0 if all cells passed, 1 if one failed."""
    given = _parser(matrix).parse_args(argv)
    folder: Path = given.report
    folder.mkdir(parents=True, exist_ok=True)
    found = matrix.load(folder)
    wanted = [cell for cell in matrix.cells() if is_selected(cell, given.only)]
    if not wanted:
        why = f"{matrix.title}: no cell matches {given.only!r}; give `{matrix.order}` or some of them\n"
        sys.stderr.write(printable_lines(why))
        return 2
    try:
        with interruptible():
            for cell in wanted:
                if given.only or cell not in found:
                    found[cell] = _run(matrix, cell, folder)
                    matrix.save(folder, found)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted: all processes were stopped; results of finished cells are kept\n")
        return 130
    except matrix.errors as error:
        sys.stderr.write(printable_lines(f"{matrix.title}: {error}\n"))
        return 1
    if given.write is not None:
        given.write.write_text(matrix.page(matrix.load(folder)), encoding="utf-8")
        sys.stdout.write(printable_lines(f"{given.write}: {len(found)} cells\n"))
    failed = [cell for cell in wanted if found[cell].broken]
    sys.stdout.write(printable_lines(f"{len(wanted)} cells, {len(failed)} failed\n"))
    return 1 if failed else 0


def _run(matrix: Matrix[C, R], cell: C, folder: Path) -> R:
    began = time.monotonic()
    one = matrix.run(cell, folder / "cell")
    verdict, took = "FAILED" if one.broken else "passed", time.monotonic() - began
    lines = [f"{cell}: {verdict}, {matrix.text(one)}; {took:.0f} s", *(f"  {why}" for why in one.broken)]
    sys.stdout.write(printable_lines("".join(f"{line}\n" for line in lines)))
    sys.stdout.flush()
    return one


def is_selected(cell: Cell, only: Sequence[str]) -> bool:
    """Whether the cell has all words of one of the expressions; without expressions every cell is selected."""
    return not only or any(set(map(str.strip, each.split(","))) <= cell.words for each in only)


def _parser(matrix: Matrix[C, R]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"python -m {matrix.program}",
        description=matrix.about,
        epilog="Exit code 0: all cells passed. 1: a cell failed, or could not be run. 2: --only matches no cell.",
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="WORDS", help=f"run cells with these words: '{matrix.example}'"
    )
    parser.add_argument(
        "--report", type=Path, default=Path("soak-report"), metavar="DIR", help="folder (default %(default)s)"
    )
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the page of all results in --report")
    return parser
