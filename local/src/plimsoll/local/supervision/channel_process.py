"""The driver of channels as a process of this machine: one for all Channels of a fleet, with Spark in it.

A fleet may have a standby, a second process of the same program: which of the two runs the channels is decided by a
lock. It is started once the other one runs them, so that no two start Spark at one time.

Without Java or PySpark the fleet runs, the channels' condition says what is missing, and so does one event.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from plimsoll.channels.config import ChannelFigures, DriverConfig, DriverFigures, channel_definition, read_figures
from plimsoll.channels.names import COPIES_FOLDER
from plimsoll.channels.status import figures_status, running_condition
from plimsoll.core.config import PeerBroker
from plimsoll.core.spec import Resources
from plimsoll.feeds.object_path import store_environment
from plimsoll.feeds.status import ProgramState, is_fresh
from plimsoll.local import keys
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.state_files import write_private
from plimsoll.local.supervision.application_connection import ApplicationConnection
from plimsoll.local.supervision.process_session import kill_marked
from plimsoll.local.supervision.sidecar import RecordFleetEvent, Sidecar
from plimsoll.mediator.resource_status import merged_conditions
from plimsoll.sparkjobs.launch import local_process

STOP_SECONDS: Final = 8.0
"""How long a driver may take to end its batches and to hear of their results."""
STANDBY: Final = f"{keys.CHANNELS}-standby"
"""The name of a second process, and of its log; after a change of roles it runs the channels."""
MARK: Final = "PLIMSOLL_CHANNELS"
"""An environment variable of all processes of a driver: the folder that it works in."""


class ChannelProcess:
    """The driver of one fleet, if it has channels. `missing` names what this machine lacks; empty: nothing."""

    def __init__(
        self, folder: FleetFolder, *, plain: bool, missing: Callable[[], str] = local_process.missing_requirement
    ) -> None:
        self._folder, self._plain, self._missing = folder, plain, missing
        self._lack = ""
        self._connection = ApplicationConnection(folder, "channels-connection", keys.CHANNELS)
        self._written = b""
        self._sidecars: list[Sidecar] = []

    @property
    def data(self) -> Path:
        """The folder of the channels' ledgers."""
        return self._folder.path / "channels"

    def poll(self, now: float, resources: Resources, edges: Sequence[PeerBroker], record: RecordFleetEvent) -> None:
        """Start, restart and end the driver, as the channels say. Raises `StateWriteError`; the next call goes on."""
        if not resources.channels:
            self.stop()
            return
        if not self._sidecars and not self._has_spark(record):
            return
        if not self._connection.poll(now):
            return
        text = msgspec.json.encode(self._config(resources, edges))
        if text != self._written:  # the driver reads it again
            write_private(self._config_file, text.decode())
            self._written = text
        self._take_number(2 if resources.fleet.spec.datasets.spark.standby_driver else 1)
        for each in self._sidecars:
            others = [other for other in self._sidecars if other is not each and other.is_up]
            if each.is_up or not others or self.figures(time.time_ns() // 1000):
                each.poll(now, record)

    def _has_spark(self, record: RecordFleetEvent) -> bool:
        if not self._lack and (lack := self._missing()):
            self._lack = lack
            record("Warning", "ChannelNoSpark", f"no channel runs: {lack}")
        return not self._lack

    def _take_number(self, wanted: int) -> None:
        """Start or stop processes until there are `wanted`; of two, the one that runs the channels stays."""
        if len(self._sidecars) > wanted:
            figures = read_figures(self._figures_file)
            pids = [each.status().get("pid") for each in self._sidecars]
            kept = pids.index(figures.pid) if figures is not None and figures.pid in pids else 0
            self._sidecars.pop(1 - kept).stop()
        while len(self._sidecars) < wanted:
            names = {keys.CHANNELS, STANDBY} - {each.name for each in self._sidecars}
            self._sidecars.append(self._made(min(names)))

    def _made(self, name: str) -> Sidecar:
        self.data.mkdir(parents=True, exist_ok=True)
        mark = str(self.data.resolve())
        if not self._sidecars:
            kill_marked(MARK, mark)  # a Java virtual machine may outlive a driver that was killed
        command = (sys.executable, "-m", "plimsoll.channels", "--config", str(self._config_file),
                   "--parent-pid", str(os.getpid()))  # fmt: skip
        environment = {**local_process.job_environment(os.environ), **store_environment(os.environ), MARK: mark}
        return Sidecar(self._folder, name, "ChannelDriver", lambda: command, environment)

    @property
    def _config_file(self) -> Path:
        return self._folder.config(keys.CHANNELS)

    @property
    def _figures_file(self) -> Path:
        return self._folder.config("channels-figures")

    def _config(self, resources: Resources, edges: Sequence[PeerBroker]) -> DriverConfig:
        pair = None if self._plain else keys.key_pair(self._folder, keys.PARAMETERS)
        return DriverConfig(
            name=keys.PARAMETERS, folder=resources.fleet.spec.datasets.ledgers or str(self.data),
            scratch=str(self.data / COPIES_FOLDER), connection=str(self._connection.file),
            figures=str(self._figures_file), edges=tuple(sorted(edges, key=lambda each: each.name)),
            channels=tuple(
                channel_definition(each, resources.feeds, self._folder.path)
                for _, each in sorted(resources.channels.items())
            ),
            key="" if pair is None else str(pair.secret_file), role=str(self._folder.config("channels-role")),
        )  # fmt: skip

    def stop(self) -> None:
        """End it; its channels go on behind their last batches in the next life."""
        until = time.monotonic() + STOP_SECONDS
        for each in self._sidecars:
            each.terminate()
        for each in self._sidecars:
            each.stop(until)
        self._sidecars = []

    def _kept(self, figures: DriverFigures | None) -> dict[str, Any]:
        """The status of the driver: of two processes, that of the one that runs the channels, as its figures say."""
        pid = None if figures is None else figures.pid
        found = sorted(
            (each.status() for each in self._sidecars), key=lambda one: (one.get("pid") == pid, "pid" in one)
        )
        kept = {name: value for one in found for name, value in one.items()}
        for count in ("restarts", "killed"):
            if count in kept:
                kept[count] = sum(one.get(count, 0) for one in found)
        return kept

    def figures(self, now_us: int) -> Mapping[str, ChannelFigures]:
        """The figures of the channels, by name, if the driver runs. `now_us`: microseconds since 1970."""
        figures = read_figures(self._figures_file)
        if figures is None or not is_fresh((figures.pid, figures.at_us), self._kept(figures), now_us):
            return {}
        return figures.channels

    def status(self, name: str, item: Mapping[str, Any], now_us: int, text: str) -> dict[str, Any]:
        """The status of a Channel. `text`: now, as RFC 3339."""
        figures = read_figures(self._figures_file)
        kept = self._kept(figures)
        own = figures.channels.get(name) if figures is not None else None
        found = {} if own is None else figures_status(own)
        if figures is not None and not is_fresh((figures.pid, figures.at_us), kept, now_us):
            figures = None
        condition = running_condition(name, figures, ProgramState.of_process(kept), self._lack)
        generation = int(item["metadata"].get("generation", 1))
        return {"observedGeneration": generation, **found, **kept, **merged_conditions(item, [condition], text)}
