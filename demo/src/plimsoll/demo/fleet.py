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

from plimsoll.core.config import PeerBroker, Role
from plimsoll.core.spec import Resources
from plimsoll.local import keys, ports, runtime
from plimsoll.local.storage.fleet_folder import FleetFolder, FleetLock
from plimsoll.local.storage.object_store import ObjectEvent, ObjectMissingError, ObjectStore
from plimsoll.local.supervision.child_process import ChildProcess, describe_exit
from plimsoll.mediator.control_plane import (
    ControlEvent,
    ControlPlane,
    HeadMessageReceived,
    LoadReportReceived,
    StatusReceived,
)

READY_SECONDS = 180.0
STOP_SECONDS = 90.0
ASK_EARLY_SECONDS = 0.1
ASK_SECONDS = 5.0
"""A head forgets a receiver of its reports that has been silent for longer."""


class DemoFleetError(RuntimeError):
    """The fleet did not come up, or could not be stopped in order."""


@dataclass(frozen=True)
class DemoBroker:
    """One broker, from the status of its object."""

    name: str
    role: Role
    profile: str
    peer: PeerBroker


@dataclass(frozen=True)
class DemoAccess:
    """What a client needs to connect: the address of the head, its public key, and the client's own secret key.

    Keys are empty on plain links.
    """

    endpoint: str
    head_key: str = ""
    own_secret_key: str = field(default="", repr=False)


class DemoFleet:
    """One fleet in a folder of its own. `stop` it even after an error."""

    def __init__(self, folder: FleetFolder, resources: Resources) -> None:
        self._folder = folder
        self._plain = resources.fleet.spec.security.plain
        self.brokers: dict[str, DemoBroker] = {}
        self.received: Counter[str] = Counter()
        """Messages that brokers have sent to this process, by kind; it only watches."""
        self._ask_at, self._heard = 0.0, False
        self._control: ControlPlane | None = None
        folder.make()
        with FleetLock(folder):
            ports.check_ports(resources)
            runtime.prepare_store(folder, resources)
        self._process = ChildProcess([sys.executable, "-m", "plimsoll.local", str(folder.path)], self.log)

    @property
    def log(self) -> Path:
        """The process of the supervisor."""
        return self._folder.path / "logs" / "supervisor.log"

    def await_ready(self) -> None:
        """Wait until every broker answers, then listen to their reports; raises `DemoFleetError`."""
        deadline = time.monotonic() + READY_SECONDS
        while not self._is_ready():
            code = self._process.exit_code()
            if code is not None:
                raise DemoFleetError(
                    f"the fleet did not start: {self._process.last_output_line() or describe_exit(code)}"
                )
            if time.monotonic() > deadline:
                raise DemoFleetError(f"the fleet was not ready after {READY_SECONDS:g} s; see {self.log.parent}")
            time.sleep(0.05)
        with ObjectStore(self._folder.store) as store:
            self.brokers = {broker.name: broker for broker in _brokers_of(store)}
        self.watch()

    def watch(self) -> None:
        """Listen to all brokers; again after one has started again, since it reports to the newest watcher alone."""
        if self._control is not None:
            self._control.close()
        curve = keys.control_keys(self._folder, keys.SUPERVISOR, plain=self._plain)
        self._control = ControlPlane(keys.SUPERVISOR, curve, 0)  # it commands nothing
        for broker in self.brokers.values():
            self._control.dial(broker.peer, broker.role)

    def entry(self, name: str = "") -> DemoAccess:
        """How clients reach a head: the one of this name, or else the first."""
        head = next(broker for broker in self.brokers.values() if broker.role == "head" and name in ("", broker.name))
        if self._plain:
            return DemoAccess(head.peer.data)
        own = keys.key_pair(self._folder, keys.CLIENTS)
        return DemoAccess(head.peer.data, head.peer.public_key, own.secret())

    def reports(self, seconds: float) -> Iterator[Mapping[str, Any]]:
        """Load reports that arrive within `seconds`; each broker sends one per report interval."""
        assert self._control is not None, "await_ready comes first"  # noqa: S101  # for the type checker
        until = time.monotonic() + seconds
        while (now := time.monotonic()) < until:
            if now >= self._ask_at:
                self._ask_at = now + (ASK_SECONDS if self._heard else ASK_EARLY_SECONDS)
                for name in self.brokers:
                    self._control.ask(name)
            for said in self._control.poll(until - now):
                self.received[_message_name(said)] += 1
                if isinstance(said, LoadReportReceived):
                    self._heard = True
                    yield said.report

    def pid(self, broker: str) -> int | None:
        """The process of a broker, or None while it has none."""
        known = self.brokers[broker]
        with ObjectStore(self._folder.store) as store:
            if known.role == "edge":
                status = store.get("EdgeBroker", broker)["status"]
            else:
                clusters = store.objects("BrokerCluster")[1]
                status = next(one["status"]["head"] for one in clusters if one["status"]["head"]["name"] == broker)
        found = status.get("pid")
        return None if found is None else int(found)

    def sessions(self) -> list[dict[str, Any]]:
        """All LoadBalancingSession objects in their present state."""
        with ObjectStore(self._folder.store) as store:
            return store.objects("LoadBalancingSession")[1]

    def deaths(self) -> list[str]:
        """Each unrequested end of a broker, and of the supervisor itself."""
        with ObjectStore(self._folder.store) as store:
            ends = [_event_text(event) for event in store.events() if event.reason in ("Exited", "Killed")]
        code = self._process.exit_code()
        return ends if code is None else [*ends, f"supervisor {describe_exit(code)}"]

    def stop(self, hurry: bool = False) -> list[str]:
        """End the fleet in order, edges first, or at once with `hurry`. Returns what went wrong, if anything."""
        if self._control is not None:
            self._control.close()
            self._control = None
        running = self._process.exit_code() is None
        self._process.terminate()
        deadline = time.monotonic() + STOP_SECONDS
        while self._process.exit_code() is None and time.monotonic() < deadline:
            time.sleep(0.02)
            if hurry:  # a second signal makes the supervisor stop waiting
                self._process.terminate()
        late = self._process.exit_code() is None
        self._process.kill()  # its brokers end with it
        if late:
            return [f"the fleet did not stop within {STOP_SECONDS:g} s and was ended"]
        return [] if running else ["the fleet's supervisor ended before it was asked to"]

    def keep_logs(self, folder: Path) -> None:
        """Move the logs of the fleet, which has stopped, and delete the rest of its state, keys included."""
        for log in sorted((self._folder.path / "logs").iterdir()):
            shutil.move(log, folder / log.name)
        shutil.rmtree(self._folder.path)
        with contextlib.suppress(OSError):  # others may have fleets beside it
            self._folder.path.parent.rmdir()

    def _is_ready(self) -> bool:
        with ObjectStore(self._folder.store) as store:
            try:
                status = store.get("BrokerFleet", self._folder.fleet).get("status", {})
            except ObjectMissingError:  # the supervisor has not stored the fleet yet
                return False
        ready = any(item["type"] == "Ready" and item["status"] == "True" for item in status.get("conditions", []))
        return ready and status.get("supervisor", {}).get("pid") == self._process.pid


def _message_name(said: ControlEvent) -> str:
    """The name of the message."""
    if isinstance(said, LoadReportReceived):
        return "LoadUpdate"
    if isinstance(said, HeadMessageReceived):
        return type(said.said).__name__
    return "StatusReply" if isinstance(said, StatusReceived) else type(said).__name__


def _brokers_of(store: ObjectStore) -> Iterator[DemoBroker]:
    """Heads first."""
    for item in store.objects("BrokerCluster")[1]:
        status = item["status"]["head"]
        yield _broker_of(status["name"], "head", status)
    for item in store.objects("EdgeBroker")[1]:
        yield _broker_of(item["metadata"]["name"], "edge", item["status"])


def _broker_of(name: str, role: Role, status: Mapping[str, Any]) -> DemoBroker:
    ends = status["endpoints"]
    peer = PeerBroker(name=name, data=ends["data"], control=ends["control"], public_key=ends["publicKey"])
    return DemoBroker(name, role, str(status["profile"]), peer)


def _event_text(event: ObjectEvent) -> str:
    """The head's events are recorded at its cluster and name it themselves."""
    return event.message if event.kind == "BrokerCluster" else f"{event.name}: {event.message}"
