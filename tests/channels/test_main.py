"""The program of the driver: what it says when it cannot begin. A whole run is in tests/local/supervision."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from tests.sparkjobs import needs  # noqa: F401  # skips this module by name where Spark cannot run

from plimsoll.channels import main as program
from plimsoll.channels.config import DriverConfigError
from plimsoll.channels.ledger import LedgerError
from plimsoll.client import errors
from plimsoll.sparkjobs.spark_session import SparkUnavailableError
from plimsoll.telemetry.stop_signal import StopSignal


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (DriverConfigError("why"), program.EXIT_CONFIG), (LedgerError("why"), program.EXIT_CONFIG),
        (SparkUnavailableError("why"), program.EXIT_SPARK), (OSError("why"), program.EXIT_DISK),
        (errors.WaitTimeoutError("why"), program.EXIT_FLEET),
    ],
)  # fmt: skip
def test_each_fault_has_its_exit_code(
    error: Exception, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    def fail(config: Path, stop: StopSignal) -> None:
        raise error

    monkeypatch.setattr(program, "_run", fail)
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)
    assert program.main(["--config", str(tmp_path)]) == code
    assert capsys.readouterr().err == "why\n"
