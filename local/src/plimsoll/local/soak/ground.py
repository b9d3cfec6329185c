"""A fleet whose brokers this process starts itself, so that it may kill, freeze and start again each of them.

There is no supervisor: nothing comes back unless it is started. Every broker ends with this process.
"""

from __future__ import annotations

import contextlib
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
from plimsoll.core.config import BrokerConfig, Limits, Peer
from plimsoll.core.spec import Document, Resources, parse, plan, wanted_ports
from plimsoll.local import keys, ports
from plimsoll.local.demo.fleet import Broker, Entry
from plimsoll.local.home import FleetFolder
from plimsoll.local.processes import Process, broker_command, how_it_ended
from plimsoll.mediator.control import Answered, ControlPlane, Curve, Members, Said

READY_SECONDS = 30.0
STOP_SECONDS = 15.0
ASK_SECONDS = 0.5
MIB = 1024 * 1024


class GroundError(RuntimeError):
    """A broker did not come up, or ended by itself."""


@dataclass(frozen=True)
class Shape:
    """Clusters with their numbers of edges, in a row of neighbours; and what each edge may send, None for any amount.

    `emulated`: seconds that a publication occupies an edge, and seconds more per subscription.
    """

    clusters: Mapping[str, int]
    edge_bytes_per_second: int | None = None
    emulated: tuple[float, float] | None = None

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
            if before is not None:
                spec["neighbors"] = [{"name": before}]
            items.append(_object("BrokerCluster", name, spec))
        return parse(Document(item, "<soak>") for item in items)


def _object(kind: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "plimsoll.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": dict(spec),
    }  # fmt: skip


class Ground:
    """Brokers by name, with the control plane to them. Use it in a `with`: no broker is left when that ends.

    `change`: what is made of the limits of each broker, as a shorter lease.
    """

    def __init__(self, folder: Path, shape: Shape, change: Callable[[Limits], Limits] = lambda limits: limits) -> None:
        resources = shape.resources(folder.name)
        self.folder = FleetFolder(folder)
        self.folder.make()
        addresses = ports.choose(str(folder), wanted_ports(resources), {})
        names = {config.name: config.role for config in plan(resources, addresses)}
        keys.authorize(self.folder, sorted(names.items()))
        pairs = {name: keys.pair(self.folder, name) for name in names}
        addresses = {
            name: replace(
                address, public_key=pairs[name].public, secret_key_file=str(pairs[name].secret_file),
                authorized_keys_file=str(self.folder.authorized_keys),
            )
            for name, address in addresses.items()
        }  # fmt: skip
        self.configs: dict[str, BrokerConfig] = {
            config.name: msgspec.structs.replace(config, limits=change(config.limits))
            for config in plan(resources, addresses)
        }
        self.brokers = {
            name: Broker(name, config.role, "", _peer(config, pairs[name].public))
            for name, config in self.configs.items()
        }
        self.statuses: dict[str, Mapping[str, Any]] = {}
        self._processes: dict[str, Process] = {}
        self._frozen: set[str] = set()
        self._cordoned: frozenset[str] = frozenset()
        self._ask_at = 0.0
        own = keys.pair(self.folder, keys.SUPERVISOR)
        self.curve = Curve(own.public, own.secret())
        # An epoch of zero commands nothing: this line listens, asks, and says who belongs to a cluster.
        self.control = ControlPlane(keys.SUPERVISOR, self.curve, 0)

    def __enter__(self) -> Ground:
        for name in self.brokers:
            self.start(name)
        for broker in self.brokers.values():
            self.control.dial(broker.peer, broker.role)
        self._await_ready()
        return self

    def __exit__(self, *ended: object) -> None:
        self.control.close()
        self._end_in_order(hurry=ended[0] is not None)

    # -- who is there

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

    def entry(self, head: str | None = None) -> Entry:
        """How clients come in."""
        peer = self.brokers[head or self.heads[0]].peer
        return Entry(peer.data, peer.public_key, keys.pair(self.folder, keys.CLIENTS).secret())

    def epoch_of(self, broker: str) -> int:
        """Its last known one, 0 if it has never answered."""
        return int(self.statuses.get(broker, {}).get("epoch", 0))

    # -- processes

    def start(self, name: str) -> None:
        """Run a broker that does not run."""
        file = self.folder.config(name)
        keys.write_private(file, broker_config.encode(self.configs[name]).decode())
        self._processes[name] = Process(broker_command(file), self.folder.log(name))
        self.statuses.pop(name, None)

    def pid(self, broker: str) -> int | None:
        """Of its process, None while it has none."""
        process = self._processes.get(broker)
        return process.pid if process is not None and process.ended() is None else None

    def kill(self, broker: str) -> None:
        """SIGKILL."""
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
        """Raise `GroundError` if a broker has ended without being told to."""
        for name, process in self._processes.items():
            code = process.ended()
            if code is not None and code != -signal.SIGKILL:
                raise GroundError(f"{name} {how_it_ended(code)}: {process.last_words()}")

    def keep_logs(self, folder: Path) -> None:
        """Move the logs of a fleet that has stopped, and delete the rest of its state, keys included."""
        folder.mkdir(parents=True, exist_ok=True)
        for log in sorted((self.folder.path / "logs").iterdir()):
            shutil.move(log, folder / log.name)
        shutil.rmtree(self.folder.path)

    # -- what they say

    def cordon(self, edges: Collection[str]) -> None:
        """From the next question on these take no newcomers."""
        self._cordoned, self._ask_at = frozenset(edges), 0.0

    def ask(self) -> None:
        """Ask every broker for its status; heads learn which edges are theirs."""
        for name, broker in self.brokers.items():
            members = None
            if broker.role == "head":
                edges = self.edges(name)
                members = Members(tuple(edges), tuple(sorted(self._cordoned.intersection(edges))))
            self.control.ask(name, members)

    def poll(self, seconds: float) -> Iterator[Said]:
        """What brokers say within so many seconds; statuses are kept, and asked for again and again."""
        until = time.monotonic() + seconds
        while True:
            now = time.monotonic()
            if now >= self._ask_at:
                self._ask_at = now + ASK_SECONDS
                self.ask()
            for said in self.control.poll(max(0.0, until - now)):
                if isinstance(said, Answered):
                    self.statuses[said.broker] = said.status
                yield said
            if time.monotonic() >= until:
                return

    def _await_ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while not all(self.statuses.get(name, {}).get("ready") for name in self.brokers):
            self.check()
            if time.monotonic() > deadline:
                waiting = [name for name in self.brokers if not self.statuses.get(name, {}).get("ready")]
                raise GroundError(f"not ready after {READY_SECONDS:g} s: {', '.join(waiting)}; see {self.folder.path}")
            self._ask_at = 0.0
            for _ in self.poll(0.1):
                pass

    def _end_in_order(self, hurry: bool) -> None:
        """Edges first, then heads; whoever does not leave in time is ended."""
        for broker in list(self._frozen):
            self.thaw(broker)
        for role in ("edge", "head"):
            wave = [self._processes[name] for name in self.brokers if self.brokers[name].role == role]
            for process in wave:
                if hurry:
                    process.kill()
                process.terminate()
            deadline = time.monotonic() + STOP_SECONDS
            while any(process.ended() is None for process in wave) and time.monotonic() < deadline:
                time.sleep(0.02)
            for process in wave:
                process.kill()


def _peer(config: BrokerConfig, public_key: str) -> Peer:
    return Peer(name=config.name, data=config.advertised, control=config.control, public_key=public_key)


def remove(folder: Path) -> None:
    """Delete what an earlier run has left."""
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(folder)
