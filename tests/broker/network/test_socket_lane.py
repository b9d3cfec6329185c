"""One lane: what a peer that reads nothing costs, and what libzmq may keep of one that sends too much."""

from __future__ import annotations

import pytest
import zmq
from tests.broker.network.lanes import dealer, pump

from plimsoll.broker.network import socket_lane
from plimsoll.broker.network.socket_lane import SocketLane
from plimsoll.broker.network.sockets import BrokerSockets
from plimsoll.core.config import BrokerLimits
from plimsoll.network import Connector


def test_a_peer_without_room_costs_one_attempt_a_round_however_much_waits_for_it(
    sockets: BrokerSockets, context: zmq.Context, monkeypatch: pytest.MonkeyPatch
):
    endpoint = sockets.data.bind("tcp://127.0.0.1:*")
    deaf = dealer(context, endpoint, rcvhwm=1, rcvbuf=4096)
    deaf.send(b"deaf")
    got: list = []
    pump(sockets, sockets.data, lambda: len(got) == 1, got)
    peer, attempts = got[0][0], list[bytes]()

    def full(*_: object) -> None:
        raise zmq.Again

    enqueue = sockets.data._enqueue

    def watched(to: socket_lane.Peer, data: bytes) -> None:
        attempts.append(data)
        enqueue(to, data)

    monkeypatch.setattr(socket_lane, "_send", full)
    monkeypatch.setattr(sockets.data, "_enqueue", watched)
    sockets.data.send([(peer, b"%d" % n) for n in range(15)])
    attempts.clear()
    assert sockets.data.retry() == []
    assert attempts == [b"0"], "the others are not taken up"
    assert list(sockets.data.backlog[peer]) == [b"%d" % n for n in range(15)]


def test_what_libzmq_keeps_unread_of_one_peer_is_bounded_in_bytes(context: zmq.Context):
    limits = BrokerLimits()
    connector = Connector()
    lane = SocketLane(context, "data", limits, None, connector)
    try:
        assert int(lane.router.rcvhwm) * int(lane.router.maxmsgsize) <= 40 * 1024 * 1024
    finally:
        lane.close()
        connector.close()
