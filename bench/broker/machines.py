"""Machines without sockets: the cost of a round of an edge and of a head, and where the time goes.

python -m bench.broker.machines            figures
python -m bench.broker.machines --profile  the same under cProfile
"""

from __future__ import annotations

import argparse
import cProfile
import itertools
import pstats
import time
import timeit
from collections.abc import Callable, Hashable
from typing import Any

from bench.broker.actors import CLUSTER, EDGE, EPOCH, HEAD, CountingClient, Feeder, bodies_of, credit_in, spread
from bench.matching.workloads import workload
from msgspec import Raw

from plimsoll.core.config import BrokerConfig, BrokerLimits, LinkSecurity, PeerBroker
from plimsoll.core.edge.machine import Edge
from plimsoll.core.head.log import Log, LogEntry
from plimsoll.core.head.machine import Head
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import Info

PLAIN = LinkSecurity(plain=True)
# A queue that no run fills: a slow client waits in it, since the stand-in for the head has no log to fetch from.
PATIENT = BrokerLimits(publisher_window=1 << 20, dead_seconds=600.0, queue_bytes=1 << 30)


def edge_config(
    data: str = "tcp://127.0.0.1:1", control: str = "tcp://127.0.0.1:2", policy: dict[str, Any] | None = None
) -> BrokerConfig:
    head = PeerBroker(name=HEAD, data="tcp://127.0.0.1:3", control="tcp://127.0.0.1:4")
    return BrokerConfig(
        name=EDGE, role="edge", cluster=CLUSTER, data=data, control=control, head=head, security=PLAIN, limits=PATIENT,
        policy=policy,
    )  # fmt: skip


def head_config(data: str = "tcp://127.0.0.1:3", control: str = "tcp://127.0.0.1:4") -> BrokerConfig:
    return BrokerConfig(
        name=HEAD,
        role="head",
        cluster=CLUSTER,
        data=data,
        control=control,
        edges=(EDGE,),
        security=PLAIN,
        limits=PATIENT,
    )


class EdgeRig:
    """An edge between a feeder and its clients, in one thread and in virtual time. `policy` is that of its cluster."""

    def __init__(self, texts: list[str], bodies: list[bytes], links: int, policy: dict[str, Any] | None = None) -> None:
        ids = itertools.count(1)
        self.now = 1.0
        self.bodies = bodies
        self.feeder = Feeder(lambda: next(ids))
        self.edge = Edge(edge_config(policy=policy), EPOCH, lambda: next(ids))
        self.clients: dict[Hashable, CountingClient] = {
            b"%04d" % i: CountingClient(f"client{i}", 1_000_000 + i, share)
            for i, share in enumerate(spread(texts, links))
        }
        self.edge_seconds = self.ack_seconds = 0.0
        for _ in range(3):
            self.exchange()
        for peer, client in self.clients.items():
            self._to_edge(peer, [client.hello()])
        rounds = 200 + len(texts)
        for _ in range(rounds):
            if all(c.subacks == len(c.subscribers) for c in self.clients.values()):
                break
            self.exchange()
        else:
            raise RuntimeError(f"not all clients were subscribed after {rounds} rounds")
        for client in self.clients.values():
            client.deliveries = client.frames = 0
        self.edge_seconds = 0.0

    def _to_edge(self, peer: Hashable, frames: list[bytes]) -> None:
        started = time.thread_time()
        self.edge.receive(peer, frames, self.now)
        self.edge_seconds += time.thread_time() - started

    def exchange(self) -> None:
        """One round of the feeder, the edge and its clients."""
        self.now += 0.001
        self.feeder.poll(self.now)
        if fed := [data for _, data in self.feeder.data_to_send()]:
            self._to_edge(HEAD, fed)
        started = time.thread_time()
        self.edge.poll(self.now)
        out = self.edge.data_to_send()
        self.edge_seconds += time.thread_time() - started
        self.edge.control_to_send(), self.edge.dials_to_make()
        for peer, data in out:
            if peer == HEAD:
                self.feeder.receive(b"edge", [data], self.now)
            else:
                self.to_client(peer, data)

    def to_client(self, peer: Hashable, data: bytes) -> None:
        """Let a client take a frame, and the edge its acknowledgement."""
        if answers := self.clients[peer].receive(data):
            before = self.edge_seconds
            self._to_edge(peer, answers)
            self.ack_seconds += self.edge_seconds - before

    def feed(self, publications: int, per_round: int) -> None:
        for piece_at in range(0, publications, per_round):
            for piece in self.feeder.encoded(self.bodies, min(per_round, publications - piece_at)):
                self.feeder.put(self.feeder.edge, piece)  # type: ignore[arg-type]  # `EdgeRig` is not made without an edge
            self.exchange()


class HeadRig:
    """A head with one publisher, and one edge whose cover matches a share of the publications."""

    def __init__(self, covers: list[str], bodies: list[bytes]) -> None:
        ids = itertools.count(1)
        self.now = 1.0
        self.bodies = bodies
        self.head = Head(head_config(), EPOCH, lambda: next(ids))
        self.edge = CountingClient(EDGE, 77, [])
        self.publisher = CountingClient("publisher", 78, [])
        self.seq = self.through = 0
        self.head_seconds = 0.0
        cover = msg.Cover(1, [msg.CoverItem(i, text) for i, text in enumerate(covers)], [])
        self._to_head(b"edge", [wire.hello_frame(77, 0, False, Info(EDGE, "edge", EPOCH))])
        self._to_head(b"pub", [wire.hello_frame(78, 0, False, Info("publisher", "client", EPOCH))])
        self.exchange()
        self._to_head(b"edge", [self._frame(self.edge, [wire.encode(msg.EdgeReport("", "", cover, []))])])
        self._to_head(b"pub", [self._frame(self.publisher, [wire.encode(msg.Open(1, "publisher", 1))])])
        self.exchange()
        self.head_seconds = 0.0
        self.edge.deliveries = 0

    def _frame(self, client: CountingClient, chunks: list[bytes]) -> bytes:
        client.sent += 1
        return wire.data_frame(
            client.link, 0, client.sent, client.received, client.received + 1024, chunks, len(chunks)
        )

    def _to_head(self, peer: Hashable, frames: list[bytes]) -> None:
        started = time.thread_time()
        self.head.receive(peer, frames, self.now)
        self.head_seconds += time.thread_time() - started

    def exchange(self) -> None:
        self.now += 0.001
        started = time.thread_time()
        self.head.poll(self.now)
        out = self.head.data_to_send()
        self.head_seconds += time.thread_time() - started
        self.head.control_to_send(), self.head.dials_to_make()
        for peer, data in out:
            client = self.edge if peer == b"edge" else self.publisher
            if client is self.publisher:
                self.through = credit_in(wire.decode_frame(data), self.through)
            if answers := client.receive(data):
                self._to_head(peer, answers)

    def feed(self, publications: int, per_round: int) -> None:
        last = self.seq + publications
        while self.seq < last:
            chunks = []
            for _ in range(min(per_round, last - self.seq, self.through - self.seq)):
                self.seq += 1
                chunks.append(
                    wire.encode(msg.Publish(1, self.seq, 0, 1, Raw(self.bodies[self.seq % len(self.bodies)])))
                )
            if chunks:
                self._to_head(b"pub", [self._frame(self.publisher, chunks)])
            self.exchange()


def measure_edge(links: int, per_round: int, publications: int, profile: bool, subscriptions: int = 2000) -> None:
    load = workload("paper", subscriptions)
    rig = EdgeRig([str(s) for s in load.subscriptions()], bodies_of(load.publications), links)
    rig.feed(publications // 5, per_round)
    before = sum(c.deliveries for c in rig.clients.values())
    frames_before = sum(c.frames for c in rig.clients.values())
    rig.edge_seconds = 0.0
    profiler = cProfile.Profile() if profile else None
    if profiler:
        profiler.enable()
    rig.feed(publications, per_round)
    if profiler:
        profiler.disable()
    done = sum(c.deliveries for c in rig.clients.values()) - before
    frames = sum(c.frames for c in rig.clients.values()) - frames_before
    print(
        f"edge  {links:4d} links, {per_round:4d} publications a round: {done / publications:5.1f} deliveries each, "
        f"{frames / publications:5.1f} frames each; {rig.edge_seconds / done * 1e6:6.2f} us/delivery, "
        f"{rig.edge_seconds / frames * 1e6:6.2f} us/frame, {rig.edge_seconds / publications * 1e6:.1f} us/publication; "
        f"{done / rig.edge_seconds:12,.0f} deliveries per CPU second"
    )
    if profiler:
        pstats.Stats(profiler).sort_stats("tottime").print_stats(22)


def measure_head(per_round: int, publications: int, profile: bool, subscriptions: int = 2000) -> None:
    load = workload("paper", subscriptions)
    rig = HeadRig([str(s) for s in load.subscriptions()[:60]], bodies_of(load.publications))
    rig.feed(publications // 5, per_round)
    rig.head_seconds, rig.edge.deliveries = 0.0, 0
    profiler = cProfile.Profile() if profile else None
    if profiler:
        profiler.enable()
    rig.feed(publications, per_round)
    if profiler:
        profiler.disable()
    print(
        f"head  {per_round:4d} publications a round: {rig.edge.deliveries / publications:4.2f} relayed each; "
        f"{rig.head_seconds / publications * 1e6:6.2f} us/publication; "
        f"{publications / rig.head_seconds:10,.0f} publications per CPU second"
    )
    if profiler:
        pstats.Stats(profiler).sort_stats("tottime").print_stats(22)


def timed(work: Callable[[], object], times: int) -> float:
    """Microseconds of one call, the fastest of five rounds."""
    return min(timeit.repeat(work, number=times, repeat=5)) / times * 1e6


def costs() -> dict[str, float]:
    """Costs of single steps in microseconds, and the shares of metering and acknowledgements in an edge's time."""
    load = workload("paper", 2000)
    texts, bodies = [str(s) for s in load.subscriptions()], bodies_of(load.publications)
    feeder = Feeder(lambda: 1)
    piece = feeder.encoded(bodies, 1)[0]
    publish = wire.encode(msg.Publish(1, 1, 0, 1, Raw(bodies[0])))
    record = msg.decode(msg.from_client, publish)
    assert isinstance(record, msg.Publish)
    pub = msg.Pub(1, HEAD, EPOCH, 1, "publisher", 1, 1, 0, 1, record.body)
    log, entry = Log(1 << 26), LogEntry(piece, (((HEAD, EPOCH), 1),), False)
    rig = EdgeRig(texts, bodies, 100)
    attributes = load.publications[0]
    found = {
        "decode a publication at an edge (us)": timed(lambda: msg.to_edge.decode(piece), 10_000),
        "decode a publication and its body at a head (us)": timed(
            lambda: msg.body.decode(msg.from_client.decode(publish).body),
            10_000,
        ),
        "encode a publication at a head (us)": timed(lambda: wire.encode(pub), 10_000),
        "append it to the log (us)": timed(lambda: log.append(entry), 10_000),
        "match it against 2,000 subscriptions, ids taken (us)": timed(
            lambda: list(rig.edge.index.match(attributes)), 2_000
        ),
    }
    delivery = wire.encode(msg.Deliver(1, msg.to_edge.decode(piece)))
    found["decode a delivery at a client (us)"] = timed(lambda: msg.to_client.decode(delivery), 10_000)
    for per_round in (1, 64):
        found |= _shares(texts, bodies, per_round)
    return found


def _shares(texts: list[str], bodies: list[bytes], per_round: int) -> dict[str, float]:
    """An edge's time with and without metering, in turns, and the share that acknowledgements take."""
    publications = 400 if per_round == 1 else 1280
    metered, unmetered = EdgeRig(texts, bodies, 100), EdgeRig(texts, bodies, 100)
    unmetered.edge.served = lambda frames, seconds: None
    found: dict[str, list[float]] = {"metered": [], "unmetered": [], "acks": []}
    for _ in range(7):
        for name, rig in (("metered", metered), ("unmetered", unmetered)):
            rig.edge_seconds = rig.ack_seconds = 0.0
            rig.feed(publications, per_round)
            found[name].append(rig.edge_seconds / publications)
        found["acks"].append(metered.ack_seconds / metered.edge_seconds)
    whole, case = min(found["metered"]), f"{per_round} publications a round"
    deliveries = sum(c.deliveries for c in metered.clients.values()) / (7 * publications)
    each = {}
    if per_round == 1:
        each["metering of one delivery, one publication a round (us)"] = (
            max(0.0, whole - min(found["unmetered"])) / deliveries * 1e6
        )
    return each | {
        f"edge, {case}: machine time of a publication (us)": whole * 1e6,
        f"edge, {case}: share of metering": 1 - min(found["unmetered"]) / whole,
        f"edge, {case}: share of acknowledgements": sorted(found["acks"])[3],
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.broker.machines")
    parser.add_argument("--profile", action="store_true", help="run under cProfile and print the hottest functions")
    profile = parser.parse_args().profile
    for links, per_round, publications in ((100, 1, 2000), (100, 64, 6400), (500, 64, 3200), (10, 64, 6400)):
        measure_edge(links, per_round, publications, profile)
    measure_edge(50, 64, 20000, profile, subscriptions=50)
    for per_round, publications in ((1, 10000), (64, 30000)):
        measure_head(per_round, publications, profile)


if __name__ == "__main__":
    main()
