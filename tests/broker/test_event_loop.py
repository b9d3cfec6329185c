"""The order of a round, the machine's input, and how the loop ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import zmq

from plimsoll.broker.event_loop import REST_SECONDS, BrokerLoop
from plimsoll.broker.monitoring.usage_meter import ProcessUsage
from plimsoll.broker.network.sockets import BrokerSockets
from plimsoll.core.config import BrokerHardware, BrokerLimits
from plimsoll.core.permissions import ALL_PERMISSIONS, NO_NAME_GRANTS, ClientPermissions
from plimsoll.core.transport.overlay_node import Dial, Hangup

DEADLINE_SECONDS = 300


class Toy:
    """A machine that records its input and answers each data frame with itself."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []
        self.out: list[tuple[Any, bytes]] = []
        self.control_out: list[tuple[Any, bytes]] = []
        self.dials: list[Dial | Hangup] = []
        self.left = self.stays = False
        self.grant_of: Callable[[Any], ClientPermissions | None] = lambda peer: ALL_PERMISSIONS
        self.identity_of: Callable[[Any], str] = lambda peer: ""
        self.keys_of: Callable[[str], list[str]] = lambda name: []
        self.name_grants = NO_NAME_GRANTS
        self.tick_at = 0.0

    def receive(self, peer: Any, frames: list[bytes], now: float) -> None:
        self.told.append(("data", *frames))
        self.out += [(peer, data) for data in frames]

    def receive_control(self, peer: Any, data: bytes, now: float) -> None:
        self.told.append(("control", data))
        self.control_out.append((peer, data))

    def gone(self, peer: Any, now: float) -> None:
        self.told.append(("gone", peer))

    def poll(self, now: float) -> None:
        self.told.append(("tick",))

    def next_poll_at(self) -> float:
        return self.tick_at or time.monotonic() + 60

    def data_to_send(self) -> list[tuple[Any, bytes]]:
        out, self.out = self.out, []
        return out

    def control_to_send(self) -> list[tuple[Any, bytes]]:
        out, self.control_out = self.control_out, []
        return out

    def dials_to_make(self) -> list[Dial | Hangup]:
        dials, self.dials = self.dials, []
        return dials

    def served(self, frames: int, seconds: float) -> None:
        self.told.append(("served", frames))
        assert seconds > 0

    def status(self) -> dict[str, Any]:
        return {}

    def regrant(self, now: float) -> None:
        self.told.append(("regrant",))

    def expel(self, peer: Any, text: str, now: float) -> None:
        self.told.append(("expel", text))
        self.out.append((peer, text.encode()))

    def leave(self, now: float) -> None:
        self.told.append(("leave",))
        self.left = not self.stays

    def done(self) -> bool:
        return self.left


class Quiet:
    """Only the test sends signals."""

    def __init__(self) -> None:
        self.signals = 0
        self.descriptors: list[int] = []
        self.orphaned = False

    def clear(self) -> None: ...

    def parent_is_gone(self) -> bool:
        return self.orphaned


class Rig:
    def __init__(self) -> None:
        self.toy, self.watch, self.sockets = Toy(), Quiet(), BrokerSockets(BrokerLimits())
        self.usage: list[ProcessUsage] = []
        self.rests: list[float] = []
        self.loop = BrokerLoop(
            self.toy,
            self.sockets,
            self.watch,  # type: ignore[arg-type]  # a stand-in
            BrokerHardware(),
            leave_seconds=0.2,
            on_usage=self.usage.append,
            rest=self.rests.append,
        )
        self.context: zmq.Context = zmq.Context()
        self.kept: list[zmq.Socket] = []
        self.data = self.dealer(self.sockets.data.bind("tcp://127.0.0.1:*"))
        self.control = self.dealer(self.sockets.control.bind("tcp://127.0.0.1:*"))

    def dealer(self, endpoint: str) -> zmq.Socket:
        self.kept.append(self.context.socket(zmq.DEALER))
        self.kept[-1].connect(endpoint)
        return self.kept[-1]

    def rounds_until(self, what: tuple[Any, ...]) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while what not in self.toy.told:
            assert time.monotonic() < deadline, self.toy.told
            self.loop.round()


@pytest.fixture
def rig() -> Iterator[Rig]:
    made = Rig()
    yield made
    made.context.destroy(0)
    made.sockets.close()


def test_frames_go_in_and_answers_come_out(rig: Rig):
    rig.data.send(b"question")
    rig.control.send(b"order")
    rig.rounds_until(("data", b"question"))
    rig.rounds_until(("control", b"order"))
    for dealer, said in ((rig.data, b"question"), (rig.control, b"order")):
        assert dealer.poll(DEADLINE_SECONDS * 1000)
        assert dealer.recv() == said


def test_control_comes_first_however_much_data_there_is(rig: Rig):
    for lane in (rig.sockets.data, rig.sockets.control):
        lane.drain(0, 0)
    rig.data.send(b"first")
    rig.control.send(b"first")
    rig.rounds_until(("data", b"first"))
    rig.rounds_until(("control", b"first"))
    for n in range(2000):
        rig.data.send(b"%d" % n)
    rig.control.send(b"urgent")
    deadline = time.monotonic() + DEADLINE_SECONDS
    rig.sockets.wait(0)  # what the last round found ready is not what is ready now
    while not {rig.sockets.data.router, rig.sockets.control.router} <= rig.sockets._ready.keys():
        assert time.monotonic() < deadline
        rig.sockets.wait(0.01)
    rig.toy.told.clear()
    rig.loop.round()
    kinds = [told[0] for told in rig.toy.told]
    assert kinds.index("control") < kinds.index("data")
    assert sum(len(told) - 1 for told in rig.toy.told if told[0] == "data") <= 256


def test_a_round_with_frames_is_measured_and_one_without_is_not(rig: Rig):
    rig.data.send(b"x")
    rig.rounds_until(("served", 1))
    rig.toy.told.clear()
    rig.toy.tick_at = time.monotonic()
    rig.loop.round()
    assert rig.toy.told == [("tick",)]


def test_a_round_that_has_taken_everything_is_followed_by_a_rest(rig: Rig):
    rig.data.send(b"x")
    rig.rounds_until(("served", 1))
    assert len(rig.rests) == 1
    assert 0 < rig.rests[0] <= REST_SECONDS


def test_there_is_no_rest_after_a_round_without_frames(rig: Rig):
    rig.toy.tick_at = time.monotonic()
    rig.loop.round()
    assert rig.toy.told == [("tick",)]
    assert not rig.rests


def test_there_is_no_rest_after_a_round_that_ended_at_its_limit(rig: Rig):
    rig.loop._round_frames = 1
    rig.data.send(b"x")
    rig.rounds_until(("served", 1))
    assert not rig.rests


def test_a_tick_is_waited_for_but_not_longer(rig: Rig):
    rig.loop.round()
    for wait in (0.0004, 0.0203):
        rig.toy.tick_at = started = time.monotonic() + wait
        rig.toy.told.clear()
        deadline = started + DEADLINE_SECONDS
        while time.monotonic() < rig.toy.tick_at:
            assert time.monotonic() < deadline
            rig.loop.round()
        assert len(rig.toy.told) <= 4, "the loop spins"


def test_the_machine_is_told_who_is_gone(rig: Rig):
    rig.toy.out.append((b"\0none", b"x"))
    rig.toy.tick_at = time.monotonic()
    rig.rounds_until(("gone", b"\0none"))


def test_dials_are_made_before_frames_are_sent(rig: Rig):
    server = rig.context.socket(zmq.ROUTER)
    rig.kept.append(server)
    server.bind("tcp://127.0.0.1:*")
    rig.toy.dials.append(Dial("h", server.getsockopt(zmq.LAST_ENDPOINT).rstrip(b"\0").decode()))
    rig.toy.out.append(("h", b"hello"))
    rig.toy.tick_at = time.monotonic()
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not server.poll(1):
        assert time.monotonic() < deadline
        rig.loop.round()
    assert server.recv_multipart()[1] == b"hello"


def test_use_of_the_process_is_reported(rig: Rig):
    rig.toy.tick_at = time.monotonic()
    rig.loop.round()
    assert [usage.memory_bytes > 0 for usage in rig.usage] == [True]


def test_a_signal_makes_it_leave_and_it_ends_when_the_machine_has_left(rig: Rig):
    rig.watch.signals = 1
    rig.toy.tick_at = time.monotonic()
    rig.loop.run()
    assert ("leave",) in rig.toy.told


@pytest.mark.parametrize("why", ["time is over", "asked twice", "its parent is gone"])
def test_a_machine_that_cannot_leave_does_not_hold_the_process(rig: Rig, why: str):
    rig.toy.stays = True
    rig.watch.signals = 2 if why == "asked twice" else 1
    rig.loop.leave_seconds = 0.2 if why == "time is over" else 3600
    if why == "its parent is gone":
        rig.watch.signals, rig.watch.orphaned = 0, True
    rig.toy.tick_at = time.monotonic()
    rig.loop.run()
    assert rig.toy.told.count(("leave",)) == 1


def test_is_leaving_is_true_before_the_loop_has_noticed(rig: Rig):
    assert not rig.loop.is_leaving
    rig.watch.signals = 1
    assert rig.loop.is_leaving


def test_a_loop_whose_parent_has_gone_is_leaving(rig: Rig):
    rig.watch.orphaned = True
    rig.toy.tick_at = time.monotonic()
    rig.loop.round()
    assert rig.loop.is_leaving


def test_rounds_with_frames_are_counted_by_how_long_they_took(rig: Rig):
    rig.data.send(b"x")
    rig.rounds_until(("served", 1))
    assert sum(rig.loop.durations.counts) == 1
    assert rig.loop.durations.seconds > 0
    rig.toy.tick_at = time.monotonic()
    rig.loop.round()
    assert sum(rig.loop.durations.counts) == 1


def test_without_keys_no_peer_is_refused(rig: Rig):
    assert rig.loop.refusals() == {}
