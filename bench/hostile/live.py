"""`python -m bench.hostile.live`: what the subscribers of an edge notice of a client that subscribes to dear lists.

One head and one edge as processes of this machine. A publisher sends at a steady rate to some subscribers, first alone
and then beside an attacker in another process, once for each attack. The figures are the 50th and 99th percentile
and the longest latency of deliveries, in milliseconds, and the ratio of the 99th to that of the run alone.
"""

from __future__ import annotations

import argparse
import json
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from plimsoll import client
from plimsoll.client.errors import WaitTimeoutError
from plimsoll.core import config as configuration
from plimsoll.core.config import BrokerConfig, LinkSecurity, PeerBroker

PLAIN = LinkSecurity(plain=True)
SUBSCRIBERS = 5
WAIT_SECONDS = 30.0
LATE_SECONDS = 10.0
"""After the last publication, how long deliveries are waited for."""

_INTS = "[a,in,(" + ",".join(map(str, range(1_000, 6_000))) + ")]"
ATTACKS: dict[str, list[str]] = {
    "two texts of 65 KB, a list and 4,000 bounds": [_INTS + ",[a,>,0]" * 4_000, _INTS + ",[a,>,1]" * 4_000],
    "1,500 with two pieces each": [f"[a,contains,'x{i}.'],[a,contains,'.y{i}']" for i in range(1_500)],
    "one of 65 KB of pieces": [",".join(f"[a,contains,'{i:04}']" for i in range(3_100))],
    "10,000 narrow ones": [f"[a,=,{i}],[b,>,{i}]" for i in range(10_000)],
    "60 of 250 bounds": [",".join(f"[a{(i + j) % 999},>,{j}]" for j in range(250)) for i in range(60)],
}

ATTACKER = """
import json, sys, time
from plimsoll import client
texts, until = json.loads(sys.stdin.readline()), time.monotonic() + float(sys.argv[2])
with client.Connection(sys.argv[1], security="plain", name="attacker") as connection:
    while time.monotonic() < until:
        with client.Subscriber(connection, name="attacker") as subscriber:
            for text in texts:
                try:
                    subscriber.subscribe(text, wait=False)
                except client.errors.ClientError:
                    pass
            time.sleep(2.0)
"""


def free_ports(count: int) -> list[int]:
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


class TwoBrokers:
    """A head and an edge; they end with `close`."""

    def __init__(self, folder: Path) -> None:
        ports = [f"tcp://127.0.0.1:{port}" for port in free_ports(4)]
        self.head, self.edge = ports[0], ports[2]
        peer = PeerBroker(name="h", data=ports[0], control=ports[1])
        configs = [
            BrokerConfig(
                name="h", role="head", cluster="c", data=ports[0], control=ports[1], edges=("e",), security=PLAIN
            ),
            BrokerConfig(
                name="e", role="edge", cluster="c", data=ports[2], control=ports[3], head=peer, security=PLAIN
            ),
        ]
        self.processes = []
        for config in configs:
            path = folder / f"{config.name}.json"
            path.write_bytes(configuration.encode(config))
            command = [sys.executable, "-m", "plimsoll.broker", "--config", str(path)]
            self.processes.append(subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL))

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


def latencies(head: str, seconds: float, rate: float) -> list[float]:
    """Milliseconds from publishing to delivery, over all subscribers, sorted."""
    found: list[float] = []
    with client.Connection(head, security="plain", name="victims") as connection:
        connection.wait_open(WAIT_SECONDS)
        subscribers = [client.Subscriber(connection, name=f"s{i}") for i in range(SUBSCRIBERS)]
        for subscriber in subscribers:
            subscriber.subscribe("[kind,=,'tick']", timeout=WAIT_SECONDS)
        publisher = client.Publisher(connection, name="p")
        begin, count = time.monotonic(), int(seconds * rate)
        sent: list[float] = []
        for n in range(count):
            while (pause := begin + n / rate - time.monotonic()) > 0:
                take(subscribers, sent, found, 0.0)
                time.sleep(min(pause, 0.001))  # the publisher's pace
            sent.append(time.monotonic())
            publisher.publish({"kind": "tick", "n": n})
            take(subscribers, sent, found, 0.0)
        until = time.monotonic() + LATE_SECONDS
        while len(found) < SUBSCRIBERS * count and time.monotonic() < until:
            take(subscribers, sent, found, 0.001)
    if len(found) != SUBSCRIBERS * count:
        print(f"  {SUBSCRIBERS * count - len(found)} of {SUBSCRIBERS * count} deliveries did not come in time")
    return sorted(found)


def take(subscribers: list[client.Subscriber], sent: list[float], found: list[float], timeout: float) -> None:
    """Take what has come: the latencies of deliveries go into `found`."""
    for subscriber in subscribers:
        try:
            while isinstance(item := subscriber.receive(timeout=timeout), client.Delivery):
                found.append((time.monotonic() - sent[int(item.attributes["n"])]) * 1e3)
        except WaitTimeoutError:
            continue  # nothing more for now


def summary(sorted_ms: list[float]) -> dict[str, float]:
    at = {"p50": 0.5, "p99": 0.99}
    return {name: sorted_ms[int(len(sorted_ms) * share)] for name, share in at.items()} | {"longest": sorted_ms[-1]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=6.0, help="of each run")
    parser.add_argument("--rate", type=float, default=100.0, help="publications per second")
    parser.add_argument("--json", type=Path, default=Path("bench-report/hostile-live.json"))
    options = parser.parse_args()
    rows: dict[str, Any] = {}
    for name, texts in {"alone": [], **ATTACKS}.items():
        with tempfile.TemporaryDirectory() as folder:
            brokers = TwoBrokers(Path(folder))
            attacker = None
            try:
                if texts:
                    command = [sys.executable, "-c", ATTACKER, brokers.head, str(options.seconds + 5)]
                    attacker = subprocess.Popen(command, stdin=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL)
                    assert attacker.stdin is not None
                    attacker.stdin.write(json.dumps(texts) + "\n")
                    attacker.stdin.flush()
                rows[name] = summary(latencies(brokers.head, options.seconds, options.rate))
            finally:
                if attacker is not None:
                    attacker.kill()
                    attacker.wait()
                brokers.close()
        ratio = rows[name]["p99"] / rows["alone"]["p99"]
        print(
            f"{name:45} " + "  ".join(f"{k} {v:8.1f} ms" for k, v in rows[name].items()) + f"  p99 x{ratio:.1f}",
            flush=True,
        )
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
