"""The frame of programs: what they are given, and how a fault becomes a line and an exit code."""

from __future__ import annotations

import argparse
import os
import signal
from pathlib import Path

import pytest

from plimsoll.feeds.program import Fault, run_program
from plimsoll.telemetry.stop_signal import StopSignal


def fault_of(error: Exception) -> Fault | None:
    return (str(error), 3) if isinstance(error, OSError) else None


@pytest.fixture(autouse=True)
def handlers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)


def test_a_run_gets_its_file_and_what_stops_it() -> None:
    seen: list[tuple[Path, bool]] = []
    arguments = ["--config", "/c.json", "--parent-pid", str(os.getppid() + 1)]
    assert not run_program(
        arguments, argparse.ArgumentParser(), lambda file, stop: seen.append((file, stop())), fault_of
    )
    assert seen == [(Path("/c.json"), True)], "its parent is another process"


def test_a_known_fault_is_a_line_and_a_code(capsys: pytest.CaptureFixture[str]) -> None:
    def run(file: Path, stop: StopSignal) -> None:
        raise OSError("the disk\x1b fails")

    assert run_program(["--config", "c"], argparse.ArgumentParser(), run, fault_of) == 3
    assert capsys.readouterr().err == "the disk\\x1b fails\n"


def test_another_error_is_raised() -> None:
    def run(file: Path, stop: StopSignal) -> None:
        raise KeyError("a fault of ours")

    with pytest.raises(KeyError):
        run_program(["--config", "c"], argparse.ArgumentParser(), run, fault_of)
