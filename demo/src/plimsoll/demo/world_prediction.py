"""The demo's own fleet as a World: made while it runs, as a user would, and simulated when the traffic is over.

Both are processes, `plimsoll world` and `plimsoll simulate`. That one of them fails is said in the report; the run goes
on, since nothing of it depends on them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from plimsoll.demo.analysis import prediction
from plimsoll.demo.analysis.delays import DeliveryDelays
from plimsoll.demo.analysis.load_series import LoadSeries
from plimsoll.demo.workload import DemoScenario
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.supervision.child_process import ChildProcess, describe_exit

WORLD_FILE: Final = "world.yaml"
SIMULATION_SECONDS: Final = 120.0
_CLI: Final = (sys.executable, "-m", "plimsoll.cli.main")


class WorldPrediction:
    """Use `look` while the traffic runs, and `result` when it is over; `kill` leaves no process."""

    def __init__(self, scenario: DemoScenario, folder: Path, fleet: FleetFolder) -> None:
        self.stretch = prediction.stretch_of(scenario)
        self._folder, self._fleet = folder, fleet
        self._process: ChildProcess | None = None
        self._made_at: float | None = None
        self._fault = ""

    @property
    def world(self) -> Path:
        return self._folder / WORLD_FILE

    def look(self, seconds: float) -> None:
        """Begin to make the World when it is time, and note when it is made. `seconds`: since the traffic began."""
        stretch = self.stretch
        if stretch is None or self._fault or self._made_at is not None:
            return
        if self._process is None and seconds >= stretch.begin:
            self._process = self._start(stretch)
        elif self._process is not None and (code := self._process.exit_code()) is not None:
            self._made_at = seconds
            if code != 0:
                self._fault = f"plimsoll world: {self._process.last_output_line() or describe_exit(code)}"

    def _start(self, stretch: prediction.Stretch) -> ChildProcess:
        command = [
            *_CLI, "world", "--fleet", self._fleet.fleet, "--over", f"{stretch.over_seconds:g}",
            "--duration", f"{stretch.end - stretch.begin:.1f}s", "--write", str(self.world),
        ]  # fmt: skip
        home = {**os.environ, "PLIMSOLL_HOME": str(self._fleet.path.parent)}
        return ChildProcess(command, self._folder / "logs" / "world.log", home)

    def kill(self) -> None:
        """End the process that makes the World, if it runs."""
        if self._process is not None:
            self._process.kill()

    def result(self, series: LoadSeries, delays: DeliveryDelays, edges: list[str]) -> dict[str, Any] | None:
        """The prediction beside what was measured; None if the run was too short for one."""
        if self.stretch is None:
            return None
        if self._made_at is None and not self._fault:
            self._fault = "plimsoll world did not end before the stretch did"
        row = self._simulated() if not self._fault else None
        if row is None or self._made_at is None:
            return {"fault": self._fault}
        return prediction.prediction(row, series, delays, edges, self._made_at, self.stretch.end)

    def _simulated(self) -> dict[str, Any] | None:
        rows = self._folder / "prediction.json"
        command = [*_CLI, "simulate", "-f", str(self.world), "--policy", "own", "--json", str(rows)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=SIMULATION_SECONDS, check=False
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            self._fault = f"plimsoll simulate took longer than {SIMULATION_SECONDS:g} s"
            return None
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines()
            self._fault = f"plimsoll simulate: {lines[-1] if lines else describe_exit(done.returncode)}"
            return None
        found: list[dict[str, Any]] = json.loads(rows.read_text(encoding="utf-8"))
        rows.unlink()
        return found[0]
