"""Cells that are runs of the simulator. It is started as a program: code that runs brokers does not import it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import TypeVar

import msgspec

CELL_SECONDS = 300.0
R = TypeVar("R")


class SimulatedCellError(RuntimeError):
    """The simulator has not run a cell."""


def run_simulated(module: str, words: Sequence[str], result_type: type[R]) -> R:
    """The result of the cell that these words name, as this module of the simulator prints it.

    Raises:
        SimulatedCellError: it ended with an error, or not in time.

    """
    command = [sys.executable, "-m", module, *words]  # a module of this project, with words of a table
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=CELL_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise SimulatedCellError(f"{' '.join(words)}: no result after {CELL_SECONDS:g} s") from error
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise SimulatedCellError(f"{' '.join(words)}: the simulator ended with {done.returncode}: {' '.join(last)}")
    return msgspec.json.decode(done.stdout, type=result_type)
