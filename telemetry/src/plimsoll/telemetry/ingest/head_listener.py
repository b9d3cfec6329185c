"""Load reports from heads: a DEALER socket to the control socket of each head of a collector's share.

The listener only identifies itself, again and again; brokers refuse anything else from a key of the role `collector`.
Reports sent while no collector is connected are lost.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import zmq

from plimsoll.core.config import PeerBroker
from plimsoll.core.protocol import messages, wire
from plimsoll.network import Connector

log = logging.getLogger(__name__)

IDENTIFY_SECONDS: Final = 2.0
"""A head forgets a collector after 30 s of silence, and every collector when it restarts."""
IDENTIFY_EARLY_SECONDS: Final = 0.2
"""Until the head has answered once."""
SILENT_SECONDS: Final = 10.0
FRAMES_PER_HEAD: Final = 1000
"""Frames read from one head before the next head has its turn."""


@dataclass(frozen=True)
class CollectorCurveKeys:
    """The collector's CURVE key pair, Z85-encoded."""

    public: str
    secret: str = field(repr=False)

    @classmethod
    def of(cls, secret: str) -> CollectorCurveKeys:
        """Derive the pair from its secret key.

        Raises:
            ValueError: it is not a Z85 secret key.

        """
        try:
            return cls(zmq.curve_public(secret.encode()).decode(), secret)
        except zmq.ZMQError as error:
            raise ValueError("not a Z85 secret key of 40 characters") from error


@dataclass
class _HeadConnection:
    peer: PeerBroker
    socket: zmq.Socket[bytes]
    has_answered: bool = False
    identify_at: float = float("-inf")
    heard_at: float | None = None


@dataclass(frozen=True)
class HeadReports:
    """Reports of one head, and how many of its frames could not be read."""

    cluster: str
    reports: list[Mapping[str, Any]]
    refused: int


class HeadListener:
    """Connections to a changing set of heads. Not thread-safe.

    A head that is silent for `silent_seconds` is dialled again: a head that has not read our key yet refuses us, and
    ZeroMQ never retries a connection that was refused.
    """

    def __init__(self, name: str, curve: CollectorCurveKeys | None, silent_seconds: float = SILENT_SECONDS) -> None:
        self._name, self._curve, self.silent_seconds = name, curve, silent_seconds
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._connector = Connector()
        self._poller = zmq.Poller()
        self._poller.register(self._connector.fd, zmq.POLLIN)
        self._connections: dict[str, _HeadConnection] = {}
        self._cluster_of: dict[zmq.Socket[bytes], str] = {}

    def close(self) -> None:
        for cluster in list(self._connections):
            self._disconnect(cluster)
        self._connector.close()
        self._context.term()

    def set_heads(self, heads: Mapping[str, PeerBroker]) -> None:
        """Listen to these heads, by cluster. Connections to unchanged heads stay open."""
        for cluster, connection in list(self._connections.items()):
            if heads.get(cluster) != connection.peer:
                self._disconnect(cluster)
        for cluster, peer in heads.items():
            if cluster not in self._connections:
                try:
                    self._dial(cluster, peer)
                except zmq.ZMQError as error:  # the others are heard all the same
                    log.error("cannot listen to the head of cluster %s, %s: %s", cluster, peer.control, error)

    def receive(self, seconds: float, now: float) -> Iterator[HeadReports]:
        """Wait up to `seconds` and yield what each head has sent. `now`: monotonic seconds."""
        self._redial_silent(now)
        self._identify(now)
        ready = self._poller.poll(max(0, int(seconds * 1000)))
        self._connector.tick()
        for socket, _ in ready:
            if (cluster := self._cluster_of.get(socket)) is None:
                continue  # it was a signal to the connector
            self._connections[cluster].heard_at = now
            yield self._read(cluster, socket)

    def _redial_silent(self, now: float) -> None:
        for cluster, connection in list(self._connections.items()):
            if connection.heard_at is None:
                connection.heard_at = now
            elif now - connection.heard_at > self.silent_seconds:
                self._disconnect(cluster)
                self._dial(cluster, connection.peer)

    def _dial(self, cluster: str, peer: PeerBroker) -> None:
        socket = self._context.socket(zmq.DEALER)
        try:
            self._connect(socket, peer)
        except BaseException:  # an open socket would keep the end of the context waiting for good
            self._connector.forget(socket)
            socket.close(0)
            raise
        self._connections[cluster] = _HeadConnection(peer, socket)
        self._cluster_of[socket] = cluster
        self._poller.register(socket, zmq.POLLIN)

    def _connect(self, socket: zmq.Socket[bytes], peer: PeerBroker) -> None:
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.IMMEDIATE, 1)
        socket.setsockopt(zmq.RECONNECT_IVL, 100)
        socket.setsockopt(zmq.RECONNECT_IVL_MAX, 1000)
        socket.setsockopt(zmq.RCVHWM, 2 * FRAMES_PER_HEAD)
        if self._curve is not None:
            socket.setsockopt_string(zmq.CURVE_SERVERKEY, peer.public_key)
            socket.setsockopt_string(zmq.CURVE_PUBLICKEY, self._curve.public)
            socket.setsockopt_string(zmq.CURVE_SECRETKEY, self._curve.secret)
        self._connector.connect(socket, peer.control)

    def _disconnect(self, cluster: str) -> None:
        socket = self._connections.pop(cluster).socket
        del self._cluster_of[socket]
        self._poller.unregister(socket)
        self._connector.forget(socket)
        socket.close()

    def _identify(self, now: float) -> None:
        frame = wire.control_frame(messages.Identify(self._name, "collector", 0))
        for connection in self._connections.values():
            if now >= connection.identify_at:
                connection.identify_at = now + (IDENTIFY_SECONDS if connection.has_answered else IDENTIFY_EARLY_SECONDS)
                with contextlib.suppress(zmq.Again):  # not connected; the next round repeats it
                    connection.socket.send(frame, zmq.NOBLOCK)

    def _read(self, cluster: str, socket: zmq.Socket[bytes]) -> HeadReports:
        self._connections[cluster].has_answered = True
        reports: list[Mapping[str, Any]] = []
        refused = 0
        with contextlib.suppress(zmq.Again):  # all that has come is read
            for _ in range(FRAMES_PER_HEAD):
                found = decode_load_reports(socket.recv(zmq.NOBLOCK))
                if found is None:
                    refused += 1
                else:
                    reports += found
        return HeadReports(cluster, reports, refused)


def decode_load_reports(data: bytes) -> list[Mapping[str, Any]] | None:
    """The load reports of a frame from a control socket; None if it is not one."""
    try:
        frame = wire.decode_frame(data)
        if not isinstance(frame, wire.Control):
            return None
        said = [messages.decode(messages.control, raw) for raw in frame.records]
    except wire.WireError:
        return None
    return [record.report for record in said if isinstance(record, messages.LoadUpdate)]
