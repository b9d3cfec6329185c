"""Runs the cells of the kill matrix, stores their results in a file, and writes the page from it.

    python -m plimsoll.soak.kill_matrix.runner [--only "drain,cut sent,target"] [--write docs/kill-matrix.md]

A cell with a result in the file is not run again, unless `--only` selects it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from plimsoll.core.printable import printable_lines
from plimsoll.demo.command import interruptible
from plimsoll.demo.workers.worker_process import WorkerError
from plimsoll.soak.harness.fleet_harness import FleetHarnessError
from plimsoll.soak.kill_matrix import page
from plimsoll.soak.kill_matrix.cell_run import KillMatrixCellError, KillMatrixCellRun
from plimsoll.soak.kill_matrix.cells import KillMatrixCell, KillMatrixResult, all_cells

STATE = "kills.json"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the missing cells and write the page; 0 if all cells passed, 1 if one failed."""
    given = _parser().parse_args(argv)
    folder: Path = given.report
    folder.mkdir(parents=True, exist_ok=True)
    found = load_results(folder / STATE)
    wanted = [cell for cell in all_cells() if _is_selected(cell, given.only)]
    if not wanted:
        why = f"kill matrix: no cell matches {given.only!r}; give `mode,step,victim,signal` or some of them\n"
        sys.stderr.write(printable_lines(why))
        return 2
    try:
        with interruptible():
            for cell in wanted:
                if given.only or cell not in found:
                    found[cell] = _run(cell, folder)
                    save_results(folder / STATE, found)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted: all processes were stopped; results of finished cells are kept\n")
        return 130
    except (KillMatrixCellError, FleetHarnessError, WorkerError) as error:
        sys.stderr.write(printable_lines(f"kill matrix: {error}\n"))
        return 1
    if given.write is not None:
        given.write.write_text(page.kill_matrix_page(found), encoding="utf-8")
        sys.stdout.write(printable_lines(f"{given.write}: {len(found)} cells\n"))
    failed = [one for cell, one in found.items() if cell in wanted and not one.is_passed]
    sys.stdout.write(printable_lines(f"{len(wanted)} cells, {len(failed)} failed\n"))
    return 1 if failed else 0


def load_results(path: Path) -> dict[KillMatrixCell, KillMatrixResult]:
    """The stored results, empty without a file."""
    if not path.exists():
        return {}
    return {one.cell: one for one in msgspec.json.decode(path.read_bytes(), type=list[KillMatrixResult])}


def save_results(path: Path, found: dict[KillMatrixCell, KillMatrixResult]) -> None:
    """Replace the file atomically."""
    beside = path.with_name(path.name + ".new")
    beside.write_bytes(msgspec.json.format(msgspec.json.encode(list(found.values())), indent=1))
    beside.replace(path)


def _run(cell: KillMatrixCell, folder: Path) -> KillMatrixResult:
    began = time.monotonic()
    one = KillMatrixCellRun(cell, folder / "cell").run()
    took = f"{time.monotonic() - began:.0f} s"
    verdict = "passed" if one.is_passed else "FAILED"
    sys.stdout.write(printable_lines(f"{cell}: {verdict}, {one.state}, {page.members_text(one)}, {took}\n"))
    for what in one.broken:
        sys.stdout.write(printable_lines(f"  {what}\n"))
    sys.stdout.flush()
    return one


def _is_selected(cell: KillMatrixCell, only: Sequence[str]) -> bool:
    """Whether the cell has all words of one of the expressions; without expressions every cell is selected."""
    words = {cell.mode, cell.step, cell.victim or "nothing", cell.signal}
    return not only or any(set(map(str.strip, each.split(","))) <= words for each in only)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m plimsoll.soak.kill_matrix.runner",
        description="Kill and freeze each process of a hand-over at each of its steps, and audit every delivery.",
        epilog="Exit code 0: all cells passed. 1: a cell failed, or could not be run. 2: --only matches no cell.",
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="WORDS", help="run cells with these words: 'drain,target,KILL'"
    )
    parser.add_argument(
        "--report", type=Path, default=Path("soak-report"), metavar="DIR", help="folder (default %(default)s)"
    )
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the page of all results in --report")
    return parser


if __name__ == "__main__":
    sys.exit(main())
