"""The demo's prediction: when the World is made, and that a failure is said and ends nothing."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, ClassVar

import pytest

from plimsoll.demo import world_prediction
from plimsoll.demo.analysis.delays import DeliveryDelays
from plimsoll.demo.analysis.load_series import LoadSeries
from plimsoll.demo.options import BALANCING_SCENARIO
from plimsoll.demo.workload import DemoScenario
from plimsoll.demo.world_prediction import WorldPrediction
from plimsoll.local.storage.fleet_folder import FleetFolder

ROW = {"type": "Padres", "delay_p50_seconds": 0.002, "delay_p99_seconds": 0.005, "first_minute": {}}


class FakeProcess:
    """A process that ends when a test says so."""

    made: ClassVar[list[FakeProcess]] = []

    def __init__(self, command: list[str], log: Path, environment: dict[str, str]) -> None:
        self.command, self.log, self.environment = command, log, environment
        self.code: int | None = None
        self.is_killed = False
        self.made.append(self)

    def exit_code(self) -> int | None:
        return self.code

    def last_output_line(self) -> str:
        return "" if self.code == 0 else "no edge serves a subscriber"

    def kill(self) -> None:
        self.is_killed = True


@pytest.fixture
def predicted(tmp_path, monkeypatch) -> WorldPrediction:
    monkeypatch.setattr(world_prediction, "ChildProcess", FakeProcess)
    monkeypatch.setattr(FakeProcess, "made", [])
    return WorldPrediction(BALANCING_SCENARIO, tmp_path, FleetFolder(tmp_path / "fleet" / "demo"))


def result(predicted: WorldPrediction) -> dict[str, Any] | None:
    return predicted.result(LoadSeries(), DeliveryDelays(0.0), ["b1"])


def simulated(monkeypatch, code: int, says: str = "") -> list[list[str]]:
    asked: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        asked.append(command)
        if code == 0:
            Path(command[-1]).write_text(json.dumps([ROW]))
        return subprocess.CompletedProcess(command, code, "", says)

    monkeypatch.setattr(subprocess, "run", run)
    return asked


def test_the_world_is_made_once_when_the_stretch_begins(predicted, monkeypatch, tmp_path):
    predicted.look(90.0)
    assert FakeProcess.made == []
    predicted.look(90.6)
    predicted.look(91.0)
    [made] = FakeProcess.made
    assert made.command[3:] == [
        "world", "--fleet", "demo", "--over", "14", "--duration", "21.0s", "--write", str(tmp_path / "world.yaml"),
    ]  # fmt: skip
    assert made.environment["PLIMSOLL_HOME"] == str(tmp_path / "fleet")
    made.code = 0
    predicted.look(92.0)
    predicted.look(99.0)
    asked = simulated(monkeypatch, 0)
    found = result(predicted)
    assert found is not None
    assert (found["begin_seconds"], found["end_seconds"]) == (92.0, 111.5)
    assert asked[0][3:8] == ["simulate", "-f", str(tmp_path / "world.yaml"), "--policy", "own"]
    assert not (tmp_path / "prediction.json").exists()


def test_a_world_that_cannot_be_made_is_a_fault_of_the_prediction_alone(predicted):
    predicted.look(95.0)
    FakeProcess.made[0].code = 1
    predicted.look(96.0)
    assert result(predicted) == {"fault": "plimsoll world: no edge serves a subscriber"}


def test_a_world_that_comes_too_late(predicted):
    predicted.look(95.0)
    assert result(predicted) == {"fault": "plimsoll world did not end before the stretch did"}
    predicted.kill()
    assert FakeProcess.made[0].is_killed


def test_a_simulation_that_fails_or_takes_too_long(predicted, monkeypatch):
    predicted.look(95.0)
    FakeProcess.made[0].code = 0
    predicted.look(96.0)
    simulated(monkeypatch, 2, "a\nplimsoll: 1 problem\n")
    assert result(predicted) == {"fault": "plimsoll simulate: plimsoll: 1 problem"}


def test_a_simulation_that_takes_too_long(predicted, monkeypatch):
    predicted.look(95.0)
    FakeProcess.made[0].code = 0
    predicted.look(96.0)

    def run(command: list[str], **_: Any) -> None:
        raise subprocess.TimeoutExpired(command, 1.0)

    monkeypatch.setattr(subprocess, "run", run)
    assert result(predicted) == {"fault": "plimsoll simulate took longer than 120 s"}


def test_a_short_run_has_none(tmp_path):
    short = WorldPrediction(DemoScenario(seconds=3.0), tmp_path, FleetFolder(tmp_path / "demo"))
    short.look(2.9)
    short.kill()
    assert result(short) is None
