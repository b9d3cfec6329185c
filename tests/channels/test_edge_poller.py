"""The driver's questions to edges, on real control sockets, with a scripted edge behind them."""

from __future__ import annotations

import time
from collections.abc import Callable

import zmq

from plimsoll.channels.config import ChannelDefinition, ChannelParameter
from plimsoll.channels.edge_poller import EdgePoller
from plimsoll.core.config import PeerBroker
from plimsoll.core.edge.parameters_in_force import ParametersInForce
from plimsoll.core.predicates import parse
from plimsoll.core.protocol import messages, wire

NEAR = ChannelDefinition("near", (ChannelParameter("kind", "String"),), (), "")
DEADLINE_SECONDS = 300.0


def answer(socket: zmq.Socket[bytes], table: ParametersInForce) -> None:
    """Answer what has come, as an edge does."""
    while socket.poll(20):
        peer, data = socket.recv_multipart()
        frame = wire.decode_frame(data)
        assert isinstance(frame, wire.Control)
        identify, asked = [messages.decode(messages.control, raw) for raw in frame.records]
        assert identify == messages.Identify("driver", "collector", 0)
        assert isinstance(asked, messages.ListParameters)
        socket.send_multipart([peer, wire.control_frame(table.page(asked, 5))])


def test_it_follows_an_edge_until_that_is_gone():
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    socket = context.socket(zmq.ROUTER)
    port = socket.bind_to_random_port("tcp://127.0.0.1")
    table = ParametersInForce()
    poller = EdgePoller("driver", None)

    def until(condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not condition():
            assert time.monotonic() < deadline
            answer(socket, table)

    def rows() -> set[object]:
        with poller.lock:
            return {row[0] for row in poller.parameters.of(NEAR).rows}

    try:
        table.change([parse("[channel,=,'near'],[kind,=,'fire']")], [])
        poller.set_edges({"e": PeerBroker(name="e", data="", control=f"tcp://127.0.0.1:{port}")})
        until(lambda: rows() == {"fire"})
        table.change([parse("[channel,=,'near'],[kind,=,'flood']")], [])
        until(lambda: rows() == {"fire", "flood"})
        poller.set_edges({})
        assert rows() == set()
    finally:
        poller.close()
        socket.close(0)
        context.term()
