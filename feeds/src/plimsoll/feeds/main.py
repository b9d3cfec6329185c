"""Run one recorder from a configuration file until a signal stops it; what waits is committed before it exits.

Exit codes: 0 stopped by a signal; 1 the fleet ended its subscriber; 2 invalid configuration or dataset; 3 the disk.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from plimsoll.client import Connection, Subscriber, errors
from plimsoll.client.connection_file import read_connection_file
from plimsoll.core.printable import printable_lines
from plimsoll.feeds.commit_log import FeedDatasetError
from plimsoll.feeds.config import RecorderConfig, RecorderConfigError, figures_of, read_config, write_figures
from plimsoll.feeds.dataset import FeedDataset, Retention
from plimsoll.feeds.recorder import CommitLimits, FeedRecorder, resumed_subscriber

EXIT_FLEET: Final = 1
EXIT_CONFIG: Final = 2
EXIT_DISK: Final = 3
FIGURES_SECONDS: Final = 1.0
ACK_SECONDS: Final = 60.0


def main(arguments: list[str]) -> int:
    """Record until SIGTERM or SIGINT; returns the exit code."""
    options = _parser().parse_args(arguments)
    stop = RecorderStop(options.parent_pid)
    signal.signal(signal.SIGTERM, stop.on_signal)
    signal.signal(signal.SIGINT, stop.on_signal)
    try:
        run(read_config(options.config), stop)
    except (RecorderConfigError, FeedDatasetError, errors.ConnectionFileError) as error:
        return _failed(error, EXIT_CONFIG)
    except OSError as error:
        return _failed(error, EXIT_DISK)
    except errors.ClientError as error:
        return _failed(error, EXIT_FLEET)
    return 0


def _failed(error: Exception, code: int) -> int:
    print(printable_lines(str(error)), file=sys.stderr)  # noqa: T201  # a person is meant to read it
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m plimsoll.feeds", description="Run one recorder.")
    parser.add_argument("--config", required=True, type=Path, metavar="FILE", help="configuration, as JSON")
    parser.add_argument("--parent-pid", type=int, metavar="PID", help="stop when this parent process has ended")
    return parser


class RecorderStop:
    """Whether to stop: after SIGTERM or SIGINT, or when the parent process has ended."""

    def __init__(self, parent_pid: int | None) -> None:
        self._parent_pid = parent_pid
        self._requested = False

    def on_signal(self, number: int, frame: object) -> None:
        self._requested = True

    def __call__(self) -> bool:
        return self._requested or (self._parent_pid is not None and os.getppid() != self._parent_pid)


def run(config: RecorderConfig, stopped: Callable[[], bool]) -> None:
    """Record until `stopped`. Raises as `main` catches."""
    dataset = FeedDataset(Path(config.path), config.subscription, config.schema)
    try:
        settings = read_connection_file(config.connection)
        with (
            Connection(settings.heads, security=settings.security) as connection,
            resumed_subscriber(connection, config.subscriber, dataset, ACK_SECONDS) as subscriber,
        ):
            _record(config, subscriber, dataset, stopped)
    finally:
        dataset.close()


def _record(config: RecorderConfig, subscriber: Subscriber, dataset: FeedDataset, stopped: Callable[[], bool]) -> None:
    recorder = FeedRecorder(
        subscriber, dataset, CommitLimits(config.commit_seconds), Retention(config.retain_seconds, config.retain_bytes)
    )
    recorder.start()
    due = 0.0
    while not stopped():
        recorder.step()
        if config.figures and time.monotonic() >= due:
            due = time.monotonic() + FIGURES_SECONDS
            write_figures(Path(config.figures), figures_of(dataset, os.getpid(), time.time_ns() // 1000))
    recorder.finish()
    if config.figures:
        write_figures(Path(config.figures), figures_of(dataset, os.getpid(), time.time_ns() // 1000))
