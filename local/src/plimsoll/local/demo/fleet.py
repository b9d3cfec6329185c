"""The demo's fleet: started as `plimsoll up` starts one, observed through the control sockets of its brokers.

Its supervisor is a process of its own that ends with this one, and all brokers with it.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plimsoll.core.config import Peer, Role
from plimsoll.core.spec import Resources
from plimsoll.local import keys, ports, runtime
from plimsoll.local.home import FleetFolder, Lock
from plimsoll.local.processes import Process, how_it_ended
from plimsoll.local.store import Event, MissingError, Store
from plimsoll.mediator.control import Answered, ControlPlane, Curve, Reported, Said, Told

READY_SECONDS = 60.0
STOP_SECONDS = 30.0
ASK_EARLY_SECONDS = 0.1
ASK_SECONDS = 5.0
"""A head forgets to whom it reports when it has not heard from them for longer."""


class FleetError(RuntimeError):
    """The fleet did not come up, or could not be stopped in order."""


@dataclass(frozen=True)
class Broker:
    """One broker as the status of its object tells of it."""

    name: str
    role: Role
    profile: str
    peer: Peer


@dataclass(frozen=True)
class Entry:
    """What a client needs to come in: where the head is, its public key, and the client's own secret one.

    Keys are empty on plain links.
    """

    endpoint: str
    head_key: str = ""
    own_secret_key: str = field(default="", repr=False)


class Fleet:
    """One fleet in a folder of its own. `stop` it, whatever happens."""

    def __init__(self, folder: FleetFolder, resources: Resources) -> None:
        self._folder = folder
        self._plain = resources.fleet.spec.security.plain
        self.brokers: dict[str, Broker] = {}
        self.heard: Counter[str] = Counter()
        """What brokers have said to this process, by kind; it only watches."""
        self._ask_at, self._heard = 0.0, False
        self._control: ControlPlane | None = None
        folder.make()
        with Lock(folder):
            ports.check(resources)
            runtime.prepare(folder, resources)
        self._process = Process([sys.executable, "-m", "plimsoll.local", str(folder.path)], self.log)

    @property
    def log(self) -> Path:
        """The supervisor's own."""
        return self._folder.path / "logs" / "supervisor.log"

    def await_ready(self) -> None:
        """Wait until every broker answers, then listen to their reports; raises `FleetError`."""
        deadline = time.monotonic() + READY_SECONDS
        while not self._is_ready():
            code = self._process.ended()
            if code is not None:
                raise FleetError(f"the fleet did not start: {self._process.last_words() or how_it_ended(code)}")
            if time.monotonic() > deadline:
                raise FleetError(f"the fleet was not ready after {READY_SECONDS:g} s; see {self.log.parent}")
            time.sleep(0.05)
        with Store(self._folder.store) as store:
            self.brokers = {broker.name: broker for broker in _brokers(store)}
        self._control = ControlPlane(keys.SUPERVISOR, self._curve(), 0)  # it commands nothing
        for broker in self.brokers.values():
            self._control.dial(broker.peer, broker.role)

    def entry(self) -> Entry:
        """How clients reach the first head."""
        head = next(broker for broker in self.brokers.values() if broker.role == "head")
        if self._plain:
            return Entry(head.peer.data)
        own = keys.pair(self._folder, keys.CLIENTS)
        return Entry(head.peer.data, head.peer.public_key, own.secret())

    def reports(self, seconds: float) -> Iterator[Mapping[str, Any]]:
        """Load reports that come within so many seconds; each broker sends one per report interval."""
        assert self._control is not None, "await_ready comes first"  # noqa: S101
        until = time.monotonic() + seconds
        while (now := time.monotonic()) < until:
            if now >= self._ask_at:
                self._ask_at = now + (ASK_SECONDS if self._heard else ASK_EARLY_SECONDS)
                for name in self.brokers:
                    self._control.ask(name)
            for said in self._control.poll(until - now):
                self.heard[_kind(said)] += 1
                if isinstance(said, Reported):
                    self._heard = True
                    yield said.report

    def pid(self, broker: str) -> int | None:
        """The process of a broker, or None while it has none."""
        known = self.brokers[broker]
        with Store(self._folder.store) as store:
            if known.role == "edge":
                status = store.get("EdgeBroker", broker)["status"]
            else:
                clusters = store.objects("BrokerCluster")[1]
                status = next(one["status"]["head"] for one in clusters if one["status"]["head"]["name"] == broker)
        found = status.get("pid")
        return None if found is None else int(found)

    def sessions(self) -> list[dict[str, Any]]:
        """All LoadBalancingSession objects as they are now."""
        with Store(self._folder.store) as store:
            return store.objects("LoadBalancingSession")[1]

    def deaths(self) -> list[str]:
        """Each end of a broker that nobody asked for, and the supervisor's own."""
        with Store(self._folder.store) as store:
            ends = [_told(event) for event in store.events() if event.reason in ("Exited", "Killed")]
        code = self._process.ended()
        return ends if code is None else [*ends, f"supervisor {how_it_ended(code)}"]

    def stop(self, hurry: bool = False) -> list[str]:
        """End the fleet in order, edges first, or with `hurry` at once. Returns what went wrong in it, if anything."""
        if self._control is not None:
            self._control.close()
            self._control = None
        running = self._process.ended() is None
        self._process.terminate()
        deadline = time.monotonic() + STOP_SECONDS
        while self._process.ended() is None and time.monotonic() < deadline:
            time.sleep(0.02)
            if hurry:  # a second signal tells the supervisor not to wait for anything
                self._process.terminate()
        late = self._process.ended() is None
        self._process.kill()  # its brokers end with it
        if late:
            return [f"the fleet did not stop within {STOP_SECONDS:g} s and was ended"]
        return [] if running else ["the fleet's supervisor had ended before it was told to"]

    def keep_logs(self, folder: Path) -> None:
        """Move the logs of the fleet, which has stopped, and delete the rest of its state, keys included."""
        for log in sorted((self._folder.path / "logs").iterdir()):
            shutil.move(log, folder / log.name)
        shutil.rmtree(self._folder.path)
        with contextlib.suppress(OSError):  # others may have fleets beside it
            self._folder.path.parent.rmdir()

    def _is_ready(self) -> bool:
        with Store(self._folder.store) as store:
            try:
                status = store.get("BrokerFleet", self._folder.fleet).get("status", {})
            except MissingError:
                return False
        ready = any(item["type"] == "Ready" and item["status"] == "True" for item in status.get("conditions", []))
        return ready and status.get("supervisor", {}).get("pid") == self._process.pid

    def _curve(self) -> Curve | None:
        if self._plain:
            return None
        pair = keys.pair(self._folder, keys.SUPERVISOR)
        return Curve(pair.public, pair.secret())


def _kind(said: Said) -> str:
    """The name of the record that brought it."""
    if isinstance(said, Reported):
        return "Load"
    if isinstance(said, Told):
        return type(said.said).__name__
    return "StatusReply" if isinstance(said, Answered) else type(said).__name__


def _brokers(store: Store) -> Iterator[Broker]:
    """Heads first."""
    for item in store.objects("BrokerCluster")[1]:
        status = item["status"]["head"]
        yield _broker(status["name"], "head", status)
    for item in store.objects("EdgeBroker")[1]:
        yield _broker(item["metadata"]["name"], "edge", item["status"])


def _broker(name: str, role: Role, status: Mapping[str, Any]) -> Broker:
    ends = status["endpoints"]
    peer = Peer(name=name, data=ends["data"], control=ends["control"], public_key=ends["publicKey"])
    return Broker(name, role, str(status["profile"]), peer)


def _told(event: Event) -> str:
    """The head's events stand at its cluster and name it themselves."""
    return event.message if event.kind == "BrokerCluster" else f"{event.name}: {event.message}"
