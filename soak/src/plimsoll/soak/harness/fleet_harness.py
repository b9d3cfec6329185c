"""A fleet whose brokers this process starts itself, so that it can kill, freeze and restart each of them.

There is no supervisor: a killed broker stays down until it is started again. Every broker ends with this process.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from plimsoll.core import config as broker_config
from plimsoll.core.config import BrokerConfig, BrokerLimits, PeerBroker
from plimsoll.core.spec import Resources, SourceDocument, broker_configs, parse, wanted_ports
from plimsoll.core.spec.broker_config import WantedPorts
from plimsoll.demo.fleet import DemoAccess, DemoBroker
from plimsoll.local import keys, ports
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.state_files import write_private
from plimsoll.local.supervision.child_process import ChildProcess, broker_command, describe_exit
from plimsoll.mediator.control_plane import ClusterEdges, ControlEvent, ControlPlane, MediatorKeyPair, StatusReceived
from plimsoll.soak.harness.head_pair import HeadPair

READY_SECONDS = 30.0
STOP_SECONDS = 15.0
ASK_SECONDS = 0.5


class FleetHarnessError(RuntimeError):
    """A broker was not ready in time, or ended without being killed."""


@dataclass(frozen=True)
class HarnessLayout:
    """A chain of clusters with their numbers of edges, and the output limit of each edge, None if unlimited.

    `disk_log`: the size of the log that heads keep on disk; None: in memory only.
    `has_standbys`: each head has one.
    `emulated`: the seconds that a publication occupies an edge, and the additional seconds per subscription.
    """

    clusters: Mapping[str, int]
    edge_bytes_per_second: int | None = None
    emulated: tuple[float, float] | None = None
    disk_log: str | None = None
    has_standbys: bool = False

    def resources(self, fleet: str) -> Resources:
        edge: dict[str, Any] = {"cpu": "1", "memory": "256Mi"}
        if self.edge_bytes_per_second is not None:
            edge["bandwidth"] = {"outputBytesPerSecond": str(self.edge_bytes_per_second)}
        if self.emulated is not None:
            base, per_subscription = (f"{round(seconds * 1e9)}ns" for seconds in self.emulated)
            edge["emulation"] = {"base": base, "perSubscription": per_subscription}
        names = list(self.clusters)
        items = [
            _object("BrokerFleet", fleet, {}),
            _object("HardwareProfile", "head", {"cpu": "1", "memory": "512Mi"}),
            _object("HardwareProfile", "edge", edge),
        ]
        for before, (name, edges) in zip([None, *names], self.clusters.items(), strict=False):
            spec: dict[str, Any] = {
                "head": {"profile": "head"},
                "edges": [{"name": f"{name}-{number}", "profile": "edge"} for number in range(1, edges + 1)],
            }
            if self.disk_log is not None:
                spec["head"]["log"] = {"disk": {"size": self.disk_log}}
            if self.has_standbys:
                spec["head"]["standby"] = 1
            if before is not None:
                spec["neighbors"] = [{"name": before}]
            items.append(_object("BrokerCluster", name, spec))
        return parse(SourceDocument(item, "<soak>") for item in items)


def _object(kind: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "plimsoll.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": dict(spec),
    }  # fmt: skip


class FleetHarness:
    """Brokers by name, and the control plane to them; a `with` starts and ends them.

    `change`: adjusts the limits of each broker, for example to a shorter lease.
    """

    def __init__(
        self, folder: Path, shape: HarnessLayout, change: Callable[[BrokerLimits], BrokerLimits] = lambda limits: limits
    ) -> None:
        resources = shape.resources(folder.name)
        self.folder = FleetFolder(folder)
        self.folder.make()
        addresses = ports.assign_addresses(str(folder), wanted_ports(resources), {})
        names = {config.name: config.role for config in broker_configs(resources, addresses)}
        keys.write_authorized_keys(self.folder, sorted(names.items()))
        pairs = {name: keys.key_pair(self.folder, name) for name in names}
        addresses = {
            name: replace(
                address, public_key=pairs[name].public, secret_key_file=str(pairs[name].secret_file),
                authorized_keys_file=str(self.folder.authorized_keys), log_directory=str(self.folder.head_log(name)),
            )
            for name, address in addresses.items()
        }  # fmt: skip
        self.configs: dict[str, BrokerConfig] = {
            config.name: msgspec.structs.replace(config, limits=change(config.limits))
            for config in broker_configs(resources, addresses)
        }
        self.brokers = {
            name: DemoBroker(name, config.role, "", _peer(config, pairs[name].public))
            for name, config in self.configs.items()
        }
        self.statuses: dict[str, Mapping[str, Any]] = {}
        self._processes: dict[str, ChildProcess] = {}
        self._pairs: dict[str, HeadPair] = {}
        self._frozen: set[str] = set()
        self._cordoned: frozenset[str] = frozenset()
        self._ask_at = 0.0
        own = keys.key_pair(self.folder, keys.SUPERVISOR)
        self.curve = MediatorKeyPair(own.public, own.secret())
        # Epoch 0 cannot command: this connection only receives, asks, and announces the members of clusters.
        self.control = ControlPlane(keys.SUPERVISOR, self.curve, 0)
        if shape.has_standbys:
            self._pairs = self._make_pairs({name: pairs[name].public for name in names})

    def _make_pairs(self, public_keys: Mapping[str, str]) -> dict[str, HeadPair]:
        names = [*self.configs, *map(ports.standby_of, self.heads)]
        taken = {name: ports.address_of(config.data, config.control) for name, config in self.configs.items()}
        wanted = dict.fromkeys(names, WantedPorts("", 0, 0))
        found = ports.assign_addresses(str(self.folder.path), wanted, taken)
        own = {name: found[ports.standby_of(name)] for name in self.heads}
        return {
            name: HeadPair(
                self.configs[name], public_keys[name], self.folder, self.control, (one.data, one.control)
            )
            for name, one in own.items()
        }  # fmt: skip

    def __enter__(self) -> FleetHarness:
        for name in self.brokers:
            self.start(name)
        for broker in self.brokers.values():
            self.control.dial(broker.peer, broker.role)
        self._await_ready()
        return self

    def __exit__(self, *ended: object) -> None:
        self.control.close()
        self._end_in_order(hurry=ended[0] is not None)

    # -- brokers and their addresses

    @property
    def heads(self) -> list[str]:
        return [name for name, broker in self.brokers.items() if broker.role == "head"]

    def edges(self, head: str | None = None) -> list[str]:
        """All edges, or those of one head."""
        return [
            name for name, config in self.configs.items() if config.role == "edge" and head in (None, config.head_name)
        ]

    def head_of(self, edge: str) -> str:
        return self.configs[edge].head_name

    def entry(self, head: str | None = None) -> DemoAccess:
        """The address and keys with which clients connect to a head."""
        peer = self.brokers[head or self.heads[0]].peer
        return DemoAccess(peer.data, peer.public_key, keys.key_pair(self.folder, keys.CLIENTS).secret())

    def epoch_of(self, broker: str) -> int:
        """The broker's last known epoch, 0 if it has never answered."""
        return int(self.statuses.get(broker, {}).get("epoch", 0))

    # -- processes

    def start(self, name: str) -> None:
        """Start a broker that is not running; a head with a standby comes back by itself."""
        if name in self._pairs:
            self._pairs[name].start()
            return
        file = self.folder.config(name)
        write_private(file, broker_config.encode(self.configs[name]).decode())
        self._processes[name] = ChildProcess(broker_command(file), self.folder.log(name))
        self.statuses.pop(name, None)

    def pid(self, broker: str) -> int | None:
        """The process id, None while the broker is not running."""
        if broker in self._pairs:
            return self._pairs[broker].pid
        process = self._processes.get(broker)
        return process.pid if process is not None and process.exit_code() is None else None

    def kill(self, broker: str) -> None:
        """SIGKILL; of a head with a standby to the process that leads."""
        if broker in self._pairs:
            self._pairs[broker].kill()
            return
        self._processes[broker].kill()
        self._frozen.discard(broker)

    def freeze(self, broker: str) -> None:
        """SIGSTOP."""
        if (pid := self.pid(broker)) is not None:
            os.kill(pid, signal.SIGSTOP)
            self._frozen.add(broker)

    def thaw(self, broker: str) -> None:
        """SIGCONT, if it is frozen."""
        if broker in self._frozen and (pid := self.pid(broker)) is not None:
            os.kill(pid, signal.SIGCONT)
        self._frozen.discard(broker)

    def check(self) -> None:
        """Raise `FleetHarnessError` if a broker has ended without being killed."""
        for name, process in self._processes.items():
            code = process.exit_code()
            if code is not None and code != -signal.SIGKILL:
                raise FleetHarnessError(f"{name} {describe_exit(code)}: {process.last_output_line()}")

    def keep_logs(self, folder: Path) -> None:
        """Move the logs of a fleet that has stopped, and delete the rest of its state, keys included."""
        folder.mkdir(parents=True, exist_ok=True)
        for log in sorted((self.folder.path / "logs").iterdir()):
            shutil.move(log, folder / log.name)
        shutil.rmtree(self.folder.path)

    # -- status

    def cordon(self, edges: Collection[str]) -> None:
        """Keep newcomers away from these edges; takes effect at the next query."""
        self._cordoned, self._ask_at = frozenset(edges), 0.0

    def ask(self) -> None:
        """Ask every broker for its status, and send each head the edges of its cluster."""
        for name, broker in self.brokers.items():
            members = None
            if broker.role == "head":
                edges = self.edges(name)
                members = ClusterEdges(tuple(edges), tuple(sorted(self._cordoned.intersection(edges))))
            self.control.ask(name, members)

    def poll(self, seconds: float) -> Iterator[ControlEvent]:
        """Events from brokers within `seconds`. Statuses are requested regularly, and kept."""
        until = time.monotonic() + seconds
        while True:
            now = time.monotonic()
            if now >= self._ask_at:
                self._ask_at = now + ASK_SECONDS
                self.ask()
            for each in self._pairs.values():
                each.poll()
            for event in self.control.poll(max(0.0, until - now)):
                if isinstance(event, StatusReceived):
                    if (answering := self._pairs.get(ports.head_of(event.broker))) is not None:
                        answering.on_status(event.broker, event.status)
                    self.statuses[event.broker] = event.status
                yield event
            if time.monotonic() >= until:
                return

    def _await_ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while not all(self.statuses.get(name, {}).get("ready") for name in self.brokers) or not all(
            pair.is_in_sync for pair in self._pairs.values()
        ):
            self.check()
            if time.monotonic() > deadline:
                waiting = [name for name in self.brokers if not self.statuses.get(name, {}).get("ready")]
                raise FleetHarnessError(
                    f"not ready after {READY_SECONDS:g} s: {', '.join(waiting)}; see {self.folder.path}"
                )
            self._ask_at = 0.0
            for _ in self.poll(0.1):
                pass

    def _end_in_order(self, hurry: bool) -> None:
        """End edges first, then heads; a broker that does not end in time is killed."""
        for broker in list(self._frozen):
            self.thaw(broker)
        for role in ("edge", "head"):
            if role == "head":
                for pair in self._pairs.values():
                    pair.head.kill()
            processes = [
                self._processes[name]
                for name in self.brokers
                if self.brokers[name].role == role and name in self._processes
            ]
            for process in processes:
                if hurry:
                    process.kill()
                process.terminate()
            deadline = time.monotonic() + STOP_SECONDS
            while any(process.exit_code() is None for process in processes) and time.monotonic() < deadline:
                time.sleep(0.02)
            for process in processes:
                process.kill()


def _peer(config: BrokerConfig, public_key: str) -> PeerBroker:
    return PeerBroker(name=config.name, data=config.advertised, control=config.control, public_key=public_key)
