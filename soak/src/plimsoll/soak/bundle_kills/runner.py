"""The kill matrix of bundles as a program.

python -m plimsoll.soak.bundle_kills.runner [--only "split,stored,head"] [--write docs/kill-matrix-bundles.md]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from plimsoll.demo.fleet import DemoFleetError
from plimsoll.demo.workers.worker_process import WorkerError
from plimsoll.soak import matrix
from plimsoll.soak.bundle_kills import page
from plimsoll.soak.bundle_kills.cell_run import BundleKillRun
from plimsoll.soak.bundle_kills.cells import BundleKillCell, BundleKillResult, all_cells
from plimsoll.soak.supervised_kill import KillError


class BundleKills(matrix.Matrix[BundleKillCell, BundleKillResult]):
    """A process killed at each step in which a bundle is unloaded or split."""

    program = "plimsoll.soak.bundle_kills.runner"
    title = "bundle kills"
    about = "Kill a process at each step in which a bundle is unloaded or split, and audit every delivery."
    file = "bundle-kills.json"
    order, example = "change,step,victim", "split,stored,head"
    errors = (KillError, DemoFleetError, WorkerError)
    result_type = BundleKillResult

    def cells(self) -> Iterator[BundleKillCell]:
        return all_cells()

    def run(self, cell: BundleKillCell, folder: Path) -> BundleKillResult:
        return BundleKillRun(cell, folder).run()

    def text(self, result: BundleKillResult) -> str:
        return page.end_text(result)

    def page(self, found: Mapping[BundleKillCell, BundleKillResult]) -> str:
        return page.bundle_kill_page(found)


if __name__ == "__main__":
    sys.exit(matrix.main(BundleKills()))
