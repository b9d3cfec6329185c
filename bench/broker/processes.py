"""The processes of a run: the broker under test, sinks, a feeder, a publisher, and a bare ROUTER as the baseline.

All of them run on the loopback of one machine and compete for its cores, so the CPU time of the broker's threads is
reported beside the wall clock.
"""

from __future__ import annotations

import gc
import itertools
import multiprocessing as mp
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import msgspec
import zmq
from bench.broker.actors import EDGE, EPOCH, HEAD, CountingClient, Feeder, credit_in
from bench.broker.held_times import HeldTimes
from bench.broker.machines import edge_config, head_config
from msgspec import Raw

from plimsoll.broker.event_loop import BrokerLoop
from plimsoll.broker.main import answer_by_machine, new_id, report_usage, serve_http
from plimsoll.broker.monitoring.process_probes import ProcessProbes
from plimsoll.broker.network.socket_lane import BrokerCurveKeys
from plimsoll.broker.network.sockets import BrokerSockets
from plimsoll.broker.process_watch import ProcessWatch, raise_open_files
from plimsoll.broker.standby import standby_process
from plimsoll.broker.standby.replicated_log import ReplicatedLog
from plimsoll.broker.storage.log_disk import LogDisk
from plimsoll.core.config import BrokerConfig, HeadStandby, PeerBroker
from plimsoll.core.edge.machine import Edge
from plimsoll.core.head.machine import Head
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.network.auth.authorized_keys import AuthorizedKeys
from plimsoll.telemetry.http_server import HttpServer

FORK = mp.get_context("fork")
PATIENCE_SECONDS = 30.0
SCRAPE_SECONDS = 1.0
"""Figures change once a second, so scraping more often would not cost more; Prometheus does so every 15 to 60 s."""
NAMES = {HEAD: "head", EDGE: "edge", "feeder": "head", "publisher": "client", "sink": "client"}


@dataclass(frozen=True)
class RunKeys:
    """The CURVE keys of all processes of a run; empty on plain TCP. `file`: the authorised keys that brokers read."""

    pairs: dict[str, tuple[bytes, bytes]]
    file: Path | None

    @classmethod
    def make(cls, folder: Path) -> RunKeys:
        pairs = {name: zmq.curve_keypair() for name in (HEAD, EDGE, "publisher", "sink")}
        file = folder / "authorized-keys"
        named = {HEAD: HEAD, EDGE: EDGE, "publisher": "publisher", "sink": "*"}
        file.write_text("\n".join(f"{pairs[n][0].decode()} {NAMES[n]} {named[n]}" for n in pairs))
        return cls(pairs, file)

    def public(self, name: str) -> str:
        return self.pairs[name][0].decode() if self.pairs else ""

    def client(self, socket: zmq.Socket[bytes], name: str, server: str) -> None:
        if self.pairs:
            socket.curve_publickey, socket.curve_secretkey = self.pairs[name]
            socket.curve_serverkey = self.pairs[server][0]

    def sockets(self, name: str, config: BrokerConfig) -> tuple[BrokerSockets, AuthorizedKeys | None]:
        if self.file is None:
            return BrokerSockets(config.limits), None
        authority = AuthorizedKeys.read(str(self.file))
        return BrokerSockets(config.limits, BrokerCurveKeys(self.pairs[name][1].decode()), authority), authority


PLAIN_KEYS = RunKeys({}, None)


@dataclass(frozen=True)
class Cpu:
    """CPU seconds of the loop's thread and of all threads."""

    loop: float
    process: float

    @classmethod
    def now(cls) -> Cpu:
        return cls(time.thread_time(), time.process_time())

    def since(self, before: Cpu) -> Cpu:
        return Cpu(self.loop - before.loop, self.process - before.process)


TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """CPU seconds that all threads of a process have used, to a hundredth."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND


class Child:
    """A forked process with a pipe for questions and answers; `end` kills it."""

    def __init__(self, work: Callable[..., None], *arguments: Any) -> None:
        self.pipe, theirs = FORK.Pipe()
        self.process = FORK.Process(target=work, args=(theirs, *arguments), daemon=True)
        self.process.start()
        self.pid = self.process.pid or 0
        theirs.close()

    def ask(self, *question: Any) -> Any:
        if question:
            self.pipe.send(question)
        if not self.pipe.poll(PATIENCE_SECONDS):
            raise TimeoutError(f"{self.process.name} does not answer {question}")
        return self.pipe.recv()

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


# -- brokers -----------------------------------------------------------------------------------------------------------


def serve(pipe: Connection, role: str, head: tuple[str, str], keys: RunKeys, options: dict[str, Any]) -> None:
    """A head or an edge as `plimsoll.broker` runs it; between rounds it answers questions on the pipe."""
    raise_open_files()
    config = head_config() if role == "head" else edge_config()
    if role == "edge":
        peer = PeerBroker(name=HEAD, data=head[0], control=head[1], public_key=keys.public(HEAD))
        config = msgspec.structs.replace(config, head=peer)
    sockets, authority = keys.sockets(config.name, config)
    data, control = sockets.data.bind("tcp://127.0.0.1:*"), sockets.control.bind("tcp://127.0.0.1:*")
    config = msgspec.structs.replace(config, data=data, control=control)
    config = msgspec.structs.replace(config, disk_log=options.pop("disk_log", None))
    if (window := options.pop("window", None)) is not None:
        config = msgspec.structs.replace(config, limits=msgspec.structs.replace(config.limits, publisher_window=window))
    machine, disk = with_log(config, keys, has_standby=options.pop("standby", False))
    if options.pop("single", False):
        # Only one frame of the stream per round; acknowledgements are not limited.
        drain = sockets.data.drain_dealer
        sockets.data.drain_dealer = lambda peer, frames, size: drain(peer, 1, size)
    watch, is_observed = ProcessWatch(os.getppid()), options.pop("observed", False)
    loop = BrokerLoop(machine, sockets, watch, config.hardware, authority=authority, disk=disk, **options)
    loop.on_usage = lambda usage: report_usage(machine, sockets, authority, usage, disk)
    server = observe(machine, loop) if is_observed else None
    sockets.watch(pipe.fileno())
    pipe.send((data, control, server.endpoint if server else ""))
    loop.collector.start()
    held = None if disk is None else HeldTimes(disk)
    profiler = None
    while not (watch.signals or watch.parent_is_gone()):
        loop.round()
        if not sockets.is_readable(pipe.fileno()):
            continue
        question = pipe.recv()[0]
        if question == "profile":
            import cProfile

            profiler = cProfile.Profile()
            profiler.enable()
        if question == "end":
            break
        if question == "status":
            pipe.send(machine.status())
        elif question == "disk" and disk is not None:
            pipe.send(disk.status())
        elif question == "held":
            pipe.send({} if held is None else held.figures())
        else:
            pipe.send((Cpu.now(), loop.rounds))
    if profiler is not None:
        import pstats

        profiler.disable()
        pstats.Stats(profiler).sort_stats("tottime").print_stats(25)
    pipe.send(None)
    if server is not None:
        server.close()
    sockets.close()
    watch.close()
    if disk is not None:
        disk.close()


def with_log(
    config: BrokerConfig, keys: RunKeys, *, has_standby: bool
) -> tuple[Head | Edge, LogDisk | ReplicatedLog | None]:
    """The machine of a broker, and the log of a head that has more than its memory."""
    disk: LogDisk | ReplicatedLog | None = None
    if has_standby:
        peer = PeerBroker(name=HEAD, data=config.data)
        config = msgspec.structs.replace(config, standby=HeadStandby(term=1, head=peer, control=config.control))
        disk = standby_process.replicated_log(config)
        head = Head(standby_process.entries_at_hand(config), EPOCH, new_id, disk.recover())
        disk.attach(head, time.monotonic())
        disk.begin_feed(standby_process.make_feed(config, EPOCH, new_id))
        return head, disk
    if config.disk_log is not None:
        disk = LogDisk(config.disk_log, config.name)
        head = Head(config, EPOCH, new_id, disk.recover())
        disk.attach(head, time.monotonic())
        return head, disk
    if config.role == "head":
        return Head(config, EPOCH, new_id), None
    return Edge(config, EPOCH, new_id, keys.public(EDGE)), None


def observe(machine: Head | Edge, loop: BrokerLoop) -> HttpServer:
    """Have a broker answer scrapes."""
    probes = ProcessProbes()
    answer_by_machine(probes, machine, loop)
    return serve_http("tcp://127.0.0.1:*", probes)


def stand_by(pipe: Connection, head: str) -> None:
    """A standby of the head at this endpoint, which it follows into memory; never promoted."""
    config = head_config()
    sockets, watch = BrokerSockets(config.limits), ProcessWatch(os.getppid())
    peer = PeerBroker(name=HEAD, data=head)
    config = msgspec.structs.replace(config, standby=HeadStandby(follows=True, head=peer, control=head))
    kept = standby_process.replicated_log(config)
    pipe.send(None)
    shell = standby_process.ProcessShell(sockets, watch, EPOCH + 1, new_id, None, 1.0, ProcessProbes(), None)
    standby_process.follow(config, kept, shell)


# -- ends --------------------------------------------------------------------------------------------------------------


def feed(pipe: Connection, keys: RunKeys, bodies: list[bytes]) -> None:
    """A feeder as a process: `go count per_frame rate` makes it send; without a rate, as fast as credit allows."""
    config = head_config()
    sockets, _ = keys.sockets(HEAD, config)
    endpoints = sockets.data.bind("tcp://127.0.0.1:*"), sockets.control.bind("tcp://127.0.0.1:*")
    ids = itertools.count(1)
    feeder = Feeder(lambda: next(ids))
    sockets.watch(pipe.fileno())
    pipe.send(endpoints)
    to_send: list[bytes] = []
    sent, per_frame, rate, started = 0, 1, 0.0, 0.0
    while True:
        now = time.monotonic()
        busy = sent < len(to_send) and feeder.room()
        due = len(to_send) if not rate else min(len(to_send), int((now - started) * rate))
        sockets.wait(0.0 if busy and sent < due else (0.0005 if to_send else 0.2))
        sockets.serve_events()
        now = time.monotonic()
        for peer, frames in sockets.receive(sockets.data, 1000, 1 << 20):
            feeder.receive(peer, frames, now)
        for _ in sockets.receive(sockets.control, 1000, 1 << 20):
            pass
        due = len(to_send) if not rate else min(len(to_send), int((now - started) * rate))
        while sent < due and feeder.room():
            for piece in to_send[sent : min(due, sent + per_frame)]:
                feeder.put(feeder.edge, piece)  # type: ignore[arg-type]  # `room` asks for an edge
            sent = min(due, sent + per_frame)
            feeder.flush()
        feeder.poll(now)
        sockets.data.send(feeder.data_to_send())  # type: ignore[arg-type]  # peers of this shell are names or routing ids
        if sockets.is_readable(pipe.fileno()):
            _, count, per_frame, rate = pipe.recv()
            to_send, sent = feeder.encoded(bodies, count), 0
            pipe.send(None)
            started = time.monotonic()


def sink(
    pipe: Connection,
    endpoint: str,
    keys: RunKeys,
    shares: Sequence[list[tuple[str, str]]],
    first: int,
    decode: bool,
    latency: bool,
) -> None:
    """Client links: sends None when all are subscribed, then answers each question with its counters."""
    raise_open_files()
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    context.set(zmq.MAX_SOCKETS, 4000)
    poller = zmq.Poller()
    clients: dict[zmq.Socket[bytes], CountingClient] = {}
    for i, share in enumerate(shares, first):
        socket = context.socket(zmq.DEALER)
        socket.rcvhwm = socket.sndhwm = 0
        keys.client(socket, "sink", EDGE)
        socket.connect(endpoint)
        clients[socket] = CountingClient(f"client{i}", 1_000_000 + i, share, decode=decode)
        poller.register(socket, zmq.POLLIN)
        socket.send(clients[socket].hello())
    poller.register(pipe.fileno(), zmq.POLLIN)
    gc.collect()
    gc.freeze()
    announced = False
    while True:
        for socket, _ in poller.poll(1000):
            if socket == pipe.fileno():
                pipe.recv()
                pipe.send(
                    (
                        sum(c.deliveries for c in clients.values()),
                        sum(c.frames for c in clients.values()),
                        sum(c.bytes for c in clients.values()),
                        [each for c in clients.values() for each in c.latencies_us],
                        Cpu.now(),
                    )
                )
                for client in clients.values():
                    client.latencies_us.clear()
                continue
            client = clients[socket]
            try:
                while True:
                    for answer in client.receive(socket.recv(zmq.NOBLOCK)):
                        socket.send(answer)
            except zmq.Again:
                pass  # all that has come is read
        if not announced and all(c.subacks == len(c.subscribers) for c in clients.values()):
            announced = True
            # Every tenth link decodes its deliveries and takes their latency; the others only count.
            for client in list(clients.values())[::10] if latency else []:
                client.clock_us = lambda: time.monotonic_ns() // 1000
            pipe.send(None)


def publish(pipe: Connection, endpoint: str, keys: RunKeys, bodies: list[bytes]) -> None:
    """A publisher: `go count rate` sends at that rate, as far as it has credit; answers with its lag.

    Publications that are due together share a frame. Each is stamped with the time at which it was due, so that a
    publisher that lags does not hide the wait (coordinated omission).
    """
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    socket = context.socket(zmq.DEALER)
    socket.sndhwm = 0
    keys.client(socket, "publisher", HEAD)
    socket.connect(endpoint)
    link, seq, received, frame_seq, credit, through = 78, 0, 0, 0, 0, 0

    def frame(chunks: list[bytes]) -> bytes:
        nonlocal frame_seq
        while frame_seq >= credit:
            socket.poll(1000)
            read_answers()
        frame_seq += 1
        return wire.data_frame(link, 0, frame_seq, received, received + 1024, chunks, len(chunks))

    def read_answers() -> None:
        nonlocal received, credit, through
        try:
            while True:
                answer = wire.decode_frame(socket.recv(zmq.NOBLOCK))
                if isinstance(answer, wire.Data):
                    received, through = answer.seq, credit_in(answer, through)
                if isinstance(answer, wire.Data | wire.Ack):
                    credit = max(credit, answer.credit)
        except zmq.Again:
            pass  # all that has come is read

    socket.send(wire.hello_frame(link, 0, False, wire.Info("publisher", "client", EPOCH)))
    socket.poll(5000)
    socket.send(frame([wire.encode(msg.Open(1, "publisher", 1))]))
    pipe.send(None)
    while True:
        _, count, rate = pipe.recv()
        started, sent, late = time.monotonic(), 0, 0.0
        while sent < count:
            now = time.monotonic()
            due = min(count, int((now - started) * rate) + 1)
            if due == sent:
                # Publications due within half a millisecond share a frame; the wait counts as latency.
                time.sleep(max(0.0005, started + sent / rate - now))
                continue
            if through == seq:
                socket.poll(1000)
                read_answers()
                continue
            chunks = []
            late = max(late, now - started - sent / rate)
            for n in range(sent, min(due, sent + 256, sent + through - seq)):
                seq += 1
                at_us = int((started + n / rate) * 1e6)
                chunks.append(wire.encode(msg.Publish(1, seq, 0, at_us, Raw(bodies[seq % len(bodies)]))))
            sent += len(chunks)
            socket.send(frame(chunks))
            read_answers()
        pipe.send((time.monotonic() - started, late))


# -- the baseline ------------------------------------------------------------------------------------------------------


def bare_router(pipe: Connection, links: int, targets: list[list[int]], payload: bytes, count: int) -> None:
    """A ROUTER that sends `payload` to the targets of each publication, two calls each, and does nothing else."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    router = context.socket(zmq.ROUTER)
    router.sndhwm = router.rcvhwm = 0
    router.router_mandatory = True
    router.bind("tcp://127.0.0.1:*")
    pipe.send(router.getsockopt_string(zmq.LAST_ENDPOINT).rstrip("\0"))
    peers = [router.recv_multipart()[0] for _ in range(links)]
    pipe.send(None)
    pipe.recv()
    before, send, more = Cpu.now(), router.send, zmq.SNDMORE
    for n in range(count):
        for target in targets[n % len(targets)]:
            send(peers[target], more)
            send(payload)
    pipe.send(Cpu.now().since(before))
    pipe.recv()
    context.destroy(0)


def bare_sink(pipe: Connection, endpoint: str, links: int, total: int) -> None:
    """Counts messages until all have arrived."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    context.set(zmq.MAX_SOCKETS, 4000)
    poller = zmq.Poller()
    sockets = []
    for _ in range(links):
        socket = context.socket(zmq.DEALER)
        socket.rcvhwm = 0
        socket.connect(endpoint)
        socket.send(b"")
        poller.register(socket, zmq.POLLIN)
        sockets.append(socket)
    got = 0
    while got < total:
        for socket, _ in poller.poll(5000):
            try:
                while True:
                    socket.recv(zmq.NOBLOCK)
                    got += 1
            except zmq.Again:
                pass  # all that has come is read
    pipe.send(time.monotonic())
    pipe.recv()
    context.destroy(0)


def bare(links: int, targets: list[list[int]], payload: bytes, count: int) -> tuple[float, Cpu, int]:
    """Seconds until all messages have arrived, the sender's CPU, and the number of deliveries."""
    total = sum(len(targets[n % len(targets)]) for n in range(count))
    router = Child(bare_router, links, targets, payload, count)
    counter = Child(bare_sink, router.ask(), links, total)
    try:
        router.ask()
        started = time.monotonic()
        router.pipe.send("go")
        cpu = router.ask()
        return counter.ask() - started, cpu, total
    finally:
        router.end()
        counter.end()
