"""The data sockets of the scripted brokers, on loopback addresses; a pipe of the client is waited on with them.

Plain TCP: what is tried is the protocol, and ZeroMQ does CURVE for every client alike.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Sequence

import zmq

from plimsoll.conformance.client_under_test import ReceivedFrame

PARTS = 2
"""The connection that ROUTER puts in front, and the one part of a frame."""

BIND_SECONDS = 5.0


class ScriptedSockets:
    """A ROUTER socket for each broker."""

    def __init__(self, brokers: Iterable[str]) -> None:
        self._context = zmq.Context()
        self._poller = zmq.Poller()
        self._sockets: dict[str, zmq.Socket[bytes]] = {}
        self._endpoints: dict[str, str] = {}
        for broker in brokers:
            self._endpoints[broker] = self._bind(broker, "tcp://127.0.0.1:*")

    def _bind(self, broker: str, endpoint: str) -> str:
        socket = self._context.socket(zmq.ROUTER)
        socket.linger = 0
        try:
            socket.bind(endpoint)
        except zmq.ZMQError:
            socket.close(0)
            raise
        self._sockets[broker] = socket
        self._poller.register(socket, zmq.POLLIN)
        return socket.getsockopt_string(zmq.LAST_ENDPOINT)

    def endpoint(self, broker: str) -> str:
        return self._endpoints[broker]

    def watch(self, fd: int) -> None:
        """Let `receive` also end when this file descriptor can be read."""
        self._poller.register(fd, zmq.POLLIN)

    def unwatch(self, fd: int) -> None:
        with contextlib.suppress(KeyError):  # it has not been registered
            self._poller.unregister(fd)

    def receive(self, seconds: float) -> list[ReceivedFrame]:
        """All frames that are there; waits for the first, at most so long. Messages of several parts are discarded."""
        self._poller.poll(max(0, int(seconds * 1000)))
        found = []
        for broker, socket in self._sockets.items():
            with contextlib.suppress(zmq.Again):  # all that has come is read
                while True:
                    parts = socket.recv_multipart(zmq.NOBLOCK)
                    if len(parts) == PARTS:
                        found.append(ReceivedFrame(broker, parts[0], parts[1]))
        return found

    def send(self, broker: str, peer: bytes, frames: Sequence[bytes]) -> None:
        for data in frames:
            # A connection that is gone takes nothing: the link repeats it.
            self._sockets[broker].send_multipart([peer, data])

    def cut(self, broker: str) -> None:
        """Close the socket, with all connections to it, and bind a new one at the same address."""
        old = self._sockets.pop(broker)
        self._poller.unregister(old)
        old.close(0)
        deadline = time.monotonic() + BIND_SECONDS
        while True:
            try:
                self._bind(broker, self._endpoints[broker])
            except zmq.ZMQError:
                # ZeroMQ closes in its own thread, so the address is taken for a moment.
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
            else:
                return

    def close(self) -> None:
        self._context.destroy(linger=0)
