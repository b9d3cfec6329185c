"""Resident memory of a head whose log is full, beside the memory limit of its profile: `python -m bench.broker.memory`.

For each mix of publications a head and an edge are started as processes. A subscriber at the edge wants everything, and
the edge is stopped, so that the head keeps all of its log for it. Idle connections are there beside the publishers.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from plimsoll import client
from plimsoll.core import config as configuration
from plimsoll.core.config import BrokerConfig, BrokerHardware, BrokerLimits, LinkSecurity, PeerBroker
from plimsoll.core.head.log import ENTRY_OVERHEAD_BYTES
from plimsoll.core.spec.validation.consistency import default_log

MIB = 2**20
RANGES = 3_000
"""Subscriptions without an equality, enough for the compiled loop of matching to be loaded; none matches."""

WAIT_SECONDS = 60.0


@dataclass(frozen=True)
class Mix:
    """Payload sizes, sent in turn, by `publishers` on connections of their own."""

    name: str
    sizes: tuple[int, ...]
    publishers: int = 1


MIXES = (
    Mix("50 bytes", (50,)),
    Mix("1,000 bytes", (1_000,)),
    Mix("200,000 bytes", (200_000,)),
    Mix("50 to 200,000 bytes", (50,) * 200 + (1_000,) * 50 + (20_000,) * 5 + (200_000,)),
    Mix("200,000 bytes, 20 publishers", (200_000,), 20),
)


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def resident_bytes(pid: int, field: str = "VmRSS") -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"process {pid} has no {field}")


@contextlib.contextmanager
def brokers(memory: int) -> Iterator[tuple[str, int, int]]:
    """A head and its edge as processes: where the head listens, and the ids of both."""
    data, control, edge_data, edge_control = (f"tcp://127.0.0.1:{port}" for port in free_ports(4))
    limits = BrokerLimits(log_bytes=int(default_log(Fraction(memory))), dead_seconds=600.0, lease_seconds=600.0)
    hardware, security = BrokerHardware(memory_bytes=memory), LinkSecurity(plain=True)
    head = BrokerConfig(
        name="h", role="head", cluster="c", data=data, control=control, edges=("e",),
        hardware=hardware, limits=limits, security=security,
    )  # fmt: skip
    edge = BrokerConfig(
        name="e", role="edge", cluster="c", data=edge_data, control=edge_control,
        head=PeerBroker(name="h", data=data, control=control), hardware=hardware, limits=limits, security=security,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        pids = [stack.enter_context(_process(config, Path(folder))) for config in (head, edge)]
        yield data, pids[0], pids[1]


@contextlib.contextmanager
def _process(config: BrokerConfig, folder: Path) -> Iterator[int]:
    path = folder / f"{config.name}.json"
    path.write_bytes(configuration.encode(config))
    command = [sys.executable, "-m", "plimsoll.broker", "--config", str(path)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def fill(connection: Callable[[str], client.Connection], mix: Mix, size: int) -> None:
    """Publish until the log holds this number of bytes."""
    with contextlib.ExitStack() as stack:
        publishers = [
            stack.enter_context(client.Publisher(stack.enter_context(connection(f"publisher{i}"))))
            for i in range(mix.publishers)
        ]
        for publisher, length in zip(itertools.cycle(publishers), itertools.cycle(mix.sizes), strict=False):
            if size <= 0:
                break
            publisher.publish({"class": "STOCK", "n": size}, bytes(length))
            size -= length + ENTRY_OVERHEAD_BYTES
        for publisher in publishers:
            publisher.flush(WAIT_SECONDS)


def measure(mix: Mix | None, memory: int, idle: int) -> tuple[int, int]:
    """Resident bytes of the head once its log is full (None: empty), and the most that they have been."""
    with brokers(memory) as (address, head, edge), contextlib.ExitStack() as stack:

        def connection(name: str) -> client.Connection:
            return client.Connection(address, security="plain", name=name)

        for i in range(idle):
            waiting = stack.enter_context(connection(f"idle{i}"))
            stack.enter_context(client.Publisher(waiting))
        subscriber = stack.enter_context(client.Subscriber(stack.enter_context(connection("all"))))
        subscriber.subscribe("[class,=,'STOCK']")
        for i in range(RANGES):
            subscriber.subscribe(f"[n,>,{-i - 1}],[n,<,{-i}]")
        if mix is not None:
            os.kill(edge, signal.SIGSTOP)
            fill(connection, mix, int(default_log(Fraction(memory))) * 3 // 2)
            time.sleep(2.0)
        found = resident_bytes(head), resident_bytes(head, "VmHWM")
        os.kill(edge, signal.SIGKILL)  # so that subscribers need not wait for it
        return found


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.broker.memory", description=__doc__.splitlines()[0])
    parser.add_argument("--memory-mib", type=int, default=256, help="memory of the profile")
    parser.add_argument("--idle", type=int, default=50, help="idle connections")
    parser.add_argument("--mix", type=int, action="append", help="number of a mix, from 0; all by default")
    options = parser.parse_args(arguments)
    memory = options.memory_mib * MIB
    log = int(default_log(Fraction(memory)))
    print(f"limit {memory / MIB:.0f} MiB, log {log / MIB:.0f} MiB, {options.idle} idle connections")
    chosen = [None, *MIXES] if options.mix is None else [MIXES[i] for i in options.mix]
    highest = 0
    for mix in chosen:
        now, most = measure(mix, memory, options.idle)
        highest = max(highest, most)
        print(f"{mix.name if mix else 'empty log':32} {now / MIB:7.1f} MiB, at most {most / MIB:7.1f} MiB", flush=True)
    return 0 if highest <= memory else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
