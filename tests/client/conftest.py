"""A small fleet of real brokers for the library: one head and two edges as processes of this machine."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import zmq
from tests.ports import free_ports

from plimsoll.client import Address, ClientLimits, Connection, Curve, errors
from plimsoll.client.connection_file import connection_file_text
from plimsoll.core import config as configuration
from plimsoll.core.config import BrokerConfig, BrokerLimits, DeclaredGroup, LinkSecurity, PeerBroker
from plimsoll.core.transport.link import LinkLimits

CLUSTER = "c"
EDGES = ("e1", "e2")
MEDIATOR = "mover"
STARTED_SECONDS = 300.0


class Fleet:
    """Brokers as processes; they end with the fixture. `west`: a second cluster, of the head w and the edge x1."""

    def __init__(
        self,
        folder: Path,
        *,
        curve: bool = False,
        client: str = "*",
        west: bool = False,
        groups: tuple[DeclaredGroup, ...] = (),
        **limits: Any,
    ) -> None:
        self.client, self.groups = client, groups
        self.clusters = {"h": EDGES, "w": ("x1",)} if west else {"h": EDGES}
        # The lease is ten times what an edge takes to start: a subscriber that waits for one keeps it.
        self.limits = BrokerLimits(lease_seconds=60.0, dead_seconds=2.0, heartbeat_seconds=0.5, **limits)
        self.folder = folder
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        names = tuple(chain.from_iterable((head, *edges) for head, edges in self.clusters.items()))
        ports = free_ports(2 * len(names))
        self.data = {name: f"tcp://127.0.0.1:{ports[2 * i]}" for i, name in enumerate(names)}
        self.control = {name: f"tcp://127.0.0.1:{ports[2 * i + 1]}" for i, name in enumerate(names)}
        self.pairs = {name: zmq.curve_keypair() for name in (*names, "app", MEDIATOR)} if curve else {}
        if curve:
            self._write_keys()
        for name in names:
            self.start(name)

    @property
    def head(self) -> str:
        return self.data["h"]

    def _write_keys(self) -> None:
        for name, (_, secret) in self.pairs.items():
            (self.folder / f"{name}.key").write_bytes(secret + b"\n")
        roles = {"app": f"client {self.client}", MEDIATOR: f"mediator {MEDIATOR}"}
        for head, edges in self.clusters.items():
            roles |= {head: f"head {head}", **{edge: f"edge {edge}" for edge in edges}}
        lines = [f"{self.pairs[name][0].decode()} {role}\n" for name, role in roles.items()]
        (self.folder / "authorized").write_text("".join(lines))
        (self.folder / "head.pub").write_bytes(self.pairs["h"][0] + b"\n")

    def curve(self) -> Curve:
        return Curve(secret=self.folder / "app.key", server=self.folder / "head.pub")

    def connection_file(self) -> str:
        """The text of a connection file for this fleet."""
        if not self.pairs:
            return connection_file_text({CLUSTER: Address(self.head)}, None)
        public, secret = (key.decode() for key in self.pairs["app"])
        return connection_file_text({CLUSTER: Address(self.head, self.pairs["h"][0].decode())}, (public, secret))

    def peer(self, head: str) -> PeerBroker:
        key = self.pairs[head][0].decode() if self.pairs else ""
        return PeerBroker(name=head, data=self.data[head], control=self.control[head], public_key=key)

    def config(self, name: str) -> BrokerConfig:
        head = next(head for head, edges in self.clusters.items() if name in (head, *edges))
        others = () if name != head else tuple(self.peer(other) for other in self.clusters if other != head)
        security = LinkSecurity(plain=True)
        if self.pairs:
            security = LinkSecurity(
                secret_key_file=str(self.folder / f"{name}.key"), authorized_keys_file=str(self.folder / "authorized")
            )
        return BrokerConfig(
            name=name,
            role="head" if name == head else "edge",
            cluster=CLUSTER if head == "h" else head,
            data=self.data[name],
            control=self.control[name],
            head=None if name == head else self.peer(head),
            edges=self.clusters[head] if name == head else (),
            neighbors=others,
            groups=self.groups if name == head else (),
            limits=self.limits,
            security=security,
        )

    def start(self, name: str) -> None:
        path = self.folder / f"{name}.json"
        path.write_bytes(configuration.encode(self.config(name)))
        command = [sys.executable, "-m", "plimsoll.broker", "--config", str(path), "--leave-seconds", "5"]
        log = (self.folder / f"{name}.log").open("ab")
        self.processes[name] = subprocess.Popen(command, stderr=log, stdout=log)
        log.close()

    def kill(self, name: str) -> None:
        process = self.processes.pop(name)
        process.kill()
        process.wait(300)

    def leave(self, name: str) -> None:
        process = self.processes.pop(name)
        process.terminate()
        process.wait(300)

    def connection(self, head: str = "h", **options: Any) -> Connection:
        options.setdefault("limits", ClientLimits(link=LinkLimits(heartbeat_seconds=0.5, dead_seconds=2.0)))
        connection = Connection(self.data[head], security=self.curve() if self.pairs else "plain", **options)
        try:
            connection.wait_open(STARTED_SECONDS)
        except errors.WaitTimeoutError as error:
            connection.close(0.0)
            raise AssertionError(f"{error}\n{self.logs()}") from error
        return connection

    def logs(self) -> str:
        return "\n".join(path.read_text() for path in sorted(self.folder.glob("*.log")))

    def close(self) -> None:
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait(300)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Shared by a module's tests, which leave it as it was."""
    fleet = Fleet(tmp_path_factory.mktemp("fleet"))
    yield fleet
    fleet.close()


@pytest.fixture
def own_fleet(tmp_path: Path) -> Iterator[Callable[..., Fleet]]:
    """Makes fleets for one test, which may break them."""
    made: list[Fleet] = []

    def make(**options: Any) -> Fleet:
        made.append(Fleet(tmp_path, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def eventually() -> Callable[..., None]:
    """Wait for a condition, with a deadline."""

    def wait(what: Callable[[], object], seconds: float = 300.0) -> None:
        end = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < end, f"not so within {seconds} s"
            time.sleep(0.01)

    return wait
