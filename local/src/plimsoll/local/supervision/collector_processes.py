"""Collectors of telemetry as processes of this machine: configured, kept running, and ended after the brokers.

Their data is in the fleet's folder, in `telemetry/`. Their faults affect neither brokers nor sessions.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from plimsoll.core.config import LinkSecurity
from plimsoll.core.spec.types.fleet import BrokerFleetSpec
from plimsoll.local import keys
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import ChangesExpiredError, ObjectStore
from plimsoll.local.storage.state_files import write_private
from plimsoll.local.supervision.sidecar import RecordFleetEvent, Sidecar
from plimsoll.local.supervision.supervised_broker import SupervisedBroker
from plimsoll.mediator.session_objects import SESSION_KIND as SESSION
from plimsoll.telemetry.client.outcome_sender import OutcomeSender
from plimsoll.telemetry.client.snapshot_poller import PollResult, SnapshotPoller
from plimsoll.telemetry.config import CollectorConfig, MonitoredCluster, encode_config
from plimsoll.telemetry.session_rows import is_over
from plimsoll.telemetry.snapshot import SnapshotRequirements

TELEMETRY_FOLDER = "telemetry"
"""Their data, below the folder of the fleet."""
STOP_SECONDS = 5.0
"""How long a collector may take to write its pending rows."""


def collector_command(config: Path) -> Sequence[str]:
    """The command that starts this installation's collector."""
    return (sys.executable, "-m", "plimsoll.telemetry", "--config", str(config), "--parent-pid", str(os.getpid()))


class CollectorProcesses:
    """The collectors of one fleet, if any. `now` is seconds of one monotonic clock."""

    def __init__(self, folder: FleetFolder, fleet: str, spec: BrokerFleetSpec) -> None:
        self._folder, self._fleet, self._spec = folder, fleet, spec
        self.names = keys.collector_names(spec.telemetry.collectors.replicas)
        self._keepers = {name: self._keeper(name) for name in self.names}
        self._written: dict[str, bytes] = {}
        self._sent_version = 0
        self._sender: OutcomeSender | None = None
        self._asker: SnapshotPoller | None = None

    @property
    def data(self) -> Path:
        """The folder of their files."""
        return self._folder.path / TELEMETRY_FOLDER

    def write_configs(self, brokers: Iterable[SupervisedBroker]) -> None:
        """Take the brokers that run or should run; collectors read them from their configuration files.

        Raises `StateWriteError`; the next call writes what is missing.
        """
        clusters = collected_clusters(brokers)
        for index, name in enumerate(self.names):
            text = encode_config(self._config(index, name, clusters))
            if self._written.get(name) != text:
                write_private(self._folder.config(name), text.decode())
                self._written[name] = text

    def poll(self, now: float, record: RecordFleetEvent) -> None:
        """Keep them running, and poll them."""
        if self._asker is None and self._written:
            self._asker = SnapshotPoller(self._serving_addresses, SnapshotRequirements(self._fleet))
        for name, keeper in self._keepers.items():
            if name in self._written:
                keeper.poll(now, record)

    def send_ended_sessions(self, store: ObjectStore) -> None:
        """Send them the sessions that have ended since the last call; raises `StateWriteError`, and then sends none."""
        if not self.names:
            return
        try:
            changes = store.changes(self._sent_version, SESSION) if self._sent_version else None
        except ChangesExpiredError:  # send all of them: a collector counts repeats, and keeps none
            changes = None
        if changes is None:
            version, sessions = store.objects(SESSION)
        else:
            sessions = [change.object for change in changes]
            version = max([self._sent_version, *(change.version for change in changes)])
        for session in sessions:
            if is_over(session):
                self._sender = self._sender or OutcomeSender(self._first_address, self._token())
                self._sender.enqueue(session)
        self._sent_version = version

    def stop(self) -> None:
        """End them; each first writes its pending rows."""
        if self._sender is not None:
            self._sender.stop()
        if self._asker is not None:
            self._asker.stop(0.0)  # without waiting for a request under way
        until = time.monotonic() + STOP_SECONDS
        for keeper in self._keepers.values():
            keeper.terminate()
        for keeper in self._keepers.values():
            keeper.stop(until)

    @property
    def observed(self) -> PollResult | None:
        """Their last poll; None before the first answer."""
        return self._asker.result if self._asker is not None else None

    def status(self) -> dict[str, Any]:
        """Their part of the fleet's status."""
        return {
            "folder": str(self.data),
            "collectors": [
                {"name": name, **keeper.status(), **self._address(name)} for name, keeper in self._keepers.items()
            ],
            **(self.observed.status if self.observed is not None else {}),
        }

    def _keeper(self, name: str) -> Sidecar:
        command = collector_command(self._folder.config(name))
        return Sidecar(self._folder, name, "Collector", lambda: command)

    def _config(self, index: int, name: str, clusters: Mapping[str, MonitoredCluster]) -> CollectorConfig:
        spec, scale = self._spec, self._spec.time_scale_percent / 100
        pair = None if spec.security.plain else keys.key_pair(self._folder, name)
        return CollectorConfig(
            name=name,
            fleet=self._fleet,
            folder=str(self.data),
            index=index,
            collectors=len(self.names),
            interval_seconds=spec.telemetry.collectors.interval.seconds,
            retain_seconds=spec.telemetry.collectors.retain.seconds,
            report_seconds=spec.telemetry.report_interval.seconds * scale,
            http="127.0.0.1:0",
            address_file=str(self._address_file(name)),
            token_file=str(self._token_file()),
            security=LinkSecurity(
                plain=pair is None, secret_key_file=str(pair.secret_file) if pair is not None else ""
            ),
            clusters=dict(clusters),
        )

    def _address_file(self, name: str) -> Path:
        return self.data / f"{name}.address"

    def _address(self, name: str) -> dict[str, str]:
        try:
            return {"http": json.loads(self._address_file(name).read_bytes())["http"]}
        except FileNotFoundError:  # it has not written its address yet
            return {}

    def _first_address(self) -> tuple[str, int] | None:
        return next(iter(self._serving_addresses()), None)

    def _serving_addresses(self) -> list[tuple[str, int]]:
        """The addresses of collectors that serve."""
        addresses = (self._address(name).get("http", "").rpartition(":") for name in self.names)
        return [(host, int(port)) for host, _, port in addresses if port]

    def _token_file(self) -> Path:
        file = self._folder.keys / "telemetry.token"
        if not file.exists():
            write_private(file, secrets.token_urlsafe(24) + "\n")
        return file

    def _token(self) -> str:
        return self._token_file().read_text(encoding="ascii").strip()


def collected_clusters(brokers: Iterable[SupervisedBroker]) -> dict[str, MonitoredCluster]:
    """The clusters with their heads and all of their expected brokers."""
    staying = [broker for broker in brokers if not broker.stopping]
    members: dict[str, list[str]] = {}
    for broker in staying:
        members.setdefault(broker.config.cluster, []).append(broker.name)
    return {
        broker.config.cluster: MonitoredCluster(head=broker.peer, brokers=tuple(sorted(members[broker.config.cluster])))
        for broker in sorted(staying, key=lambda each: each.name)
        if broker.config.role == "head"
    }
