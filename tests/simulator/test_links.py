"""The reliable link on a network that drops, repeats, reorders and disconnects: every frame arrives once, in order."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import msgspec
import pytest

from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import Info
from plimsoll.core.transport.link import Link, LinkLimits
from plimsoll.core.transport.overlay_node import OverlayNode
from plimsoll.simulator.engine.event_queue import EventQueue
from plimsoll.simulator.engine.host import SimulatedHost
from plimsoll.simulator.engine.network import ConnectionQuality, SimulatedNetwork

LIMITS = LinkLimits(window_bytes=2_000, window_frames=8, heartbeat_seconds=0.3, dead_seconds=30.0)


@dataclass
class Conversation:
    """One life of a link at one side: the numbers sent and received on it."""

    sent: list[int] = field(default_factory=list)
    received: list[int] = field(default_factory=list)


class NumberSender(OverlayNode):
    """Sends rising numbers on its link, and records those that it receives, per life of the link."""

    def __init__(self, name: str, incarnation: int, rng: random.Random, limits: LinkLimits = LIMITS) -> None:
        super().__init__(Info(name, "client", incarnation), limits, lambda: rng.getrandbits(32), max_frame_bytes=10**6)
        self.conversations: dict[int, Conversation] = {}
        self.current: Link | None = None
        self.n = 0

    def conversation(self, link: Link) -> Conversation:
        return self.conversations.setdefault(link.id, Conversation())

    def on_open(self, link: Link) -> None:
        self.current = link

    def on_lost(self, link: Link) -> None:
        self.current = None

    def on_room(self, link: Link) -> None:
        if link.buffer:
            self.dirty[link] = None

    def on_data(self, link: Link, frame: wire.Data, size: int) -> None:
        for raw in frame.records:
            self.conversation(link).received.append(msgspec.msgpack.decode(raw))
        self.took(link)

    def send_number(self) -> None:
        if self.current is not None:
            self.n += 1
            self.conversation(self.current).sent.append(self.n)
            self.put(self.current, msgspec.msgpack.encode(self.n))


class Pair:
    def __init__(self, seed: int, quality: ConnectionQuality) -> None:
        self.rng = random.Random(seed)
        self.schedule = EventQueue()
        self.network = SimulatedNetwork(self.schedule, self.rng, quality)
        self.hosts = {name: SimulatedHost(name, self.schedule, self.network) for name in "ab"}
        self.lives = 0
        self.nodes: list[NumberSender] = []
        self.start("b")
        self.start("a")

    def start(self, name: str) -> None:
        self.lives += 1
        node = NumberSender(name, self.lives, random.Random(self.rng.getrandbits(32)))
        self.nodes.append(node)
        self.hosts[name].start(lambda: node, f"sim://{name}")
        if name == "a":
            node.dial("b", "sim://b")

    def send_some(self) -> None:
        for host in self.hosts.values():
            if isinstance(host.node, NumberSender):
                for _ in range(self.rng.randrange(4)):
                    host.node.send_number()
                host.wake()

    def run(self, seconds: float) -> None:
        self.schedule.run(self.schedule.now + seconds)

    def settle(self) -> None:
        self.network.quality = ConnectionQuality()
        for way in ("ab", "ba"):
            self.network.rejoin(*way)
        self.run(20.0)

    def check(self) -> tuple[int, int]:
        """In every life of the link each side received a prefix of what the other sent.

        Returns how many numbers were received, and in how many lives.
        """
        ids = {link_id for node in self.nodes for link_id in node.conversations}
        received = 0
        for link_id in ids:
            sides = [node.conversations[link_id] for node in self.nodes if link_id in node.conversations]
            if len(sides) == 2:
                one, other = sides
                assert one.received == other.sent[: len(one.received)]
                assert other.received == one.sent[: len(other.received)]
                received += len(one.received) + len(other.received)
            else:
                assert sides[0].received == []
        return received, len(ids)

    def check_all_arrived(self) -> None:
        a, b = (self.hosts[name].node for name in "ab")
        assert isinstance(a, NumberSender)
        assert isinstance(b, NumberSender)
        assert a.current is not None
        assert b.current is not None
        assert a.conversation(a.current).received == b.conversation(b.current).sent
        assert b.conversation(b.current).received == a.conversation(a.current).sent


SEEDS = range(150)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "quality",
    [
        ConnectionQuality(),
        ConnectionQuality(jitter_seconds=0.2),
        ConnectionQuality(drop=0.1),
        ConnectionQuality(duplicate=0.2),
        ConnectionQuality(reorder=0.3, jitter_seconds=0.05),
        ConnectionQuality(drop=0.05, duplicate=0.05, reorder=0.1, jitter_seconds=0.05),
    ],
    ids=["calm", "jitter", "drop", "duplicate", "reorder", "all"],
)
def test_everything_arrives_once_and_in_order(quality):
    total = 0
    for seed in SEEDS:
        pair = Pair(seed, quality)
        for _ in range(20):
            pair.send_some()
            pair.run(pair.rng.uniform(0, 0.3))
        pair.settle()
        try:
            received, _ = pair.check()
            pair.check_all_arrived()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}") from error
        total += received
    assert total > 10 * len(SEEDS)


def test_a_link_survives_its_reconnects():
    for seed in SEEDS:
        pair = Pair(seed, ConnectionQuality(jitter_seconds=0.02))
        for _ in range(30):
            pair.send_some()
            pair.run(pair.rng.uniform(0, 0.1))
            if pair.rng.random() < 0.3:
                for connection in pair.network.connections():
                    pair.network.reconnect(connection)
        pair.settle()
        received, lives = pair.check()
        pair.check_all_arrived()
        assert lives == 1, f"seed {seed}: the link must survive its reconnects"
        assert received > 30, f"seed {seed}: a pair that sends little proves little"


def test_partitions_pauses_and_restarts_of_either_side():
    total_lives = 0
    for seed in SEEDS:
        pair = Pair(seed, ConnectionQuality(jitter_seconds=0.02))
        for _ in range(30):
            pair.send_some()
            pair.run(pair.rng.uniform(0, 0.3))
            inject_fault(pair)
        for name, host in pair.hosts.items():
            if host.node is None:
                pair.start(name)
            host.resume()
        pair.settle()
        try:
            total_lives += pair.check()[1]
            pair.check_all_arrived()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}") from error
    assert total_lives > len(SEEDS), "restarts make new links"


def inject_fault(pair: Pair) -> None:
    kind, name = pair.rng.random(), pair.rng.choice("ab")
    host = pair.hosts[name]
    if kind < 0.15:
        host.crash() if host.node is not None else pair.start(name)
    elif kind < 0.25:
        host.resume() if host.is_paused else host.pause()
    elif kind < 0.35:
        pair.network.partition(*pair.rng.choice(["ab", "ba"]))
    elif kind < 0.45:
        pair.network.rejoin(*pair.rng.choice(["ab", "ba"]))
    elif kind < 0.55:
        for connection in pair.network.connections():
            pair.network.reconnect(connection)


def test_lost_credit_is_granted_again():
    pair = Pair(1, ConnectionQuality())
    a = pair.hosts["a"].node
    assert isinstance(a, NumberSender)
    pair.run(0.02)
    assert a.current is not None
    a.current.credit = 0
    a.send_number()
    pair.hosts["a"].wake()
    pair.run(5.0)
    pair.check_all_arrived()
    assert pair.check() == (1, 1)
