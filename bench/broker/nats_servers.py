"""NATS servers with JetStream on this machine, one or three, and a run of publications through them."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.broker.nats_ends import STREAM, SUBJECT, NatsError, NatsLink, nats_publish, nats_sink
from bench.broker.processes import PATIENCE_SECONDS
from bench.broker.runs import DeliveryRun

PROGRAM = "PLIMSOLL_NATS"
BUILT = Path(__file__).parents[2] / ".venv/nats/nats-server"
MISSING = (
    f"there is no NATS server to compare with: run scripts/build_nats.sh, which needs Go, or let {PROGRAM} name one"
)


def find_program() -> str:
    """The server's program; empty if there is none."""
    named = os.environ.get(PROGRAM, "")
    if named:
        return named if os.access(named, os.X_OK) else ""
    return str(BUILT) if os.access(BUILT, os.X_OK) else shutil.which("nats-server") or ""


def configuration(name: str, folder: Path, port: int, routes: list[int], own_route: int, *, is_synced: bool) -> str:
    """The file of one server. `routes`: ports at which servers of a cluster talk; none: it is alone."""
    lines = [f"server_name: {name}", f'listen: "127.0.0.1:{port}"', f'log_file: "{folder / name}.log"']
    sync = "sync_interval: always, " if is_synced else ""
    lines.append(f'jetstream: {{ {sync}store_dir: "{folder / name}" }}')
    if routes:
        others = ", ".join(f'"nats://127.0.0.1:{each}"' for each in routes if each != own_route)
        lines.append(f'cluster: {{ name: bench, listen: "127.0.0.1:{own_route}", routes: [{others}] }}')
    return "\n".join(lines) + "\n"


class NatsServers:
    """Servers with file storage below a folder, and the stream of the run with a replica on each."""

    def __init__(self, program: str, folder: Path, count: int, *, is_synced: bool) -> None:
        self.folder, self.count = folder, count
        folder.mkdir(parents=True)
        ports = free_ports(2 * count)
        self.ports, routes = ports[:count], ports[count:] if count > 1 else []
        self._processes = []
        for i, port in enumerate(self.ports):
            file = folder / f"n{i}.conf"
            own = routes[i] if routes else 0
            file.write_text(configuration(f"n{i}", folder, port, routes, own, is_synced=is_synced))
            self._processes.append(subprocess.Popen([program, "-c", str(file)]))
        try:
            self.leader_port = self._make_stream()
        except BaseException:
            self.close()
            raise

    @property
    def pids(self) -> list[int]:
        return [each.pid for each in self._processes]

    def _make_stream(self) -> int:
        """Make the stream; returns the port of the server that leads it, at which a publisher is served best."""
        config = {
            "name": STREAM, "subjects": [SUBJECT], "storage": "file", "num_replicas": self.count,
            "max_bytes": 1 << 30, "discard": "old",
        }  # fmt: skip
        self._repeat(f"$JS.API.STREAM.CREATE.{STREAM}", config, lambda answer: True)
        if self.count == 1:
            return self.ports[0]
        found = self._repeat(f"$JS.API.STREAM.INFO.{STREAM}", {}, _is_complete)
        return self.ports[int(found["cluster"]["leader"].removeprefix("n"))]

    def _repeat(self, subject: str, request: dict[str, Any], fits: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Ask until the answer fits: servers that have just started have not found one another."""
        deadline, last = time.monotonic() + PATIENCE_SECONDS, ""
        while time.monotonic() < deadline:
            try:
                link = NatsLink(self.ports[0])
                try:
                    answer = link.ask(subject, request)
                finally:
                    link.close()
                if fits(answer):
                    return answer
                last = str(answer)
            except (OSError, NatsError) as error:
                last = str(error)
            time.sleep(0.1)
        raise TimeoutError(f"{subject}: {last}; the servers say:\n{self._said()}")

    def _said(self) -> str:
        return "\n".join(file.read_text()[-2000:] for file in sorted(self.folder.glob("*.log")))

    def close(self) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            try:
                process.wait(PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder)


def _is_complete(info: dict[str, Any]) -> bool:
    """Whether a stream has a leader, and replicas that follow it."""
    cluster = info.get("cluster", {})
    return bool(cluster.get("leader")) and all(each.get("current") for each in cluster.get("replicas", [{}]))


def free_ports(count: int) -> list[int]:
    """Ports of this machine that nothing listens at."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class JetStreamRun(DeliveryRun):
    """A publisher, servers and consumers."""

    def __init__(
        self, program: str, folder: Path, bodies: list[bytes], *, replicas: int, is_synced: bool, consumers: int,
        window: int,
    ) -> None:  # fmt: skip
        super().__init__()
        self.nats = NatsServers(program, folder, replicas, is_synced=is_synced)
        try:
            self.sink, _ = self.child(nats_sink, self.nats.ports, consumers)
            self.publisher, _ = self.child(nats_publish, self.nats.leader_port, bodies, window)
        except BaseException:
            self.nats.close()
            raise

    def servers(self) -> list[int]:
        return self.nats.pids

    def state(self) -> str:
        link = NatsLink(self.nats.ports[0])
        return str(link.ask(f"$JS.API.STREAM.INFO.{STREAM}", {})["state"])

    def close(self) -> None:
        super().close()
        self.nats.close()
