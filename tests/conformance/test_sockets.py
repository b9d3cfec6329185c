"""The sockets of scripted brokers: frames both ways, connections that are broken and made again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing

import pytest
import zmq

from plimsoll.conformance.client_under_test import ReceivedFrame
from plimsoll.conformance.sockets import ScriptedSockets

SECONDS = 300.0


@pytest.fixture
def sockets() -> Iterator[ScriptedSockets]:
    with closing(ScriptedSockets(["h", "e1"])) as made:
        yield made


@pytest.fixture
def dealer(sockets: ScriptedSockets) -> Iterator[zmq.Socket[bytes]]:
    with zmq.Context() as context, context.socket(zmq.DEALER) as made:
        made.linger, made.immediate = 0, True
        made.sndtimeo = made.rcvtimeo = int(SECONDS * 1000)
        made.connect(sockets.endpoint("e1"))
        yield made


def receive(sockets: ScriptedSockets) -> ReceivedFrame:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        if found := sockets.receive(0.1):
            return found[0]
    raise AssertionError("nothing has come")


def test_frames_go_both_ways(sockets: ScriptedSockets, dealer: zmq.Socket[bytes]):
    dealer.send(b"one")
    arrived = receive(sockets)
    assert (arrived.broker, arrived.data) == ("e1", b"one")
    sockets.send("e1", arrived.peer, [b"two", b"three"])
    assert [dealer.recv(), dealer.recv()] == [b"two", b"three"]


def test_messages_of_several_parts_are_discarded(sockets: ScriptedSockets, dealer: zmq.Socket[bytes]):
    dealer.send_multipart([b"one", b"two"])
    dealer.send(b"three")
    assert receive(sockets).data == b"three"


def test_connections_are_broken_and_made_again(sockets: ScriptedSockets, dealer: zmq.Socket[bytes]):
    dealer.send(b"one")
    before = receive(sockets)
    endpoint = sockets.endpoint("e1")
    sockets.cut("e1")
    assert sockets.endpoint("e1") == endpoint
    sockets.send("e1", before.peer, [b"lost"])
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        dealer.send(b"two")  # what is sent into the broken connection is lost
        if found := sockets.receive(0.05):
            break
    else:
        raise AssertionError("no connection was made again")
    assert found[0].peer != before.peer
    sockets.send("e1", found[0].peer, [b"three"])
    assert dealer.recv() == b"three"
