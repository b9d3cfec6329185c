"""The driver: all channels of a fleet in one Spark, with one connection, and one list of parameters in force."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
from pyspark.sql import SparkSession

from plimsoll.channels.config import (
    ChannelDefinition,
    ChannelFigures,
    DriverConfig,
    DriverFigures,
    read_config,
    write_figures,
)
from plimsoll.channels.edge_poller import EdgePoller
from plimsoll.channels.metrics import channel_metrics
from plimsoll.channels.names import publisher_name
from plimsoll.channels.publisher import PublishesResults
from plimsoll.channels.query import ChannelQuery
from plimsoll.channels.runner import ChannelRunner
from plimsoll.channels.store_copies import StoreCopies
from plimsoll.channels.subscriptions import ChannelSubscriptions
from plimsoll.client import Connection, Publisher
from plimsoll.client.connection_file import read_connection_file
from plimsoll.core.client import Answered, PublisherPosition
from plimsoll.core.protocol.wire import Scalar
from plimsoll.feeds.figures_page import FiguresPage
from plimsoll.feeds.object_path import dataset_root
from plimsoll.mediator.control_plane import MediatorKeyPair
from plimsoll.telemetry.ingest.head_listener import CollectorCurveKeys

STEP_SECONDS: Final = 0.1
FIGURES_SECONDS: Final = 1.0
CHECKPOINTS: Final = ".checkpoints"
"""The folder of the queries' checkpoints, beside the copies; no channel can have its name."""
PARAMETERS_SECONDS: Final = 10.0
"""Channels wait at most so long for the parameters of all edges before they begin."""


class ChannelDriver:
    """Runs the channels of a configuration file, and follows its changes.

    Raises:
        DriverConfigError: the file cannot be used.
        ClientError: the fleet does not take publications.
        LedgerError: another driver works on a channel.
        OSError: the disk fails.

    """

    def __init__(self, spark: SparkSession, file: Path) -> None:
        self._spark, self._file = spark, file
        self._config = read_config(file)
        self._read_us = file.stat().st_mtime_ns
        settings = read_connection_file(self._config.connection)
        self._connection = Connection(settings.heads, security=settings.security)
        self._poller = EdgePoller(self._config.name, _curve(self._config.key))
        self._runners: dict[str, ChannelRunner] = {}
        self._waiting: list[ChannelRunner] = []
        self._cache: dict[str, tuple[int, ChannelSubscriptions]] = {}
        self._error: Exception | None = None
        self._figures_at = 0.0
        self._page = FiguresPage(self._config.http) if self._config.http else None
        self._begin_at = time.monotonic() + PARAMETERS_SECONDS

    def run(self, stopped: Callable[[], bool]) -> None:
        """Run until `stopped`."""
        try:
            self._follow(self._config)
            while not stopped():
                self._step(time.monotonic())
                time.sleep(STEP_SECONDS)
        finally:
            self.close()

    def _step(self, now: float) -> None:
        if self._error is not None:
            raise self._error
        if (at := self._file.stat().st_mtime_ns) != self._read_us:
            self._read_us = at
            self._follow(read_config(self._file))
        with self._poller.lock:
            is_complete = self._poller.parameters.is_complete
        if is_complete or now >= self._begin_at:
            for runner in self._waiting:
                runner.start()
            self._waiting = []
        for runner in self._runners.values():
            runner.save()
        self._write_figures(now)

    def _follow(self, config: DriverConfig) -> None:
        """Take a configuration: edges that come and go, channels that are new, changed or gone."""
        self._config = config
        self._poller.set_edges({each.name: each for each in config.edges})
        wanted = {each.name: each for each in config.channels}
        for name, runner in list(self._runners.items()):
            if wanted.get(name) != runner.channel:
                del self._runners[name]
                self._waiting = [each for each in self._waiting if each is not runner]
                runner.close()
        for name, channel in wanted.items():
            if name not in self._runners:
                self._runners[name] = self._runner(channel)
                self._waiting.append(self._runners[name])

    def _runner(self, channel: ChannelDefinition) -> ChannelRunner:
        query = ChannelQuery(self._spark, channel, StoreCopies(Path(self._config.scratch) / channel.name))
        return ChannelRunner(
            query, channel, dataset_root(self._config.folder) / channel.name, partial(self._opened, channel.name),
            self._subscriptions_of, self._connection.machine.limits.max_publication_bytes,
            Path(self._config.scratch) / CHECKPOINTS / channel.name, self._on_error,
        )  # fmt: skip

    def _opened(
        self,
        channel: str,
        position: PublisherPosition | None,
        unanswered: Sequence[tuple[Mapping[str, Scalar], bytes]],
        away_seconds: float,
        on_answer: Callable[[list[Answered]], None],
    ) -> PublishesResults:
        return Publisher(
            self._connection, name=publisher_name(channel), on_answer=on_answer, position=position,
            unanswered=unanswered, away_seconds=away_seconds,
        )  # fmt: skip

    def _subscriptions_of(self, channel: ChannelDefinition) -> ChannelSubscriptions:
        with self._poller.lock:
            known = self._poller.parameters
            cached = self._cache.get(channel.name)
            if cached is None or cached[0] != known.version:
                cached = self._cache[channel.name] = (known.version, known.of(channel))
        return cached[1]

    def _on_error(self, error: Exception) -> None:
        self._error = error

    def _write_figures(self, now: float) -> None:
        if now < self._figures_at:
            return
        self._figures_at = now + FIGURES_SECONDS
        channels: dict[str, ChannelFigures] = {name: each.figures() for name, each in self._runners.items()}
        figures = DriverFigures(os.getpid(), time.time_ns() // 1000, channels)
        if self._config.figures:
            write_figures(Path(self._config.figures), figures)
        if self._page is not None:
            self._page.update(msgspec.json.encode(figures), channel_metrics(channels))

    def close(self) -> None:
        """End all channels; each goes on behind its last batch in the next life."""
        with contextlib.ExitStack() as ends:  # one that fails keeps no other from its end
            if self._page is not None:
                ends.callback(self._page.close)
            ends.callback(self._connection.close)
            ends.callback(self._poller.close)
            for runner in self._runners.values():
                ends.callback(runner.close)
            self._runners = {}


def _curve(key: str) -> MediatorKeyPair | None:
    if not key:
        return None
    pair = CollectorCurveKeys.of(Path(key).read_text(encoding="ascii").strip())
    return MediatorKeyPair(pair.public, pair.secret)
