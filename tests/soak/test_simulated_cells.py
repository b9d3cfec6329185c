"""A cell that the simulator runs as a program: what it says is the result, or the error."""

from __future__ import annotations

import pytest

from plimsoll.core.verify.slice_kill_cells import SliceKillResult
from plimsoll.soak import simulated_cells
from plimsoll.soak.simulated_cells import SimulatedCellError, run_simulated

MODULE = "plimsoll.simulator.slice_kills"


def test_what_the_simulator_says_is_the_error():
    with pytest.raises(SimulatedCellError, match=r"Deliver no step .*: the simulator ended with 1: KeyError"):
        run_simulated(MODULE, ["Deliver", "no step", "before", "nothing"], SliceKillResult)


def test_a_cell_that_takes_too_long_is_an_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(simulated_cells, "CELL_SECONDS", 0.001)
    with pytest.raises(SimulatedCellError, match=r"no result after 0.001 s"):
        run_simulated(MODULE, ["Deliver", "asked", "before", "nothing"], SliceKillResult)
