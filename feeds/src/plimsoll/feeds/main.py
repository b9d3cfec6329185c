"""Run one recorder from a configuration file until a signal stops it; what waits is committed before it exits.

Exit codes: 0 stopped by a signal; 1 the fleet ended its subscriber; 2 invalid configuration or dataset; 3 the disk.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from plimsoll.client import Connection, Subscriber, errors
from plimsoll.client.connection_file import read_connection_file
from plimsoll.feeds.commit_log import FeedDatasetError
from plimsoll.feeds.config import RecorderConfig, RecorderConfigError, figures_of, read_config, write_figures
from plimsoll.feeds.dataset import FeedDataset, Retention
from plimsoll.feeds.figures_page import FiguresPage
from plimsoll.feeds.metrics import recorder_metrics
from plimsoll.feeds.object_path import dataset_root
from plimsoll.feeds.program import Fault, run_program
from plimsoll.feeds.recorder import CommitLimits, FeedRecorder, resumed_subscriber
from plimsoll.feeds.serving.feed_server import FeedServer
from plimsoll.feeds.serving.feed_sockets import FeedEndpointError
from plimsoll.network.auth.authorized_keys import KeyFileError

EXIT_FLEET: Final = 1
EXIT_CONFIG: Final = 2
EXIT_DISK: Final = 3
FIGURES_SECONDS: Final = 1.0
ACK_SECONDS: Final = 60.0


def main(arguments: list[str]) -> int:
    """Record until SIGTERM or SIGINT; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m plimsoll.feeds", description="Run one recorder.")
    return run_program(arguments, parser, lambda file, stop: run(read_config(file), stop), _fault_of)


_WRONG_INPUT: Final = (
    RecorderConfigError, FeedDatasetError, errors.ConnectionFileError, KeyFileError, FeedEndpointError,
)  # fmt: skip


def _fault_of(error: Exception) -> Fault | None:
    if isinstance(error, _WRONG_INPUT):
        return str(error), EXIT_CONFIG
    if isinstance(error, OSError):
        return str(error), EXIT_DISK
    return (str(error), EXIT_FLEET) if isinstance(error, errors.ClientError) else None


def run(config: RecorderConfig, stopped: Callable[[], bool]) -> None:
    """Record until `stopped`. Raises as `main` catches."""
    dataset = FeedDataset(dataset_root(config.path), config.subscription, config.schema)
    try:
        settings = read_connection_file(config.connection)
        with (
            _served(config, dataset) as server,  # first: what is recorded can be read without a head
            Connection(settings.heads, security=settings.security) as connection,
            resumed_subscriber(connection, config.subscriber, dataset, ACK_SECONDS) as subscriber,
        ):
            _record(config, subscriber, dataset, server, stopped)
    finally:
        dataset.close()


def _record(
    config: RecorderConfig,
    subscriber: Subscriber,
    dataset: FeedDataset,
    server: FeedServer | None,
    stopped: Callable[[], bool],
) -> None:
    recorder = FeedRecorder(
        subscriber, dataset, CommitLimits(config.commit_seconds), Retention(config.retain_seconds, config.retain_bytes)
    )
    with RecorderFiguresWriter(config, server) as written:
        recorder.start()
        while not stopped():
            recorder.step()
            if server is not None:
                server.show(dataset.state)
            written.write_when_due(recorder, time.monotonic())
        recorder.finish()
        written.write(recorder)


@contextmanager
def _served(config: RecorderConfig, dataset: FeedDataset) -> Iterator[FeedServer | None]:
    """Serve the dataset as the last commit left it, if it is to be served."""
    if config.serving is None:
        yield None
        return
    server = FeedServer(config.feed, dataset.root, config.serving)
    try:
        server.show(dataset.state)
        yield server
    finally:
        server.close()


class RecorderFiguresWriter:
    """Tells what a recorder has done: in a file, on a page, or both. Raises OSError."""

    def __init__(self, config: RecorderConfig, server: FeedServer | None = None) -> None:
        self._config, self._server = config, server
        self._page = FiguresPage(config.http) if config.http else None
        self._due = 0.0

    def __enter__(self) -> RecorderFiguresWriter:
        return self

    def __exit__(self, *_: object) -> None:
        if self._page is not None:
            self._page.close()

    def write_when_due(self, recorder: FeedRecorder, now: float) -> None:
        """Tell it each second."""
        if now >= self._due:
            self._due = now + FIGURES_SECONDS
            self.write(recorder)

    def write(self, recorder: FeedRecorder) -> None:
        """Tell it now."""
        figures = figures_of(recorder.dataset, os.getpid(), time.time_ns() // 1000, recorder.lag_us)
        if self._server is not None:
            served = self._server.served
            figures = msgspec.structs.replace(figures, endpoint=self._server.endpoint, served=served)
        if self._config.figures:
            write_figures(Path(self._config.figures), figures)
        if self._page is not None:
            self._page.update(msgspec.json.encode(figures), recorder_metrics({self._config.feed: figures}))
