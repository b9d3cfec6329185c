"""Runs the cells of the kill matrix of bundles, stores their results in a file, and writes the page from it.

    python -m plimsoll.soak.bundle_kills.runner [--only "split,stored,head"] [--write docs/kill-matrix-bundles.md]

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
from plimsoll.demo.fleet import DemoFleetError
from plimsoll.demo.workers.worker_process import WorkerError
from plimsoll.soak.bundle_kills import page
from plimsoll.soak.bundle_kills.cell_run import BundleKillRun
from plimsoll.soak.bundle_kills.cells import BundleKillCell, BundleKillResult, all_cells
from plimsoll.soak.supervised_kill import KillError

STATE = "bundle-kills.json"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the missing cells and write the page; 0 if all cells passed, 1 if one failed."""
    given = _parser().parse_args(argv)
    folder: Path = given.report
    folder.mkdir(parents=True, exist_ok=True)
    found = load_results(folder / STATE)
    wanted = [cell for cell in all_cells() if is_selected(cell, given.only)]
    if not wanted:
        why = f"bundle kills: no cell matches {given.only!r}; give `change,step,victim` or some of them\n"
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
    except (KillError, DemoFleetError, WorkerError) as error:
        sys.stderr.write(printable_lines(f"bundle kills: {error}\n"))
        return 1
    if given.write is not None:
        given.write.write_text(page.bundle_kill_page(found), encoding="utf-8")
        sys.stdout.write(printable_lines(f"{given.write}: {len(found)} cells\n"))
    failed = [one for cell, one in found.items() if cell in wanted and not one.is_passed]
    sys.stdout.write(printable_lines(f"{len(wanted)} cells, {len(failed)} failed\n"))
    return 1 if failed else 0


def load_results(path: Path) -> dict[BundleKillCell, BundleKillResult]:
    """The stored results in the order of the cells, empty without a file."""
    if not path.exists():
        return {}
    found = {one.cell: one for one in msgspec.json.decode(path.read_bytes(), type=list[BundleKillResult])}
    return {cell: found[cell] for cell in all_cells() if cell in found}


def save_results(path: Path, found: dict[BundleKillCell, BundleKillResult]) -> None:
    """Replace the file atomically."""
    beside = path.with_name(path.name + ".new")
    beside.write_bytes(msgspec.json.format(msgspec.json.encode(list(found.values())), indent=1))
    beside.replace(path)


def _run(cell: BundleKillCell, folder: Path) -> BundleKillResult:
    began = time.monotonic()
    one = BundleKillRun(cell, folder / "cell").run()
    verdict = "passed" if one.is_passed else "FAILED"
    took = time.monotonic() - began
    sys.stdout.write(printable_lines(f"{cell}: {verdict}, {page.cell_text(one)}; {took:.0f} s\n"))
    sys.stdout.flush()
    return one


def is_selected(cell: BundleKillCell, only: Sequence[str]) -> bool:
    """Whether the cell has all words of one of the expressions; without expressions every cell is selected."""
    words = {cell.change, cell.step, cell.victim or "nothing"}
    return not only or any(set(map(str.strip, each.split(","))) <= words for each in only)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m plimsoll.soak.bundle_kills.runner",
        description="Kill a process at each step in which a bundle is unloaded or split, and audit every delivery.",
        epilog="Exit code 0: all cells passed. 1: a cell failed, or could not be run. 2: --only matches no cell.",
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="WORDS", help="run cells with these words: 'split,stored,head'"
    )
    parser.add_argument(
        "--report", type=Path, default=Path("soak-report"), metavar="DIR", help="folder (default %(default)s)"
    )
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the page of all results in --report")
    return parser


if __name__ == "__main__":
    sys.exit(main())
