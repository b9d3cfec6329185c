"""The sockets of a recorder: connections that are gone or take no answers, endpoints that cannot be bound."""

from __future__ import annotations

from pathlib import Path

import pytest
import zmq
from tests.feeds.serving.served import wait_until

from plimsoll.feeds.serving.connection_watch import ConnectionEvent
from plimsoll.feeds.serving.feed_sockets import FeedEndpointError, FeedSockets
from plimsoll.feeds.serving.turns import WaitingRequest
from plimsoll.network.auth.authorized_keys import AuthorizedKeys, SecretKeyFile


def test_answers_to_one_that_is_gone_are_lost_without_a_fault() -> None:
    sockets = FeedSockets("tcp://127.0.0.1:*", None, None)
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    try:
        assert not sockets.send(b"nobody", b"x")
        peer = context.socket(zmq.DEALER)
        peer.connect(sockets.endpoint)
        peer.send(b"hello")
        found: list[WaitingRequest] = []
        wait_until(lambda: bool(received(sockets, found)), "a request")
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
        wait_until(lambda: bool(received(sockets, found)), "a request")

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


def test_a_connection_is_told_before_its_key_is_checked(tmp_path: Path) -> None:
    """So a request with an earlier check is of an earlier connection with the same descriptor."""
    (server, secret), (public, own) = zmq.curve_keypair(), zmq.curve_keypair()
    (tmp_path / "key").write_bytes(secret)
    (tmp_path / "readers").write_text(f"{public.decode()} client ann read\n")
    key, readers = SecretKeyFile.read(str(tmp_path / "key")), AuthorizedKeys.read(str(tmp_path / "readers"))
    sockets = FeedSockets("tcp://127.0.0.1:*", key, readers)
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    try:
        for number in (1, 2):
            peer = context.socket(zmq.DEALER)
            peer.curve_serverkey, peer.curve_publickey, peer.curve_secretkey = server, public, own
            peer.connect(sockets.endpoint)
            peer.send(b"hello")
            found: list[WaitingRequest] = []
            wait_until(lambda found=found: bool(received(sockets, found)), "a request")
            opened = [each for each in sockets.take_events() if each.kind == "opened"]
            assert opened == [ConnectionEvent("opened", found[0].connection, number)]
            assert (found[0].key, found[0].check) == (public.decode(), number)
            peer.close(0)
    finally:
        context.destroy(0)
        sockets.close()


def received(sockets: FeedSockets, found: list[WaitingRequest]) -> list[WaitingRequest]:
    sockets.wait(0.01)
    found += sockets.receive(10)
    return found
