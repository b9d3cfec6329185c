"""Connections behave as those of ZeroMQ: frames stay in order, reconnects are silent, and change the routing id."""

from __future__ import annotations

import random

import pytest

from plimsoll.simulator.engine.event_queue import EventQueue
from plimsoll.simulator.engine.network import ATTEMPT_SECONDS, ConnectionQuality, Peer, SimulatedNetwork


class Box:
    """A party that keeps the frames that arrive."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.got: list[tuple[Peer, bytes]] = []

    def on_frame(self, peer: Peer, frame: bytes, control: bool) -> None:
        self.got.append((peer, frame))

    @property
    def frames(self) -> list[bytes]:
        return [frame for _, frame in self.got]


class World:
    def __init__(self, seed: int = 1, **quality: float) -> None:
        self.schedule = EventQueue()
        self.network = SimulatedNetwork(self.schedule, random.Random(seed), ConnectionQuality(**quality))
        self.a, self.b = Box("a"), Box("b")
        self.network.listen(self.b, "sim://b")
        self.network.dial(self.a, "bee", "sim://b", False)

    def send(self, *frames: bytes) -> None:
        for frame in frames:
            assert self.network.send(self.a, "bee", frame, False)

    def answer(self, peer: Peer, *frames: bytes) -> list[bool]:
        return [self.network.send(self.b, peer, frame, False) for frame in frames]

    def run(self, seconds: float = 1.0) -> None:
        self.schedule.run(self.schedule.now + seconds)

    @property
    def connection(self):
        return self.network.connections()[0]


NUMBERS = [bytes([i]) for i in range(50)]


def test_frames_arrive_in_order_both_ways():
    world = World(jitter_seconds=0.5)
    world.send(*NUMBERS)
    world.run(2.0)
    assert world.b.frames == NUMBERS
    assert all(world.answer(world.b.got[0][0], *NUMBERS))
    world.run(2.0)
    assert world.a.got == [("bee", frame) for frame in NUMBERS]


def test_frames_wait_until_the_endpoint_listens():
    world = World()
    world.network.dial(world.a, "cee", "sim://c", False)
    assert world.network.send(world.a, "cee", b"early", False)
    world.run(1.0)
    late = Box("c")
    world.network.listen(late, "sim://c")
    world.run(1.0)
    assert late.frames == [b"early"]


def test_a_reconnect_loses_frames_in_flight_and_changes_the_routing_id():
    world = World(delay_seconds=0.1, jitter_seconds=0.0)
    world.send(b"1")
    world.run(0.15)
    before = world.b.got[0][0]
    assert world.answer(before, b"back") == [True]
    world.send(b"lost")
    world.network.reconnect(world.connection)
    assert world.answer(before, b"refused") == [False], "the old routing id is unreachable"
    world.send(b"waits")
    world.run(1.0)
    assert world.b.frames == [b"1", b"waits"]
    assert world.a.frames == []
    assert world.b.got[-1][0] != before
    assert world.network.lost == 2


def test_a_partition_holds_the_frames_of_one_direction_in_order():
    world = World()
    world.send(b"0")
    world.run()
    peer = world.b.got[0][0]
    world.network.partition("a", "b")
    world.send(*NUMBERS[1:10])
    world.answer(peer, b"through")
    world.run()
    assert world.b.frames == [b"0"]
    assert world.a.frames == [b"through"]
    world.network.rejoin("a", "b")
    world.send(*NUMBERS[10:20])
    world.run()
    assert world.b.frames == [b"0", *NUMBERS[1:20]]


def test_a_partition_prevents_new_connections():
    world = World()
    world.run()
    world.network.partition("a", "b")
    world.network.reconnect(world.connection)
    world.send(b"1")
    world.run()
    assert world.b.frames == []
    world.network.rejoin("a", "b")
    world.run()
    assert world.b.frames == [b"1"]


def test_a_crashed_party_cannot_be_reached():
    world = World()
    world.send(b"1")
    world.run()
    peer = world.b.got[0][0]
    world.network.close_all(world.a)
    assert world.answer(peer, b"x") == [False]
    with pytest.raises(KeyError, match="has not dialled"):
        world.send(b"2")


def test_a_restarted_listener_receives_waiting_frames_but_not_those_in_flight():
    world = World(delay_seconds=0.1)
    world.run()
    world.send(b"under way")
    world.network.close_all(world.b)
    world.send(b"waits")
    world.run(5.0)
    again = Box("b")
    world.network.listen(again, "sim://b")
    world.run()
    assert again.frames == [b"waits"]


def test_hanging_up_sends_queued_frames_first():
    world = World(delay_seconds=0.1, jitter_seconds=0.0)
    world.run()
    world.send(b"bye")
    world.network.hang_up(world.a, "bee", False)
    world.run(0.05)
    world.run(0.1)
    assert world.b.frames == [b"bye"]
    assert world.answer(world.b.got[0][0], b"x") == [False]
    world.run(5.0)
    assert world.network.connections() == []


def test_bandwidth_spaces_frames():
    world = World(bytes_per_second=10.0, delay_seconds=0.0, jitter_seconds=0.0)
    world.run(0.1)
    world.send(b"12345", b"67890")
    world.run(0.4)
    assert world.b.frames == []
    world.run(0.2)
    assert world.b.frames == [b"12345"]
    world.run(0.5)
    assert world.b.frames == [b"12345", b"67890"]


def test_a_lossy_connection_drops_repeats_and_reorders():
    world = World(drop=0.2, duplicate=0.2, reorder=0.5, jitter_seconds=0.5)
    world.run()
    world.send(*NUMBERS)
    world.run(2.0)
    got = world.b.frames
    assert len(set(got)) < len(NUMBERS)
    assert len(got) > len(set(got))
    assert got != sorted(got)


def test_the_same_seed_gives_the_same_run():
    def digest(seed: int) -> int:
        world = World(seed, jitter_seconds=0.1)
        world.send(*NUMBERS)
        world.run()
        return world.network.digest

    assert digest(1) == digest(1)
    assert digest(1) != digest(2)


def test_a_lost_node_closes_nothing_and_another_process_is_found_by_dialling_anew():
    world = World()
    world.send(b"1")
    world.run()
    world.network.lose(world.b)
    world.send(b"2")
    world.run()
    other = Box("c")
    world.network.listen(other, "sim://b")
    world.send(b"3")
    world.run(10.0)
    assert (world.b.frames, other.frames) == ([b"1"], []), "nothing has arrived, and nothing was refused"
    world.network.dial(world.a, "bee", "sim://b", False)
    world.send(b"4")
    world.run()
    assert other.frames == [b"4"]


def test_an_attempt_to_connect_to_a_lost_node_ends_after_a_while():
    world = World()
    world.network.lose(world.b)
    world.network.dial(world.a, "bee", "sim://b", False)
    world.send(b"1")
    world.run(0.5)
    other = Box("c")
    world.network.listen(other, "sim://b")
    world.send(b"2")
    world.run(ATTEMPT_SECONDS)
    world.send(b"3")
    world.run()
    assert other.frames == [b"3"]


def test_what_a_lost_node_had_dialled_is_silent_too():
    world = World()
    world.send(b"1")
    world.run()
    peer = world.b.got[0][0]
    world.network.lose(world.a)
    assert world.answer(peer, b"2") == [True], "the other side does not notice"
    world.run()
    assert world.a.frames == []
