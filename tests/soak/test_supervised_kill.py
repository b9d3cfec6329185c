"""A cell under a supervisor: how it waits for a step, and when everything counts as back in order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plimsoll.demo.workload import DemoScenario
from plimsoll.soak import supervised_kill
from plimsoll.soak.supervised_kill import QUIET_LOOKS, KillError, SupervisedKill


class Looks:
    """Traffic of which only the looks are counted; at each the reports of brokers are `reports`."""

    def __init__(self, reports: dict[str, dict[str, Any]]) -> None:
        self.count, self.series = 0, SimpleNamespace(latest=reports)

    def look(self) -> None:
        self.count += 1


class Cell(SupervisedKill):
    """`wrong`: at how many looks something is wrong, from the first on."""

    def __init__(self, folder: Path, wrong: int = 0, epoch: int = 7) -> None:
        super().__init__("a cell", folder, "kills", DemoScenario())
        self.wrong, self.looks = wrong, Looks({"h": {"epoch": epoch}})
        self._traffic = self.looks  # type: ignore[assignment]  # what of the traffic is used here

    def play(self) -> None:
        self._settle()

    def faults(self) -> Iterator[str]:
        if self.looks.count <= self.wrong:
            yield "one unit is nowhere"

    def killed(self, name: str, epoch: int) -> None:
        self._lives[name] = epoch

    @property
    def problems(self) -> list[str]:
        return self._problems

    def reach(self) -> None:
        self._await(lambda: self.looks.count == 3, "three looks")


def test_all_is_in_order_once_it_was_at_some_looks_in_a_row(tmp_path: Path):
    cell = Cell(tmp_path, wrong=5)
    cell.play()
    assert (cell.looks.count, cell.problems) == (5 + QUIET_LOOKS, [])


def test_what_is_wrong_when_time_is_up_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(supervised_kill, "END_SECONDS", 0.01)
    cell = Cell(tmp_path, wrong=10**9)
    cell.killed("h", 7)
    cell.play()
    assert cell.problems == ["h has not reported again", "one unit is nowhere"]


def test_a_killed_broker_is_back_under_a_later_epoch(tmp_path: Path):
    cell = Cell(tmp_path, epoch=8)
    cell.killed("h", 7)
    cell.play()
    assert cell.problems == []


def test_a_step_that_is_not_reached_is_an_error_that_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    cell = Cell(tmp_path)
    cell.reach()
    assert cell.looks.count == 3
    cell.looks.count = 0
    monkeypatch.setattr(supervised_kill, "STEP_SECONDS", 0.0)
    monkeypatch.setattr(Cell, "_session", lambda self: {"phase": "Sampling"})
    with pytest.raises(KillError, match="a cell: not within 0 s: three looks"):
        cell.reach()
