"""Recorders of feeds as processes of this machine: one for each Feed, kept running, and ended before the brokers.

A dataset whose feed has no path of its own is in the fleet's folder, in `feeds/NAME`. A recorder that fails affects
neither brokers nor sessions; it starts again behind its last commit.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from plimsoll.core.spec import Resource, Resources
from plimsoll.core.spec.kinds import FeedSpec
from plimsoll.feeds.config import (
    RecorderConfig,
    RecorderFigures,
    ServingConfig,
    read_figures,
    recorder_config,
)
from plimsoll.feeds.status import ProgramState, figures_status, is_fresh, recording_condition
from plimsoll.local import keys
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.state_files import write_private
from plimsoll.local.supervision.application_connection import ApplicationConnection
from plimsoll.local.supervision.sidecar import RecordFleetEvent, Sidecar
from plimsoll.mediator.resource_status import merged_conditions

SERVED_AT: Final = "tcp://127.0.0.1:*"
STOP_SECONDS: Final = 5.0
"""How long a recorder may take to commit what it holds."""


class FeedProcesses:
    """The recorders of one fleet. `now` is seconds of one monotonic clock."""

    def __init__(self, folder: FleetFolder, *, plain: bool) -> None:
        self._folder, self._plain = folder, plain
        self._keepers: dict[str, Sidecar] = {}
        self._written: dict[str, bytes] = {}
        self._connection = ApplicationConnection(folder, "recorders-connection", keys.RECORDER)
        self._known = 0

    def poll(self, now: float, resources: Resources, record: RecordFleetEvent) -> None:
        """Start, restart and end recorders, as the feeds say. Raises `StateWriteError`; the next call goes on."""
        for name in sorted(self._keepers.keys() - resources.feeds.keys()):
            self._end([self._keepers.pop(name)])
            self._written.pop(name, None)
        if not resources.feeds or not self._connection.poll(now):
            return
        if self._known != self._connection.version:
            self._known, self._written = self._connection.version, {}
        for name, feed in sorted(resources.feeds.items()):
            self._follow(feed, now)
            self._keepers[name].poll(now, record)

    def _follow(self, feed: Resource[FeedSpec], now: float) -> None:
        """Write its configuration; a recorder with an older one is restarted."""
        text = msgspec.json.encode(self._config(feed))
        if self._written.get(feed.name) == text:
            return
        write_private(self._folder.config(_process_name(feed.name)), text.decode())
        self._written[feed.name] = text
        if feed.name in self._keepers:
            self._keepers[feed.name].restart(now)
        else:
            self._keepers[feed.name] = self._keeper(feed.name)

    def _config(self, feed: Resource[FeedSpec]) -> RecorderConfig:
        root = self._folder.path
        figures = str(self._figures_file(feed.name))
        return recorder_config(feed, root, str(self._connection.file), figures=figures, serving=self._serving())

    def _serving(self) -> ServingConfig:
        """The key that all applications of this user share may read all feeds; clients that the fleet names, theirs."""
        if self._plain:
            return ServingConfig(SERVED_AT)
        pair = keys.key_pair(self._folder, keys.RECORDER)
        return ServingConfig(SERVED_AT, key=str(pair.secret_file), readers=str(self._folder.feed_readers))

    def _keeper(self, name: str) -> Sidecar:
        command = recorder_command(self._folder.config(_process_name(name)))
        return Sidecar(self._folder, _process_name(name), "Recorder", lambda: command)

    def _figures_file(self, name: str) -> Path:
        return self._folder.config(f"{_process_name(name)}-figures")

    def stop(self) -> None:
        """End them; each first commits what it holds."""
        self._end(list(self._keepers.values()))
        self._keepers = {}

    def _end(self, keepers: Sequence[Sidecar]) -> None:
        until = time.monotonic() + STOP_SECONDS
        for keeper in keepers:
            keeper.terminate()
        for keeper in keepers:
            keeper.stop(until)

    def figures(self, now_us: int) -> dict[str, RecorderFigures]:
        """The figures of the recorders that run, by feed. `now_us`: microseconds since 1970."""
        told = {name: self._fresh_figures(name, now_us) for name in self._keepers}
        return {name: figures for name, figures in told.items() if figures is not None}

    def _fresh_figures(self, name: str, now_us: int) -> RecorderFigures | None:
        figures = read_figures(self._figures_file(name))
        is_running = figures is not None and is_fresh(
            (figures.pid, figures.at_us), self._keepers[name].status(), now_us
        )
        return figures if is_running else None

    def status(self, name: str, item: Mapping[str, Any], now_us: int, text: str) -> dict[str, Any]:
        """The status of a Feed. `text`: now, as RFC 3339."""
        kept = self._keepers[name].status() if name in self._keepers else {}
        figures = read_figures(self._figures_file(name))
        found = {} if figures is None else figures_status(figures)
        if figures is not None and not is_fresh((figures.pid, figures.at_us), kept, now_us):
            figures = None
        condition = recording_condition(figures, ProgramState.of_process(kept))
        generation = int(item["metadata"].get("generation", 1))
        return {"observedGeneration": generation, **found, **kept, **merged_conditions(item, [condition], text)}


def recorder_command(config: Path) -> Sequence[str]:
    """The command that starts this installation's recorder."""
    return (sys.executable, "-m", "plimsoll.feeds", "--config", str(config), "--parent-pid", str(os.getpid()))


def _process_name(feed: str) -> str:
    return f"recorder-{feed}"
