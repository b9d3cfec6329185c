"""The kill matrix of slices as a program.

python -m plimsoll.soak.slice_kills.runner [--only "Cache,cache sent,giver"] [--write docs/kill-matrix-slices.md]
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from plimsoll.core.verify.slice_kill_cells import SliceKillCell, SliceKillResult, all_cells
from plimsoll.soak import matrix, matrix_page
from plimsoll.soak.slice_kills import page

CELL_SECONDS = 300.0


class SliceKillError(RuntimeError):
    """The simulator has not run a cell."""


class SliceKills(matrix.Matrix[SliceKillCell, SliceKillResult]):
    """A process killed at each message of the move of a slice."""

    program = "plimsoll.soak.slice_kills.runner"
    title = "slice kills"
    about = "Kill a process at each message by which a slice moves between two consumers, and judge every item."
    file = "slice-kills.json"
    order, example = "in session,step,when,victim", "Cache,cache sent,before,giver"
    errors = (SliceKillError, subprocess.TimeoutExpired)
    result_type = SliceKillResult

    def cells(self) -> Iterator[SliceKillCell]:
        return all_cells()

    def run(self, cell: SliceKillCell, folder: Path) -> SliceKillResult:
        """Run the simulator as a program: what runs brokers does not import it."""
        words = [cell.in_session, cell.step, cell.when, cell.victim or "nothing"]
        done = subprocess.run(  # a module of this project, with words of the table
            [sys.executable, "-m", "plimsoll.simulator.slice_kills", *words],
            capture_output=True, check=False, timeout=CELL_SECONDS,
        )  # fmt: skip
        if done.returncode:
            last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
            raise SliceKillError(f"{cell}: the simulator ended with {done.returncode}: {' '.join(last)}")
        return msgspec.json.decode(done.stdout, type=SliceKillResult)

    def text(self, result: SliceKillResult) -> str:
        return matrix_page.cell_text(result, page.end_text)

    def page(self, found: Mapping[SliceKillCell, SliceKillResult]) -> str:
        return page.slice_kill_page(found)


if __name__ == "__main__":
    sys.exit(matrix.main(SliceKills()))
