"""What the programs of feeds and channels share: their arguments, the signals that stop them, one line for a fault."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from plimsoll.telemetry.log_lines import tell
from plimsoll.telemetry.stop_signal import StopSignal

Fault = tuple[str, int]
"""What a person is to read of an error, and the exit code."""


def run_program(
    arguments: list[str],
    parser: argparse.ArgumentParser,
    run: Callable[[Path, StopSignal], None],
    fault_of: Callable[[Exception], Fault | None],
) -> int:
    """Run until SIGTERM or SIGINT; returns the exit code. An error of which `fault_of` knows nothing is raised."""
    parser.add_argument("--config", required=True, type=Path, metavar="FILE", help="configuration, as JSON")
    parser.add_argument("--parent-pid", type=int, metavar="PID", help="stop when this parent process has ended")
    options = parser.parse_args(arguments)
    stop = StopSignal(options.parent_pid)
    stop.listen()
    try:
        run(options.config, stop)
    except Exception as error:
        if (fault := fault_of(error)) is None:
            raise
        line, code = fault
        tell(line)
        return code
    return 0
