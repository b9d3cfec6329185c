"""The kill matrix of heads whose logs outlast them, as a program.

python -m plimsoll.soak.head_kills.runner [--only "drain,cut done,standby"] [--write docs/kill-matrix-heads.md]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from plimsoll.core.verify.head_kill_cells import HeadKillCell, HeadKillResult, all_cells
from plimsoll.soak import matrix, matrix_page
from plimsoll.soak.head_kills import page
from plimsoll.soak.simulated_cells import SimulatedCellError, run_simulated


class HeadKills(matrix.Matrix[HeadKillCell, HeadKillResult]):
    """A head killed at each message of a hand-over, with its disk, its standby, or both left."""

    program = "plimsoll.soak.head_kills.runner"
    title = "head kills"
    about = "Kill a head at each message of a hand-over while its log outlasts it, and audit every delivery."
    file = "head-kills.json"
    order, example = "mode,step,when,victim,what it keeps", "across,cut done,before,far head,standby"
    errors = (SimulatedCellError,)
    result_type = HeadKillResult

    def cells(self) -> Iterator[HeadKillCell]:
        return all_cells()

    def run(self, cell: HeadKillCell, folder: Path) -> HeadKillResult:
        words = [cell.mode, cell.step, cell.when, cell.victim or "nothing", cell.keeps]
        return run_simulated("plimsoll.simulator.head_kills", words, HeadKillResult)

    def text(self, result: HeadKillResult) -> str:
        return matrix_page.cell_text(result, page.end_text)

    def page(self, found: Mapping[HeadKillCell, HeadKillResult]) -> str:
        return page.head_kill_page(found)


if __name__ == "__main__":
    sys.exit(matrix.main(HeadKills()))
