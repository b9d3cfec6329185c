"""The reliable link on a network that drops, doubles, overtakes and breaks: everything arrives once and in order."""

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
    """One life of a link at one side: what was said and heard on it."""

    said: list[int] = field(default_factory=list)
    heard: list[int] = field(default_factory=list)


class Talker(OverlayNode):
    """Says numbers on its link and writes down what it hears, in one conversation per life of the link."""

    def __init__(self, name: str, incarnation: int, draw: random.Random, limits: LinkLimits = LIMITS) -> None:
        super().__init__(Info(name, "client", incarnation), limits, lambda: draw.getrandbits(32), max_frame_bytes=10**6)
        self.talks: dict[int, Conversation] = {}
        self.current: Link | None = None
        self.n = 0

    def talk(self, link: Link) -> Conversation:
        return self.talks.setdefault(link.id, Conversation())

    def on_open(self, link: Link) -> None:
        self.current = link

    def on_lost(self, link: Link) -> None:
        self.current = None

    def on_room(self, link: Link) -> None:
        if link.buffer:
            self.dirty[link] = None

    def on_data(self, link: Link, frame: wire.Data, size: int) -> None:
        for raw in frame.records:
            self.talk(link).heard.append(msgspec.msgpack.decode(raw))
        self.took(link)

    def speak(self) -> None:
        if self.current is not None:
            self.n += 1
            self.talk(self.current).said.append(self.n)
            self.put(self.current, msgspec.msgpack.encode(self.n))


class Pair:
    def __init__(self, seed: int, weather: ConnectionQuality) -> None:
        self.draw = random.Random(seed)
        self.schedule = EventQueue()
        self.network = SimulatedNetwork(self.schedule, self.draw, weather)
        self.hosts = {name: SimulatedHost(name, self.schedule, self.network) for name in "ab"}
        self.lives = 0
        self.talkers: list[Talker] = []
        self.start("b")
        self.start("a")

    def start(self, name: str) -> None:
        self.lives += 1
        talker = Talker(name, self.lives, random.Random(self.draw.getrandbits(32)))
        self.talkers.append(talker)
        self.hosts[name].start(lambda: talker, f"sim://{name}")
        if name == "a":
            talker.dial("b", "sim://b")

    def speak(self) -> None:
        for host in self.hosts.values():
            if isinstance(host.node, Talker):
                for _ in range(self.draw.randrange(4)):
                    host.node.speak()
                host.wake()

    def run(self, seconds: float) -> None:
        self.schedule.run(self.schedule.now + seconds)

    def settle(self) -> None:
        self.network.weather = ConnectionQuality()
        for way in ("ab", "ba"):
            self.network.unwall(*way)
        self.run(20.0)

    def check(self) -> tuple[int, int]:
        """Every life of the link, from both sides: what was heard is what was said, or a beginning of it."""
        ids = {link_id for talker in self.talkers for link_id in talker.talks}
        heard = 0
        for link_id in ids:
            sides = [(t.info.name, t.talks[link_id]) for t in self.talkers if link_id in t.talks]
            if len(sides) == 2:
                (_, one), (_, other) = sides
                assert one.heard == other.said[: len(one.heard)]
                assert other.heard == one.said[: len(other.heard)]
                heard += len(one.heard) + len(other.heard)
            else:
                assert sides[0][1].heard == []
        return heard, len(ids)

    def check_all_arrived(self) -> None:
        a, b = (self.hosts[name].node for name in "ab")
        assert isinstance(a, Talker)
        assert isinstance(b, Talker)
        assert a.current is not None
        assert b.current is not None
        assert a.talk(a.current).heard == b.talk(b.current).said
        assert b.talk(b.current).heard == a.talk(a.current).said


SEEDS = range(150)


@pytest.mark.parametrize(
    "weather",
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
def test_everything_arrives_once_and_in_order(weather):
    total = 0
    for seed in SEEDS:
        pair = Pair(seed, weather)
        for _ in range(20):
            pair.speak()
            pair.run(pair.draw.uniform(0, 0.3))
        pair.settle()
        try:
            heard, _ = pair.check()
            pair.check_all_arrived()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}") from error
        total += heard
    assert total > 10 * len(SEEDS)


def test_reconnects_are_not_noticed():
    for seed in SEEDS:
        pair = Pair(seed, ConnectionQuality(jitter_seconds=0.02))
        for _ in range(30):
            pair.speak()
            pair.run(pair.draw.uniform(0, 0.1))
            if pair.draw.random() < 0.3:
                for connection in pair.network.connections():
                    pair.network.reconnect(connection)
        pair.settle()
        heard, lives = pair.check()
        pair.check_all_arrived()
        assert lives == 1, f"seed {seed}: the link must survive its reconnects"
        assert heard > 30, f"seed {seed}: a pair that says little proves little"


def test_walls_pauses_and_restarts_of_either_side():
    lives_in_all = 0
    for seed in SEEDS:
        pair = Pair(seed, ConnectionQuality(jitter_seconds=0.02))
        for _ in range(30):
            pair.speak()
            pair.run(pair.draw.uniform(0, 0.3))
            misfortune(pair)
        for name, host in pair.hosts.items():
            if host.node is None:
                pair.start(name)
            host.resume()
        pair.settle()
        try:
            lives_in_all += pair.check()[1]
            pair.check_all_arrived()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}") from error
    assert lives_in_all > len(SEEDS), "restarts make new links"


def misfortune(pair: Pair) -> None:
    what, name = pair.draw.random(), pair.draw.choice("ab")
    host = pair.hosts[name]
    if what < 0.15:
        host.crash() if host.node is not None else pair.start(name)
    elif what < 0.25:
        host.resume() if host.is_paused else host.pause()
    elif what < 0.35:
        pair.network.wall(*pair.draw.choice(["ab", "ba"]))
    elif what < 0.45:
        pair.network.unwall(*pair.draw.choice(["ab", "ba"]))
    elif what < 0.55:
        for connection in pair.network.connections():
            pair.network.reconnect(connection)


def test_credit_that_is_lost_is_given_again():
    pair = Pair(1, ConnectionQuality())
    a = pair.hosts["a"].node
    assert isinstance(a, Talker)
    pair.run(0.02)
    assert a.current is not None
    a.current.credit = 0
    a.speak()
    pair.hosts["a"].wake()
    pair.run(5.0)
    pair.check_all_arrived()
    assert pair.check() == (1, 1)
