"""The kill matrix of a hand-over as a program.

python -m plimsoll.soak.kill_matrix.runner [--only "drain,cut sent,target"] [--write docs/kill-matrix.md]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from plimsoll.demo.workers.worker_process import WorkerError
from plimsoll.soak import matrix
from plimsoll.soak.harness.fleet_harness import FleetHarnessError
from plimsoll.soak.kill_matrix import page
from plimsoll.soak.kill_matrix.cell_run import KillMatrixCellError, KillMatrixCellRun
from plimsoll.soak.kill_matrix.cells import KillMatrixCell, KillMatrixResult, all_cells


class HandoverKills(matrix.Matrix[KillMatrixCell, KillMatrixResult]):
    """Each process of a hand-over killed and frozen at each of its steps."""

    program = "plimsoll.soak.kill_matrix.runner"
    title = "kill matrix"
    about = "Kill and freeze each process of a hand-over at each of its steps, and audit every delivery."
    file = "kills.json"
    order, example = "mode,step,victim,signal", "drain,target,KILL"
    errors = (KillMatrixCellError, FleetHarnessError, WorkerError)
    result_type = KillMatrixResult

    def cells(self) -> Iterator[KillMatrixCell]:
        return all_cells()

    def run(self, cell: KillMatrixCell, folder: Path) -> KillMatrixResult:
        return KillMatrixCellRun(cell, folder).run()

    def text(self, result: KillMatrixResult) -> str:
        return f"{result.state}, {page.members_text(result)}"

    def page(self, found: Mapping[KillMatrixCell, KillMatrixResult]) -> str:
        return page.kill_matrix_page(found)


if __name__ == "__main__":
    sys.exit(matrix.main(HandoverKills()))
