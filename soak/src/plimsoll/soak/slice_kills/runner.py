"""The kill matrix of slices as a program.

python -m plimsoll.soak.slice_kills.runner [--only "Cache,cache sent,giver"] [--write docs/kill-matrix-slices.md]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from plimsoll.core.verify.slice_kill_cells import SliceKillCell, SliceKillResult, all_cells
from plimsoll.soak import matrix, matrix_page
from plimsoll.soak.simulated_cells import SimulatedCellError, run_simulated
from plimsoll.soak.slice_kills import page


class SliceKills(matrix.Matrix[SliceKillCell, SliceKillResult]):
    """A process killed at each message of the move of a slice."""

    program = "plimsoll.soak.slice_kills.runner"
    title = "slice kills"
    about = "Kill a process at each message by which a slice moves between two consumers, and judge every item."
    file = "slice-kills.json"
    order, example = "in session,step,when,victim", "Cache,cache sent,before,giver"
    errors = (SimulatedCellError,)
    result_type = SliceKillResult

    def cells(self) -> Iterator[SliceKillCell]:
        return all_cells()

    def run(self, cell: SliceKillCell, folder: Path) -> SliceKillResult:
        words = [cell.in_session, cell.step, cell.when, cell.victim or "nothing"]
        return run_simulated("plimsoll.simulator.slice_kills", words, SliceKillResult)

    def text(self, result: SliceKillResult) -> str:
        return matrix_page.cell_text(result, page.end_text)

    def page(self, found: Mapping[SliceKillCell, SliceKillResult]) -> str:
        return page.slice_kill_page(found)


if __name__ == "__main__":
    sys.exit(matrix.main(SliceKills()))
