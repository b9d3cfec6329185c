"""The two ends of a NATS server under test: a publisher with a window, and consumers that count deliveries.

They speak the text protocol of NATS themselves and do as little as they can, as the ends in `bench.broker.actors` do,
so that the servers are measured. The API of JetStream is asked over the same connections.
"""

from __future__ import annotations

import gc
import itertools
import json
import selectors
import socket
import struct
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from bench.broker.processes import PATIENCE_SECONDS, Cpu

STREAM, SUBJECT, INBOX = "BENCH", "bench.publications", "_INBOX.answers"
SENT_AT = struct.Struct(">q")
"""In front of each payload: when the publication was due, in microseconds of the monotonic clock."""
READ_BYTES = 1 << 20
BURST = 256
"""Publications that are sent in one piece at most, as in a frame of `processes.publish`."""
SHORTEST_SLEEP_SECONDS = 0.0005


class NatsError(RuntimeError):
    """A server has refused something."""


class NatsMessage(NamedTuple):
    """`line`: with the subject, and where to answer. `body`: headers, if there are any, and payload."""

    line: bytes
    body: bytes

    @property
    def reply(self) -> bytes:
        """The subject of an answer; empty if none is wanted."""
        parts = self.line.split()
        counts = 2 if parts[0] == b"HMSG" else 1
        return parts[3] if len(parts) == 4 + counts else b""

    @property
    def headers(self) -> bytes:
        parts = self.line.split()
        return self.body[: int(parts[-2])] if parts[0] == b"HMSG" else b""

    @property
    def payload(self) -> bytes:
        return self.body[len(self.headers) :]

    def flow_answer(self) -> bytes:
        """Where a consumer has to answer so that the server goes on sending; empty: nowhere."""
        headers = self.headers
        if headers.startswith(b"NATS/1.0 100 FlowControl"):
            return self.reply
        _, found, rest = headers.partition(b"Nats-Consumer-Stalled:")
        return rest.split(b"\r\n", 1)[0].strip() if found else b""


class NatsReader:
    """Takes what a server sends apart; a message that is not complete waits for the rest."""

    def __init__(self) -> None:
        self._rest = b""
        self.pings = 0

    def feed(self, data: bytes) -> list[NatsMessage]:
        """The messages that are complete now.

        Raises:
            NatsError: the server has said that something is wrong.

        """
        data, at = self._rest + data, 0
        found = []
        while (end := data.find(b"\r\n", at)) >= 0:
            if data.startswith((b"MSG ", b"HMSG "), at):
                after = end + 4 + int(data[data.rindex(b" ", at, end) + 1 : end])
                if after > len(data):
                    break
                found.append(NatsMessage(data[at:end], data[end + 2 : after - 2]))
                at = after
                continue
            if data.startswith(b"-ERR", at):
                raise NatsError(data[at:end].decode())
            if data.startswith(b"PING", at):
                self.pings += 1
            at = end + 2
        self._rest = data[at:]
        return found


class NatsLink:
    """A connection to a server on this machine."""

    def __init__(self, port: int) -> None:
        """Connect.

        Raises:
            OSError: no server answers there.

        """
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = NatsReader()
        self.send(b'CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":true}\r\n')

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive(self, wait_seconds: float = PATIENCE_SECONDS) -> list[NatsMessage]:
        """What has come; waits for something.

        Raises:
            NatsError: the server has refused something, or has gone.

        """
        self.socket.settimeout(wait_seconds)
        try:
            data = self.socket.recv(READ_BYTES)
        except (TimeoutError, BlockingIOError):
            return []
        finally:
            self.socket.settimeout(PATIENCE_SECONDS)
        if not data:
            raise NatsError("the server has closed the connection")
        found = self._reader.feed(data)
        if self._reader.pings:
            self._reader.pings = 0
            self.send(b"PONG\r\n")
        return found

    def ask(self, subject: str, request: dict[str, Any], seconds: float = 5.0) -> dict[str, Any]:
        """The answer of the JetStream API.

        Raises:
            NatsError: it has refused, or there is no answer.

        """
        inbox, data = f"_INBOX.api.{time.monotonic_ns()}", json.dumps(request).encode()
        self.send(f"SUB {inbox} 1\r\nUNSUB 1 1\r\nPUB {subject} {inbox} {len(data)}\r\n".encode() + data + b"\r\n")
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            for message in self.receive(left):
                answer: dict[str, Any] = json.loads(message.payload or b'{"error": "no server answers"}')
                if "error" in answer:
                    raise NatsError(f"{subject}: {answer['error']}")
                return answer
        raise NatsError(f"{subject}: no answer within {seconds:g} s")

    def close(self) -> None:
        self.socket.close()


def publications(bodies: Sequence[bytes], first: int, due_us: Sequence[int]) -> bytes:
    """One publication for each time at which it was due, as bytes for a server."""
    parts = []
    for number, at_us in enumerate(due_us, first):
        payload = SENT_AT.pack(at_us) + bodies[number % len(bodies)]
        parts.append(b"PUB %s %s %d\r\n%s\r\n" % (SUBJECT.encode(), INBOX.encode(), len(payload), payload))
    return b"".join(parts)


class WindowedPublisher:
    """Publishes with at most `window` publications without an answer, as `processes.publish` does with its credit."""

    def __init__(self, link: NatsLink, bodies: Sequence[bytes], window: int) -> None:
        self.link, self.bodies, self.window = link, bodies, window
        self.sent = self.answered = 0
        link.send(f"SUB {INBOX} 1\r\n".encode())

    def read_answers(self, wait_seconds: float) -> None:
        """Take the answers that have come.

        Raises:
            NatsError: a publication was refused.

        """
        for message in self.link.receive(wait_seconds):
            if b'"error"' in message.body or message.headers:
                raise NatsError(f"a publication was refused: {message.body.decode(errors='replace')}")
            self.answered += 1

    def run(self, count: int, rate: float) -> tuple[float, float]:
        """Publish at a rate; returns how long that took, and by how much the latest one was sent too late."""
        started, done, late = time.monotonic(), 0, 0.0
        while done < count:
            now = time.monotonic()
            due = min(count, int((now - started) * rate) + 1)
            if due == done:
                time.sleep(max(SHORTEST_SLEEP_SECONDS, started + done / rate - now))
                continue
            room = self.window - (self.sent - self.answered)
            if room <= 0:
                self.read_answers(PATIENCE_SECONDS)
                continue
            late = max(late, now - started - done / rate)
            some = range(done, min(due, done + BURST, done + room))
            self.link.send(publications(self.bodies, self.sent, [int((started + n / rate) * 1e6) for n in some]))
            self.sent, done = self.sent + len(some), done + len(some)
            self.read_answers(0.0)
        seconds = time.monotonic() - started
        while self.answered < self.sent:
            self.read_answers(PATIENCE_SECONDS)
        return seconds, late


def nats_publish(pipe: Connection, port: int, bodies: list[bytes], window: int) -> None:
    """A publisher as a process: `go count rate`."""
    publisher = WindowedPublisher(NatsLink(port), bodies, window)
    pipe.send(None)
    while True:
        _, count, rate = pipe.recv()
        pipe.send(publisher.run(count, rate))


class NatsConsumer:
    """One connection with one consumer, which has everything. With `clock_us` it takes the latency of each delivery."""

    def __init__(self, link: NatsLink, number: int) -> None:
        self.link = link
        self.deliveries = self.pieces = self.bytes = 0
        self.latencies_us: list[int] = []
        self.clock_us: Callable[[], int] | None = None
        subject = f"deliver.{number}"
        link.send(f"SUB {subject} 2\r\n".encode())
        link.ask(f"$JS.API.CONSUMER.CREATE.{STREAM}", {"stream_name": STREAM, "config": consumer(subject)})

    def read(self) -> None:
        """Take what has come."""
        messages = self.link.receive()
        now_us = self.clock_us() if self.clock_us is not None else 0
        self.pieces += 1
        for message in messages:
            if message.line.startswith(b"HMSG"):
                if answer := message.flow_answer():
                    self.link.send(b"PUB %s 0\r\n\r\n" % answer)
                continue
            self.deliveries += 1
            self.bytes += len(message.body)
            if now_us:
                self.latencies_us.append(now_us - SENT_AT.unpack_from(message.body)[0])


def consumer(subject: str) -> dict[str, Any]:
    """What clients ask for as an ordered consumer: in order, and the client says by itself where it goes on."""
    return {
        "deliver_subject": subject, "deliver_policy": "all", "ack_policy": "none", "max_deliver": 1,
        "flow_control": True, "idle_heartbeat": 5_000_000_000, "mem_storage": True, "num_replicas": 1,
    }  # fmt: skip


def nats_sink(pipe: Connection, ports: list[int], count: int) -> None:
    """Consumers: sends None once there are all, then answers each question with its counters."""
    waiting = selectors.DefaultSelector()
    consumers = []
    for number, port in zip(range(count), itertools.cycle(ports), strict=False):
        consumers.append(NatsConsumer(NatsLink(port), number))
        waiting.register(consumers[-1].link.socket, selectors.EVENT_READ, consumers[-1])
    for each in consumers[::10]:  # as in `processes.sink`
        each.clock_us = lambda: time.monotonic_ns() // 1000
    waiting.register(pipe, selectors.EVENT_READ, None)
    gc.collect()
    gc.freeze()
    pipe.send(None)
    while True:
        for key, _ in waiting.select():
            if key.data is not None:
                key.data.read()
                continue
            pipe.recv()
            latencies = [each for one in consumers for each in one.latencies_us]
            pipe.send((
                sum(one.deliveries for one in consumers), sum(one.pieces for one in consumers),
                sum(one.bytes for one in consumers), latencies, Cpu.now(),
            ))  # fmt: skip
            for one in consumers:
                one.latencies_us.clear()
