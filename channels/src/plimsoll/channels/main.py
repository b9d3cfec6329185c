"""Run the driver of channels from a configuration file until a signal stops it.

Exit codes: 0 stopped by a signal; 1 the fleet does not take its publications; 2 invalid configuration or ledger; 3 the
disk; 4 Spark.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path
from typing import Final

from plimsoll.channels.config import DriverConfigError
from plimsoll.channels.ledger import LedgerError
from plimsoll.client import errors
from plimsoll.core.printable import printable_lines
from plimsoll.sparkjobs.job_errors import error_line, is_spark_error, wants_trace
from plimsoll.sparkjobs.spark_session import SparkUnavailableError, make_spark_session

EXIT_FLEET: Final = 1
EXIT_CONFIG: Final = 2
EXIT_DISK: Final = 3
EXIT_SPARK: Final = 4
SETTINGS: Final = {
    # Batches are small: more partitions would cost more than they save.
    "spark.sql.shuffle.partitions": "2",
    "spark.scheduler.mode": "FAIR",
}


def main(arguments: list[str]) -> int:
    """Run channels until SIGTERM or SIGINT; returns the exit code."""
    options = _parser().parse_args(arguments)
    stop = DriverStop(options.parent_pid)
    signal.signal(signal.SIGTERM, stop.on_signal)
    signal.signal(signal.SIGINT, stop.on_signal)
    try:
        _run(options.config, stop)
    except (DriverConfigError, LedgerError, errors.ConnectionFileError) as error:
        return _failed(str(error), EXIT_CONFIG)
    except SparkUnavailableError as error:
        return _failed(str(error), EXIT_SPARK)
    except errors.ClientError as error:
        return _failed(str(error), EXIT_FLEET)
    except OSError as error:
        return _failed(str(error), EXIT_DISK)
    except Exception as error:
        if wants_trace() or not is_spark_error(error):
            raise
        return _failed(error_line("channels", error), EXIT_SPARK)
    return 0


def _run(config: Path, stop: DriverStop) -> None:
    from plimsoll.channels.driver import ChannelDriver

    spark = make_spark_session("plimsoll-channels", SETTINGS)
    try:
        ChannelDriver(spark, config).run(stop)
    finally:
        spark.stop()


def _failed(line: str, code: int) -> int:
    print(printable_lines(line), file=sys.stderr)  # noqa: T201  # a person is meant to read it
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m plimsoll.channels", description="Run the channels of a fleet.")
    parser.add_argument("--config", required=True, type=Path, metavar="FILE", help="configuration, as JSON")
    parser.add_argument("--parent-pid", type=int, metavar="PID", help="stop when this parent process has ended")
    return parser


class DriverStop:
    """Whether to stop: after SIGTERM or SIGINT, or when the parent process has ended."""

    def __init__(self, parent_pid: int | None) -> None:
        self._parent_pid = parent_pid
        self._requested = False

    def on_signal(self, number: int, frame: object) -> None:
        self._requested = True

    def __call__(self) -> bool:
        return self._requested or (self._parent_pid is not None and os.getppid() != self._parent_pid)
