"""Recorders of feeds as processes of this machine: one for each Feed, kept running, and ended before the brokers.

A dataset whose feed has no path of its own is in the fleet's folder, in `feeds/NAME`. A recorder that fails affects
neither brokers nor sessions; it starts again behind its last commit.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from plimsoll.core.predicates import ParseError
from plimsoll.core.predicates import parse as parse_subscription
from plimsoll.core.spec import InvalidResourcesError, Resource, Resources
from plimsoll.core.spec.kinds import FeedSpec
from plimsoll.core.spec.status.conditions import Condition
from plimsoll.feeds.config import RecorderConfig, RecorderFigures, read_figures
from plimsoll.feeds.names import subscriber_name
from plimsoll.feeds.schema import declared
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.state_files import write_private
from plimsoll.local.supervision.application_connection import ApplicationConnection
from plimsoll.local.supervision.sidecar import RecordFleetEvent, Sidecar
from plimsoll.mediator.resource_status import merged_conditions

RECORDING: Final = "Recording"
STOP_SECONDS: Final = 5.0
"""How long a recorder may take to commit what it holds."""
FIGURES_FRESH_SECONDS: Final = 15.0
"""A recorder writes its figures each second; with older ones it does not record."""


def check_feeds(resources: Resources) -> None:
    """Raises InvalidResourcesError for subscriptions that cannot be read, with their columns."""
    problems = []
    for _, feed in sorted(resources.feeds.items()):
        try:
            parse_subscription(feed.spec.subscription)
        except ParseError as error:
            remedy = "Write one as [class,=,'STOCK'],[price,>,25.0]."
            problems.append(feed.problem(("spec", "subscription"), str(error), remedy))
    if problems:
        raise InvalidResourcesError(problems)


def dataset_path(folder: FleetFolder, feed: Resource[FeedSpec]) -> Path:
    """Where a feed is recorded."""
    return folder.path / (feed.spec.path or f"feeds/{feed.name}")


class FeedProcesses:
    """The recorders of one fleet. `now` is seconds of one monotonic clock."""

    def __init__(self, folder: FleetFolder) -> None:
        self._folder = folder
        self._keepers: dict[str, Sidecar] = {}
        self._written: dict[str, bytes] = {}
        self._connection = ApplicationConnection(folder, "recorders-connection")
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
        spec, path = feed.spec, str(dataset_path(self._folder, feed))
        age, size = spec.retain.age, spec.retain.size
        return RecorderConfig(
            feed=feed.name, subscriber=subscriber_name(path), subscription=spec.subscription, path=path,
            connection=str(self._connection.file), figures=str(self._figures_file(feed.name)),
            schema=declared(spec.schema), commit_seconds=spec.commit_interval.seconds,
            retain_seconds=None if age is None else age.seconds, retain_bytes=None if size is None else int(size.value),
        )  # fmt: skip

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

    def status(self, name: str, item: Mapping[str, Any], now_us: int, text: str) -> dict[str, Any]:
        """The status of a Feed. `text`: now, as RFC 3339."""
        kept = self._keepers[name].status() if name in self._keepers else {}
        figures = read_figures(self._figures_file(name))
        found = {} if figures is None else _figures_status(figures)
        condition = recording_condition(figures, kept, now_us)
        generation = int(item["metadata"].get("generation", 1))
        return {"observedGeneration": generation, **found, **kept, **merged_conditions(item, [condition], text)}


def recorder_command(config: Path) -> Sequence[str]:
    """The command that starts this installation's recorder."""
    return (sys.executable, "-m", "plimsoll.feeds", "--config", str(config), "--parent-pid", str(os.getpid()))


def recording_condition(figures: RecorderFigures | None, process: Mapping[str, Any], now_us: int) -> Condition:
    """Whether a recorder records, from its figures and from what is known of its process."""
    if "pid" not in process:
        end = process.get("lastEnd", "")
        if end:
            return Condition(RECORDING, "False", "RecorderExited", f"the recorder has {end}; its log says why")
        return Condition(RECORDING, "False", "RecorderStarting", "the recorder is about to be started")
    if figures is None or figures.pid != process["pid"] or now_us - figures.at_us > FIGURES_FRESH_SECONDS * 1e6:
        return Condition(RECORDING, "False", "RecorderStarting", "the recorder runs and is not attached yet")
    return Condition(
        RECORDING, "True", "RecorderAttached", f"{figures.rows} rows and {figures.dead_letters} dead letters"
    )


def _figures_status(figures: RecorderFigures) -> dict[str, Any]:
    at = datetime.fromtimestamp(figures.committed_us // 1_000_000, UTC)
    return {
        "path": figures.path, "received": figures.received, "rows": figures.rows, "deadLetters": figures.dead_letters,
        "expiredRows": figures.expired_rows, "gaps": figures.gaps, "files": figures.files,
        "sizeBytes": figures.size_bytes, "commits": figures.commits,
        "committedAt": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }  # fmt: skip


def _process_name(feed: str) -> str:
    return f"recorder-{feed}"
