"""The kill matrix of publishers as a program.

python -m plimsoll.soak.publisher_kills.runner [--only "cut,old head"] [--write docs/kill-matrix-publishers.md]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from plimsoll.demo.fleet import DemoFleetError
from plimsoll.demo.workers.worker_process import WorkerError
from plimsoll.soak import matrix
from plimsoll.soak.publisher_kills import page
from plimsoll.soak.publisher_kills.cell_run import PublisherKillRun
from plimsoll.soak.publisher_kills.cells import PublisherKillCell, PublisherKillResult, all_cells
from plimsoll.soak.supervised_kill import KillError


class PublisherKills(matrix.Matrix[PublisherKillCell, PublisherKillResult]):
    """A process hit at each step in which publishers move between heads."""

    program = "plimsoll.soak.publisher_kills.runner"
    title = "publisher kills"
    about = "Kill a process at each step in which publishers move between heads, and audit every delivery."
    file = "publisher-kills.json"
    order, example = "step,victim", "cut,old head"
    errors = (KillError, DemoFleetError, WorkerError)
    result_type = PublisherKillResult

    def cells(self) -> Iterator[PublisherKillCell]:
        return all_cells()

    def run(self, cell: PublisherKillCell, folder: Path) -> PublisherKillResult:
        return PublisherKillRun(cell, folder).run()

    def text(self, result: PublisherKillResult) -> str:
        return page.end_text(result)

    def page(self, found: Mapping[PublisherKillCell, PublisherKillResult]) -> str:
        return page.publisher_kill_page(found)


if __name__ == "__main__":
    sys.exit(matrix.main(PublisherKills()))
