"""The sockets of a recorder: connections that are gone or take no answers, endpoints that cannot be bound."""

from __future__ import annotations

import pytest
import zmq
from tests.feeds.serving.served import wait_until

from plimsoll.feeds.serving.connection_watch import ConnectionEvent
from plimsoll.feeds.serving.feed_sockets import FeedEndpointError, FeedSockets
from plimsoll.feeds.serving.turns import WaitingRequest


def test_answers_to_one_that_is_gone_are_lost_without_a_fault() -> None:
    sockets = FeedSockets("tcp://127.0.0.1:*", None, None)
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    try:
        assert not sockets.send(b"nobody", b"x")
        peer = context.socket(zmq.DEALER)
        peer.connect(sockets.endpoint)
        peer.send(b"hello")
        found: list[WaitingRequest] = []

        def has_come() -> bool:
            sockets.wait(0.01)
            found.extend(sockets.receive(10))
            return bool(found)

        wait_until(has_come, "a request")
        assert (found[0].data, found[0].key) == (b"hello", "")
        assert sockets.take_events() == [ConnectionEvent("opened", found[0].connection, 1)]
        assert sockets.send(found[0].peer, b"answer")
        peer.close(0)
        events: list[ConnectionEvent] = []

        def has_ended() -> bool:
            events.extend(sockets.take_events())
            return bool(events)

        wait_until(has_ended, "its end")
        assert events == [ConnectionEvent("ended", found[0].connection, 1)]
        wait_until(lambda: not sockets.send(found[0].peer, b"answer"), "the ROUTER has noted it, too")
    finally:
        context.term()
        sockets.close()


def test_answers_that_a_connection_does_not_take_are_lost_and_bounded() -> None:
    sockets = FeedSockets("tcp://127.0.0.1:*", None, None)
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    peer = context.socket(zmq.DEALER)
    peer.rcvhwm, peer.rcvbuf = 1, 4096
    try:
        peer.connect(sockets.endpoint)
        peer.send(b"hello")
        found: list[WaitingRequest] = []

        def has_come() -> bool:
            sockets.wait(0.01)
            found.extend(sockets.receive(10))
            return bool(found)

        wait_until(has_come, "a request")

        def is_lost() -> bool:
            sockets.send(found[0].peer, bytes(65_536))
            sent.append(1)
            return sockets.counters["answers_lost"] > 20

        sent: list[int] = []
        wait_until(is_lost, "answers are lost")
        assert (len(sent) - 20) * 65_536 < 16 * 2**20, "what is held of one connection is bounded"
        assert [each.kind for each in sockets.take_events()] == ["opened"], "it is there, and takes nothing"
    finally:
        peer.close(0)
        context.term()
        sockets.close()


def test_an_endpoint_that_cannot_be_bound_is_named_with_a_remedy() -> None:
    first = FeedSockets("tcp://127.0.0.1:*", None, None)
    try:
        for endpoint, remedy in ((first.endpoint, "choose another address"), ("tcp://nowhere", "write tcp:")):
            with pytest.raises(FeedEndpointError, match=f"cannot listen at {endpoint}: .*: {remedy}"):
                FeedSockets(endpoint, None, None)
    finally:
        first.close()
