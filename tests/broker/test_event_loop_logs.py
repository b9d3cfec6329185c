"""Rounds of a loop whose output waits: for a sync, which a rest waits for, and for the word of a standby."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import pytest
from tests.broker.test_event_loop import DEADLINE_SECONDS, Rig

from plimsoll.broker.event_loop import REST_SECONDS, BrokerLoop
from plimsoll.broker.storage.log_disk import RoundOutput


class ScriptedLog:
    """A log whose output is safe when the test says so. `events`: what the loop has asked of it, in order."""

    descriptor = -1
    feed = None

    def __init__(self, events: list[Any]) -> None:
        self.events = events
        self.held: deque[RoundOutput] = deque()
        self.is_safe = self.becomes_safe = False

    def clear(self) -> None: ...

    def end_round(self, output: RoundOutput, now: float) -> None:
        if output:
            self.held.append(output)

    def await_safe(self, seconds: float) -> bool:
        self.events.append(("await", seconds))
        self.is_safe = self.becomes_safe
        return self.is_safe

    def released(self) -> list[RoundOutput]:
        found = list(self.held) if self.is_safe else []
        if found:
            self.held.clear()
            self.events.append(("released", len(found)))
        return found


class Standby:
    """The feed of a standby whose word makes all safe that is held."""

    def __init__(self, log: ScriptedLog, peer: Any) -> None:
        self.log, self.links = log, {peer: object()}

    def claims(self, peer: Any, frames: list[bytes]) -> bool:
        return peer in self.links

    def receive(self, peer: Any, frames: list[bytes], now: float) -> None:
        self.log.events.append("word")
        self.log.is_safe = True

    def next_poll_at(self) -> float:
        return float("inf")

    def data_to_send(self) -> list[Any]:
        return []

    control_to_send = data_to_send


@pytest.fixture
def rig() -> Iterator[Rig]:
    made = Rig()
    yield made
    made.context.destroy(0)
    made.sockets.close()


@pytest.fixture
def log(rig: Rig) -> ScriptedLog:
    found = ScriptedLog(rig.toy.told)
    rig.loop.disk = found  # type: ignore[assignment]  # a stand-in
    return found


def test_what_a_sync_makes_safe_is_sent_before_the_rest_is_over(rig: Rig, log: ScriptedLog):
    log.becomes_safe = True
    rig.data.send(b"x")
    rig.rounds_until(("released", 1))
    (awaited,) = [told[1] for told in rig.toy.told if told[0] == "await"]
    assert 0 < awaited <= REST_SECONDS
    assert all(0 < rest < awaited for rest in rig.rests), "what is left of the rest"
    assert rig.data.poll(DEADLINE_SECONDS * 1000)


def test_without_a_sync_that_ends_it_is_held_and_the_loop_rests(rig: Rig, log: ScriptedLog):
    rig.data.send(b"x")
    rig.rounds_until(("served", 1))
    assert len(rig.rests) == 1
    assert len(log.held) == 1
    assert not rig.data.poll(10)


def test_the_word_of_a_standby_lets_go_before_others_are_served(rig: Rig, log: ScriptedLog):
    standby = rig.dealer(rig.sockets.data.bind("tcp://127.0.0.1:*"))
    standby.send(b"hello")
    rig.rounds_until(("data", b"hello"))
    (peer,) = [peer for output in log.held for peer, data in output.data if data == b"hello"]
    rig.loop._feed = Standby(log, peer)  # type: ignore[assignment]  # a stand-in
    rig.toy.told.clear()
    found = [(b"other", [b"question"]), (peer, [b"stored"])]
    rig.sockets.receive = lambda lane, *limits: iter(found if lane is rig.sockets.data else [])
    rig.toy.tick_at = 1.0
    rig.loop.round()
    assert rig.toy.told[:3] == ["word", ("released", 1), ("data", b"question")]


def test_a_loop_that_waits_for_the_word_of_a_standby_does_not_rest(rig: Rig, monkeypatch: pytest.MonkeyPatch):
    rig.loop.disk = ScriptedLog(rig.toy.told)  # type: ignore[assignment]  # a stand-in
    monkeypatch.setattr(BrokerLoop, "_awaits_standby", True)
    rig.data.send(b"x")
    rig.rounds_until(("served", 1))
    assert rig.rests == []
    assert not [told for told in rig.toy.told if told[0] == "await"]
