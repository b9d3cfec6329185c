"""Run the driver of channels from a configuration file until a signal stops it.

Exit codes: 0 stopped by a signal; 1 the fleet does not take its publications; 2 invalid configuration or ledger; 3 the
disk; 4 Spark.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Final

from plimsoll.channels.config import DriverConfigError
from plimsoll.channels.ledger import LedgerError
from plimsoll.client import errors
from plimsoll.feeds.program import Fault, run_program
from plimsoll.sparkjobs.job_errors import error_line, is_spark_error, wants_trace
from plimsoll.sparkjobs.spark_session import SparkUnavailableError, make_spark_session
from plimsoll.telemetry.stop_signal import StopSignal

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
    parser = argparse.ArgumentParser(prog="python -m plimsoll.channels", description="Run the channels of a fleet.")
    return run_program(arguments, parser, _run, _fault_of)


def _run(config: Path, stop: StopSignal) -> None:
    from plimsoll.channels import standby
    from plimsoll.channels.config import read_config
    from plimsoll.channels.driver import ChannelDriver

    spark = make_spark_session("plimsoll-channels", SETTINGS)
    try:
        role, warm, check = (
            read_config(config).role,
            partial(standby.warm_up, spark),
            partial(standby.check_java, spark),
        )
        with standby.driver_role(role, stop, warm, check) as has_role:
            if has_role:
                ChannelDriver(spark, config).run(stop)
    finally:
        spark.stop()


def _fault_of(error: Exception) -> Fault | None:
    if isinstance(error, DriverConfigError | LedgerError | errors.ConnectionFileError):
        return str(error), EXIT_CONFIG
    if isinstance(error, SparkUnavailableError):
        return str(error), EXIT_SPARK
    if isinstance(error, errors.ClientError):
        return str(error), EXIT_FLEET
    if isinstance(error, OSError):
        return str(error), EXIT_DISK
    if wants_trace() or not is_spark_error(error):
        return None
    return error_line("channels", error), EXIT_SPARK
