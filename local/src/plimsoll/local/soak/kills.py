"""The kill matrix as a program: runs its cells, keeps what they came to in a file, and writes the table of it.

    python -m plimsoll.local.soak.kills [--only "drain,cut sent,target"] [--write docs/kill-matrix.md]

A cell that the file has is not run again, unless it is asked for by `--only`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from plimsoll.local.demo.command import interruptible
from plimsoll.local.demo.workers import WorkerError
from plimsoll.local.soak import table
from plimsoll.local.soak.cells import Cell, Found, all_cells
from plimsoll.local.soak.ground import GroundError
from plimsoll.local.soak.hitting import CellError, CellRun

STATE = "kills.json"


def main(argv: Sequence[str] | None = None) -> int:
    """Run what is missing, write the table; 0 if every promise was kept, 1 if one was not."""
    given = _parser().parse_args(argv)
    folder: Path = given.report
    folder.mkdir(parents=True, exist_ok=True)
    found = load(folder / STATE)
    wanted = [cell for cell in all_cells() if _is_meant(cell, given.only)]
    if not wanted:
        sys.stderr.write(f"kills: no cell is meant by {given.only!r}; say `mode,step,victim,signal` or parts of it\n")
        return 2
    try:
        with interruptible():
            for cell in wanted:
                if given.only or cell not in found:
                    found[cell] = _run(cell, folder)
                    save(folder / STATE, found)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted: everything was stopped; the cells that had ended are kept\n")
        return 130
    except (CellError, GroundError, WorkerError) as error:
        sys.stderr.write(f"kills: {error}\n")
        return 1
    if given.write is not None:
        given.write.write_text(table.page(found), encoding="utf-8")
        sys.stdout.write(f"{given.write}: {len(found)} cells\n")
    broken = [one for cell, one in found.items() if cell in wanted and not one.is_kept]
    sys.stdout.write(f"{len(wanted)} cells, {len(broken)} broken\n")
    return 1 if broken else 0


def load(path: Path) -> dict[Cell, Found]:
    """What has been found before."""
    if not path.exists():
        return {}
    return {one.cell: one for one in msgspec.json.decode(path.read_bytes(), type=list[Found])}


def save(path: Path, found: dict[Cell, Found]) -> None:
    """Write it whole or not at all."""
    beside = path.with_name(path.name + ".new")
    beside.write_bytes(msgspec.json.format(msgspec.json.encode(list(found.values())), indent=1))
    beside.replace(path)


def _run(cell: Cell, folder: Path) -> Found:
    began = time.monotonic()
    one = CellRun(cell, folder / "cell").run()
    took = f"{time.monotonic() - began:.0f} s"
    sys.stdout.write(f"{cell}: {'kept' if one.is_kept else 'BROKEN'}, {one.state}, {table.members(one)}, {took}\n")
    for what in one.broken:
        sys.stdout.write(f"  {what}\n")
    sys.stdout.flush()
    return one


def _is_meant(cell: Cell, only: Sequence[str]) -> bool:
    """Whether all words of one of the expressions are words of the cell; no expression means every cell."""
    words = {cell.mode, cell.step, cell.victim or "nothing", cell.signal}
    return not only or any(set(map(str.strip, each.split(","))) <= words for each in only)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m plimsoll.local.soak.kills",
        description="Kill and freeze each party of a hand-over at each of its steps, in real processes, and judge it.",
        epilog="Exit code 0: every promise was kept. 1: otherwise.",
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="WORDS", help="cells with these words, as 'drain,target,KILL'"
    )
    parser.add_argument("--report", type=Path, default=Path("soak-report"), metavar="DIR", help="(default %(default)s)")
    parser.add_argument(
        "--write", type=Path, metavar="FILE", help="write the table of all cells of the file in --report"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
