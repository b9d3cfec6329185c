"""A connection to a recorder: what is asked goes out, what comes is decoded, and nothing is decided."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import zmq

from plimsoll.client.feed_connection import FeedConnection
from plimsoll.core.client import Address
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire

DEADLINE_SECONDS = 300.0
LIST = msg.ListFeedFiles(4, "stocks", "rows", 1)


@pytest.fixture
def router() -> Iterator[zmq.Socket[bytes]]:
    """The socket of a recorder without keys."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    socket = context.socket(zmq.ROUTER)
    socket.linger = 0
    socket.bind("tcp://127.0.0.1:*")
    yield socket
    socket.close()
    context.term()


def endpoint(router: zmq.Socket[bytes]) -> str:
    bound: bytes = router.getsockopt(zmq.LAST_ENDPOINT)  # type: ignore[assignment]  # this option is bytes
    return bound.rstrip(b"\0").decode()


def test_what_is_asked_is_answered_and_what_is_no_answer_is_counted(router: zmq.Socket[bytes]) -> None:
    connection = FeedConnection(Address(endpoint(router)), "plain")
    try:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not router.poll(10):
            assert time.monotonic() < deadline
            connection.answers(0.01)
            connection.ask([LIST])
        peer, data = router.recv_multipart()
        frame = wire.decode_frame(data)
        assert isinstance(frame, wire.Control)
        assert msg.decode(msg.feed_request, frame.records[0]) == LIST
        answer = msg.FeedFilePart(4, b"PAR1")
        for reply in (b"", b"nonsense", wire.control_frame(LIST), wire.refuse_frame(1, "a", "b"), wire.control_frame()):
            router.send_multipart([peer, reply])
        router.send_multipart([peer, wire.control_frame(answer)])
        found: list[msg.FeedAnswer] = []
        while not found:
            assert time.monotonic() < deadline
            found += connection.answers(0.05)
        assert found == [answer]
        assert connection.malformed == 4
        assert connection.fault == ""
    finally:
        connection.close()


def test_without_a_connection_requests_are_lost_and_the_reason_is_told(router: zmq.Socket[bytes]) -> None:
    connection = FeedConnection(Address("tcp://no-such-host.invalid:7421"), "plain")
    try:
        connection.ask([LIST])
        assert connection.answers(0.01) == []
        assert not connection.is_connected
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not connection.fault:
            assert time.monotonic() < deadline
            connection.answers(0.05)
        assert connection.fault.startswith("host no-such-host.invalid has no address: ")
    finally:
        connection.close()
