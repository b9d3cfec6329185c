"""NATS JetStream on this machine, beside the figures of bench.broker.durable: file storage, one replica and three.

    scripts/build_nats.sh; PLIMSOLL_NATS=.venv/nats/nats-server python -m bench.broker.jetstream [--quick] [--json FILE]

A publisher with at most a window of publications without an answer, and one consumer per subject of ten, each in a
process; every publication is stored before it is answered. `synced`: the servers sync each write (`sync_interval:
always`), as `sync: Always` does; else every two minutes, which is their default, and is less than `Interval` promises.
The client speaks the text protocol of NATS itself, so it costs the servers no less than another one would.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing as mp
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SUBJECTS = 10
BODY = b"x" * 200
WINDOW = 2_000
SETTINGS = {"R1": (1, False), "R1 synced": (1, True), "R3": (3, False), "R3 synced": (3, True)}
SECONDS = 60.0


class NatsLink:
    """A connection to a server that speaks its text protocol."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._rest = b""
        self.send(b'CONNECT {"verbose":false,"pedantic":false,"headers":false}\r\n')

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def receive(self, wait_seconds: float) -> Iterator[tuple[bytes, bytes]]:
        """Subject and payload of each message that has come; waits for the first.

        Raises:
            RuntimeError: the server has refused something.

        """
        self._socket.settimeout(max(wait_seconds, 1e-4))
        try:
            self._rest += self._socket.recv(1 << 20)
        except TimeoutError:
            return
        data, at = self._rest, 0
        while (end := data.find(b"\r\n", at)) >= 0:
            line = data[at:end]
            if line.startswith(b"MSG "):
                parts = line.split()
                size = int(parts[-1])
                if len(data) < end + 4 + size:
                    break
                yield parts[1], data[end + 2 : end + 2 + size]
                at = end + 4 + size
                continue
            if line.startswith(b"PING"):
                self.send(b"PONG\r\n")
            elif line.startswith(b"-ERR"):
                raise RuntimeError(line.decode())
            at = end + 2
        self._rest = data[at:]

    def ask(self, subject: str, body: dict[str, Any]) -> dict[str, Any]:
        """The answer of the JetStream API.

        Raises:
            TimeoutError: there is none.

        """
        data = json.dumps(body).encode()
        inbox = f"_INBOX.api.{time.monotonic_ns()}"
        self.send(f"SUB {inbox} 1\r\nUNSUB 1 1\r\nPUB {subject} {inbox} {len(data)}\r\n".encode() + data + b"\r\n")
        deadline = time.monotonic() + 5.0
        while time.monotonic() < deadline:
            for _, payload in self.receive(0.2):
                found: dict[str, Any] = json.loads(payload)
                return found
        raise TimeoutError(subject)


class Servers:
    """One or three servers with file storage below a folder. Use it in a `with`."""

    def __init__(self, program: str, folder: Path, count: int, *, synced: bool) -> None:
        ports = [_free_port() for _ in range(2 * count)]
        self.ports, routes = ports[:count], ports[count:]
        self._processes = []
        for i in range(count):
            sync = "sync_interval: always, " if synced else ""
            text = (
                f'server_name: n{i}\nlisten: "127.0.0.1:{self.ports[i]}"\n'
                f'jetstream: {{ {sync}store_dir: "{folder / f"n{i}"}" }}\n'
            )
            if count > 1:
                others = ", ".join(f'"nats://127.0.0.1:{port}"' for port in routes)
                text += f'cluster: {{ name: c, listen: "127.0.0.1:{routes[i]}", routes: [{others}] }}\n'
            file = folder / f"n{i}.conf"
            file.write_text(text)
            self._processes.append(
                subprocess.Popen([program, "-c", str(file)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            )

    def __enter__(self) -> Servers:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait(SECONDS)

    def make_stream(self, replicas: int) -> None:
        """Make the stream, once the servers have found one another."""
        config = {"name": "Q", "subjects": ["q.>"], "storage": "file", "num_replicas": replicas}
        _repeat(lambda: NatsLink(self.ports[0]).ask("$JS.API.STREAM.CREATE.Q", config), "stream")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def _repeat(ask: Any, what: str) -> None:
    deadline, last = time.monotonic() + SECONDS, ""
    while time.monotonic() < deadline:
        try:
            found = ask()
        except (OSError, TimeoutError) as error:
            last = repr(error)
        else:
            if "error" not in found:
                return
            last = str(found["error"])
        time.sleep(0.2)
    raise RuntimeError(f"no {what} after {SECONDS:g} s: {last}")


def consume(port: int, count: int, results: Any) -> None:
    """Take so many publications of each subject, each in order; report the delay of each."""
    link = NatsLink(port)
    link.send(b"SUB deliver.* 7\r\n")
    for subject in range(SUBJECTS):
        config = {"deliver_subject": f"deliver.{subject}", "filter_subject": f"q.{subject}", "ack_policy": "none",
                  "deliver_policy": "new", "mem_storage": True, "num_replicas": 1}  # fmt: skip
        asked = {"stream_name": "Q", "config": config}
        _repeat(lambda: NatsLink(port).ask("$JS.API.CONSUMER.CREATE.Q", asked), "consumer")  # noqa: B023  # called at once
    results.put("ready")
    delays: list[float] = []
    deadline = time.monotonic() + 10 * SECONDS
    while len(delays) < count and time.monotonic() < deadline:
        for _, payload in link.receive(1.0):
            delays.append(time.time() - float(payload[:20]))
    results.put((time.time(), delays))


def publish(port: int, count: int, rate: float) -> float:
    """Publish, `WINDOW` unanswered at most; returns the time of the last answer."""
    link = NatsLink(port)
    link.send(b"SUB _INBOX.p 9\r\n")
    sent = answered = 0
    began = time.time()
    while answered < count:
        due = count if rate <= 0 else min(count, int((time.time() - began) * rate) + 1)
        burst = min(due - sent, WINDOW - (sent - answered), 64)
        if burst > 0:
            body = b"%-20.6f" % time.time() + BODY
            head = b" _INBOX.p %d\r\n" % len(body)
            link.send(b"".join(b"PUB q.%d" % ((sent + i) % SUBJECTS) + head + body + b"\r\n" for i in range(burst)))
            sent += burst
        for _, payload in link.receive(0.0 if burst > 0 else 0.001):
            if b'"error"' in payload:
                raise RuntimeError(payload.decode())
            answered += 1
    return time.time()


def run(program: str, setting: str, folder: Path, flat_out: int, rate: float, seconds: float) -> dict[str, float]:
    """Capacity until all is delivered, then latency at a fixed rate."""
    replicas, synced = SETTINGS[setting]
    found: dict[str, float] = {}
    with Servers(program, folder, replicas, synced=synced) as servers:
        servers.make_stream(replicas)
        for what, count, at_rate in (("flat out", flat_out, 0.0), ("slow", int(rate * seconds), rate)):
            results: Any = mp.Queue()
            consumer = mp.Process(target=consume, args=(servers.ports[-1], count, results))
            consumer.start()
            results.get(timeout=2 * SECONDS)
            began = time.time()
            publish(servers.ports[0], count, at_rate)
            ended, delays = results.get(timeout=10 * SECONDS)
            consumer.join(SECONDS)
            if what == "flat out":
                found["publications_per_second"] = count / (ended - began)
            else:
                delays.sort()
                found["p50_ms"] = delays[len(delays) // 2] * 1000
                found["p99_ms"] = delays[int(len(delays) * 0.99)] * 1000
    return found


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.broker.jetstream", description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, help="a folder on the disk to measure (default: a temporary one)")
    parser.add_argument("--quick", action="store_true", help="a fifth of the work")
    parser.add_argument("--runs", type=int, default=3, help="runs of each setting (default %(default)s)")
    parser.add_argument("--rate", type=float, default=3000.0, help="publications/s at which latency is measured")
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS), choices=SETTINGS, help="which to run")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to this file")
    options = parser.parse_args(arguments)
    program = os.environ.get("PLIMSOLL_NATS", "")
    if not program or not Path(program).exists():
        print("skipped: PLIMSOLL_NATS names no NATS server; scripts/build_nats.sh builds one where there is Go")
        return 0
    scale = 0.2 if options.quick else 1.0
    runs: dict[str, list[dict[str, float]]] = {setting: [] for setting in options.settings}
    for _ in range(options.runs):
        for setting in options.settings:
            with tempfile.TemporaryDirectory(dir=options.folder) as place:
                one = run(program, setting, Path(place), int(100_000 * scale), options.rate, 10 * scale)
            runs[setting].append(one)
            print(setting, {name: round(value, 2) for name, value in one.items()}, flush=True)
    median = {
        setting: {name: statistics.median(one[name] for one in those) for name in those[0]}
        for setting, those in runs.items()
    }
    print("median:", {s: {name: round(value, 2) for name, value in one.items()} for s, one in median.items()})
    if options.json is not None:
        options.json.write_text(json.dumps({"runs": runs, "median": median}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
