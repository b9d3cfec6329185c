"""Collectors of telemetry as processes of this machine: told whom to hear, kept running, ended after the brokers.

Their data lies below the fleet's folder, in `telemetry/`. Whatever happens to them, brokers and sessions go on.
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

from plimsoll.core.config import Security
from plimsoll.core.spec.fleets import BrokerFleetSpec
from plimsoll.local import keys
from plimsoll.local.brokers import Broker
from plimsoll.local.home import FleetFolder
from plimsoll.local.keeper import Keeper, Record
from plimsoll.local.store import ExpiredError, Store
from plimsoll.mediator.sessions import KIND as SESSION
from plimsoll.telemetry.asking import Asker, Known
from plimsoll.telemetry.config import CollectorConfig, Listened, encode
from plimsoll.telemetry.outcomes import is_over
from plimsoll.telemetry.sending import Sender
from plimsoll.telemetry.snapshot import Wanted

END_SECONDS = 5.0
"""A collector may take so long to write what waits."""


def collector_command(config: Path) -> Sequence[str]:
    """The collector of this installation."""
    return (sys.executable, "-m", "plimsoll.telemetry", "--config", str(config), "--parent-pid", str(os.getpid()))


class Collectors:
    """The collectors of one fleet; none, if it asks for none. `now` is seconds of one monotonic clock."""

    def __init__(self, folder: FleetFolder, fleet: str, spec: BrokerFleetSpec) -> None:
        self._folder, self._fleet, self._spec = folder, fleet, spec
        self.names = keys.collectors(spec.telemetry.collectors.replicas)
        self._keepers = {name: self._keeper(name) for name in self.names}
        self._told: dict[str, bytes] = {}
        self._sent_version = 0
        self._sender: Sender | None = None
        self._asker: Asker | None = None

    @property
    def data(self) -> Path:
        """Where their files are."""
        return self._folder.path / "telemetry"

    def show(self, brokers: Iterable[Broker]) -> None:
        """The brokers that run or should: collectors follow their files."""
        clusters = listened(brokers)
        for index, name in enumerate(self.names):
            text = encode(self._config(index, name, clusters))
            if self._told.get(name) != text:
                keys.write_private(self._folder.config(name), text.decode())
                self._told[name] = text

    def step(self, now: float, record: Record) -> None:
        """Keep them running, and ask them what they know."""
        if self._asker is None and self._told:
            self._asker = Asker(self._places, Wanted(self._fleet))
        for name, keeper in self._keepers.items():
            if name in self._told:
                keeper.step(now, record)

    def tell_sessions(self, store: Store) -> None:
        """Send them the sessions that have ended since the last call."""
        if not self.names:
            return
        try:
            changes = store.changes(self._sent_version, SESSION) if self._sent_version else None
        except ExpiredError:
            changes = None
        if changes is None:
            self._sent_version, sessions = store.objects(SESSION)
        else:
            sessions = [change.object for change in changes]
            self._sent_version = max([self._sent_version, *(change.version for change in changes)])
        for session in sessions:
            if is_over(session):
                self._sender = self._sender or Sender(self._where, self._token())
                self._sender.offer(session)

    def end(self) -> None:
        """End them; each writes what waits first."""
        if self._sender is not None:
            self._sender.stop()
        if self._asker is not None:
            self._asker.stop(0.0)  # nobody waits for what it is asking
        until = time.monotonic() + END_SECONDS
        for keeper in self._keepers.values():
            keeper.terminate()
        for keeper in self._keepers.values():
            keeper.end(until)

    @property
    def known(self) -> Known | None:
        """What they have said last; None before they have."""
        return self._asker.known if self._asker is not None else None

    def status(self) -> dict[str, Any]:
        """What status says of them."""
        return {
            "folder": str(self.data),
            "collectors": [
                {"name": name, **keeper.status(), **self._address(name)} for name, keeper in self._keepers.items()
            ],
            **(self.known.status if self.known is not None else {}),
        }

    def _keeper(self, name: str) -> Keeper:
        command = collector_command(self._folder.config(name))
        return Keeper(self._folder, name, "Collector", lambda: command)

    def _config(self, index: int, name: str, clusters: Mapping[str, Listened]) -> CollectorConfig:
        spec, scale = self._spec, self._spec.time_scale_percent / 100
        pair = None if spec.security.plain else keys.pair(self._folder, name)
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
            security=Security(plain=pair is None, secret_key_file=str(pair.secret_file) if pair is not None else ""),
            clusters=dict(clusters),
        )

    def _address_file(self, name: str) -> Path:
        return self.data / f"{name}.address"

    def _address(self, name: str) -> dict[str, str]:
        try:
            return {"http": json.loads(self._address_file(name).read_bytes())["http"]}
        except (OSError, ValueError):  # it has not said it yet
            return {}

    def _where(self) -> tuple[str, int] | None:
        return next(iter(self._places()), None)

    def _places(self) -> list[tuple[str, int]]:
        """Those that serve."""
        addresses = (self._address(name).get("http", "").rpartition(":") for name in self.names)
        return [(host, int(port)) for host, _, port in addresses if port]

    def _token_file(self) -> Path:
        file = self._folder.keys / "telemetry.token"
        if not file.exists():
            keys.write_private(file, secrets.token_urlsafe(24) + "\n")
        return file

    def _token(self) -> str:
        return self._token_file().read_text(encoding="ascii").strip()


def listened(brokers: Iterable[Broker]) -> dict[str, Listened]:
    """The clusters with their heads and all of their brokers that should be there."""
    staying = [broker for broker in brokers if not broker.stopping]
    members: dict[str, list[str]] = {}
    for broker in staying:
        members.setdefault(broker.config.cluster, []).append(broker.name)
    return {
        broker.config.cluster: Listened(head=broker.peer, brokers=tuple(sorted(members[broker.config.cluster])))
        for broker in sorted(staying, key=lambda each: each.name)
        if broker.config.role == "head"
    }
