"""A host serves its machine in rounds, as a shell does."""

from __future__ import annotations

import random
from collections.abc import Sequence

from plimsoll.core.protocol.wire import Info
from plimsoll.core.transport.link import LinkLimits
from plimsoll.core.transport.overlay_node import Dial, Hangup, OverlayNode
from plimsoll.simulator.engine.event_queue import EventQueue
from plimsoll.simulator.engine.host import Peer, SimulatedHost
from plimsoll.simulator.engine.network import ConnectionQuality, SimulatedNetwork


class Echo(OverlayNode):
    """A machine that answers each frame, and records the calls that it gets."""

    def __init__(self, name: str) -> None:
        super().__init__(Info(name, "client", 1), LinkLimits(), lambda: 1, max_frame_bytes=100)
        self.history: list[object] = []
        self.to_send: list[tuple[Peer, bytes]] = []
        self.calls: list[Dial | Hangup] = []
        self.wake = float("inf")

    def receive(self, peer: Peer, frames: Sequence[bytes], now: float) -> None:
        self.history.append((peer, list(frames)))
        self.to_send += [(peer, b"re " + frame) for frame in frames if not frame.startswith(b"re ")]

    def receive_control(self, peer: Peer, data: bytes, now: float) -> None:
        self.history.append(("control", data))

    def gone(self, peer: Peer, now: float) -> None:
        self.history.append("gone")

    def poll(self, now: float) -> None:
        self.history.append("tick")

    def next_poll_at(self) -> float:
        return self.wake

    def data_to_send(self) -> list[tuple[Peer, bytes]]:
        out, self.to_send = self.to_send, []
        return out

    def dials_to_make(self) -> list[Dial | Hangup]:
        out, self.calls = self.calls, []
        return out


class World:
    def __init__(self) -> None:
        self.schedule = EventQueue()
        self.network = SimulatedNetwork(self.schedule, random.Random(1), ConnectionQuality(0.01, 0.0))
        self.host_a, self.host_b = (SimulatedHost(name, self.schedule, self.network) for name in "ab")
        self.a, self.b = Echo("a"), Echo("b")
        self.host_b.start(lambda: self.b, "sim://b", "sim://b/control")
        self.host_a.start(lambda: self.a)
        self.a.calls = [Dial("bee", "sim://b"), Dial("bee", "sim://b/control", control=True)]

    def run(self, seconds: float = 1.0) -> None:
        self.schedule.run(self.schedule.now + seconds)

    def send(self, *frames: bytes) -> None:
        self.a.to_send += [("bee", frame) for frame in frames]
        self.host_a.wake()


def test_frames_that_arrive_together_share_a_round():
    world = World()
    world.send(b"1", b"2")
    world.run()
    assert next(step for step in world.b.history if isinstance(step, tuple))[1] == [b"1", b"2"]
    assert ("bee", [b"re 1", b"re 2"]) in world.a.history
    assert world.b.history[-1] == "tick", "each round ends with a tick"


def test_control_frames_are_served_first():
    world = World()
    world.run()
    world.b.history.clear()
    world.host_b.on_frame(b"x", b"data", False)
    world.host_b.on_frame(b"y", b"command", True)
    world.run()
    assert world.b.history[:2] == [("control", b"command"), (b"x", [b"data"])]


def test_a_machine_is_woken_at_the_time_that_it_names():
    world = World()
    world.run()
    world.b.history.clear()
    world.b.wake = world.schedule.now + 5.0
    world.host_b.wake()
    world.run(4.9)
    assert world.b.history == ["tick"]
    world.run(0.2)
    assert world.b.history.count("tick") > 1


def test_a_paused_host_serves_its_frames_when_it_resumes():
    world = World()
    world.run()
    world.host_b.pause()
    world.send(b"1")
    world.run()
    assert ("bee", [b"re 1"]) not in world.a.history
    world.host_b.resume()
    world.run()
    assert ("bee", [b"re 1"]) in world.a.history


def test_sending_to_a_crashed_host_is_reported_as_unreachable():
    world = World()
    world.send(b"1")
    world.run()
    peer = next(step[0] for step in world.b.history if isinstance(step, tuple))
    world.host_a.crash()
    world.b.to_send.append((peer, b"x"))
    world.host_b.wake()
    world.run()
    assert "gone" in world.b.history
    assert world.host_a.node is None


def test_queued_frames_are_sent_before_hanging_up():
    world = World()
    world.send(b"1")
    world.run()
    world.a.calls = [Hangup("bee")]
    world.send(b"last")
    world.run()
    assert any(step[1] == [b"last"] for step in world.b.history if isinstance(step, tuple))
    assert [c for c in world.network.connections() if not c.control] == []
