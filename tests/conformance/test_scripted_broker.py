"""A scripted broker answers as docs/protocol.md says unless a fault is set, and finds what a client must not send."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.conformance.raw_client import LINK, PEER, data, hello

from plimsoll.conformance.client_under_test import ReceivedFrame
from plimsoll.conformance.rules import RuleBrokenError
from plimsoll.conformance.scripted_broker import ScriptedBroker
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire


class Outside:
    """A broker, and what it has sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[bytes, wire.Frame]] = []
        self.broker = ScriptedBroker("e1", "edge", 12, self.send)

    def send(self, broker: str, peer: bytes, frames: Sequence[bytes], note: str) -> None:
        self.sent += [(peer, wire.decode_frame(each)) for each in frames]

    def take(self, *frames: bytes, peer: bytes = PEER) -> list[wire.Frame]:
        """The answers to these frames."""
        before = len(self.sent)
        for each in frames:
            self.broker.receive(ReceivedFrame("e1", peer, each))
        return [frame for _, frame in self.sent[before:]]


@pytest.fixture
def one() -> Outside:
    return Outside()


def kinds(frames: list[wire.Frame]) -> list[int]:
    return [frame.kind for frame in frames]


def test_a_link_opens_with_credit(one: Outside):
    ok, ack = one.take(hello())
    assert isinstance(ok, wire.HelloOk)
    assert (ok.link, ok.received, ok.lost) == (LINK, 0, False)
    assert isinstance(ack, wire.Ack)
    assert ack.credit == 1024


def test_records_wait_and_are_acknowledged(one: Outside):
    one.take(hello())
    (ack,) = one.take(data(1, msg.Pause(4)))
    assert isinstance(ack, wire.Ack)
    assert ack.ack == 1
    assert [received.record for received in one.broker.inbox] == [msg.Pause(4)]


def test_the_link_outlives_its_connection(one: Outside):
    one.take(hello(), data(1, msg.Pause(4)))
    one.broker.say(msg.Progress(7))
    one.broker.lose_connections()
    assert kinds(one.take(data(2), peer=b"new")) == [wire.WHO]
    ok, ack, again = one.take(hello(known=True), peer=b"new")
    assert isinstance(ok, wire.HelloOk)
    assert (ok.received, ok.lost) == (1, False)
    assert (ack.kind, again.kind) == (wire.ACK, wire.DATA)


def test_a_link_that_was_forgotten_is_lost(one: Outside):
    one.take(hello())
    one.broker.forget_links()
    (ok,) = one.take(hello(known=True))
    assert isinstance(ok, wire.HelloOk)
    assert ok.lost
    with pytest.raises(RuleBrokenError, match="used again"):
        one.take(hello())


def test_a_number_too_high_is_answered_with_who(one: Outside):
    one.take(hello())
    assert kinds(one.take(data(2, msg.Pause(1)))) == [wire.WHO]


def test_ping_is_answered_and_pong_noted(one: Outside):
    one.take(hello())
    assert kinds(one.take(wire.ping_frame(LINK, 5))) == [wire.PONG]
    one.take(wire.pong_frame(LINK, 6))
    assert (one.broker.pings, one.broker.pongs) == (1, [6])


def test_bye_ends_the_link(one: Outside):
    one.take(hello(), wire.bye_frame(LINK, "over"))
    assert one.broker.link is None


def test_frames_can_be_lost_held_and_repeated(one: Outside):
    faults = one.broker.faults
    faults.hellos_lost, faults.received_lost = 1, 1
    assert one.take(hello()) == []
    one.take(hello())
    assert one.take(data(1, msg.Pause(1))) == []
    faults.acks_held = True
    assert one.take(data(1, msg.Pause(1))) == []
    before = len(one.sent)
    one.broker.acknowledge()
    faults.sent_lost, faults.sent_twice = 1, True
    one.broker.say(msg.Progress(1))
    one.broker.say(msg.Progress(2))
    assert kinds([frame for _, frame in one.sent[before:]]) == [wire.ACK, wire.DATA, wire.DATA]
    faults.is_silent = True
    assert one.take(wire.ping_frame(LINK, 5)) == []


@pytest.mark.parametrize(
    ("frames", "found"),
    [
        ([b"\x01"], "array"),
        ([data(1, msg.Pause(1))], "not open"),
        ([hello(received=3)], "reports 3 frames"),
        ([hello(), hello(received=9, known=True)], "HELLO reports 9"),
        ([hello(), hello(2, info=wire.Info("other", "client", 7))], "the first one was of"),
        ([hello(info=wire.Info("raw", "edge", 7))], "the first one was of"),
        ([wire.control_frame(msg.Leave())], "CONTROL"),
    ],
)
def test_what_a_client_must_not_send(one: Outside, frames: list[bytes], found: str):
    with pytest.raises(RuleBrokenError, match=found):
        one.take(*frames)


def test_a_scenario_cannot_speak_without_a_link(one: Outside):
    with pytest.raises(RuntimeError, match="no link to e1"):
        one.broker.say(msg.Progress(1))
