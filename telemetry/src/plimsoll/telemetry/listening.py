"""The collector's ears: a DEALER to the control socket of each head of its share, and the load reports that come.

It says who it is, again and again, and nothing else: with a key of the role `collector` brokers would not hear more.
Nothing is queued for a head that is not connected, and reports that come while nobody listens are lost.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import zmq

from plimsoll.core import records, wire
from plimsoll.core.config import Peer

KNOWN_AGAIN_SECONDS: Final = 2.0
"""Heads forget whom they have not heard of for 30 s, and all at once when they are started again."""
KNOWN_EARLY_SECONDS: Final = 0.2
"""As long as a head has not said anything."""
SILENT_SECONDS: Final = 10.0
AT_ONCE: Final = 1000
"""So many frames of one head are read before the next is looked at."""


@dataclass(frozen=True)
class Curve:
    """Our CURVE pair, as Z85."""

    public: str
    secret: str = field(repr=False)

    @classmethod
    def of(cls, secret: str) -> Curve:
        """The pair of a secret key.

        Raises:
            ValueError: it is none.

        """
        try:
            return cls(zmq.curve_public(secret.encode()).decode(), secret)
        except zmq.ZMQError as error:
            raise ValueError("not a Z85 secret key of 40 characters") from error


@dataclass
class _Line:
    peer: Peer
    socket: zmq.Socket[bytes]
    has_spoken: bool = False
    say_at: float = float("-inf")
    heard_at: float | None = None


@dataclass(frozen=True)
class Heard:
    """What one head said: reports, and frames that could not be read."""

    cluster: str
    reports: list[Mapping[str, Any]]
    refused: int


class Listening:
    """Lines to a changing set of heads. Not thread-safe.

    A head that has said nothing for `silent_seconds` is dialled anew: ZeroMQ does not try again who was refused once,
    and a head that has not read our key yet refuses us.
    """

    def __init__(self, name: str, curve: Curve | None, silent_seconds: float = SILENT_SECONDS) -> None:
        self._name, self._curve, self.silent_seconds = name, curve, silent_seconds
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._poller = zmq.Poller()
        self._lines: dict[str, _Line] = {}
        self._cluster_of: dict[zmq.Socket[bytes], str] = {}

    def close(self) -> None:
        for cluster in list(self._lines):
            self._hang_up(cluster)
        self._context.term()

    def show(self, heads: Mapping[str, Peer]) -> None:
        """The heads to listen to now, by cluster; lines that stay the same are not disturbed."""
        for cluster, line in list(self._lines.items()):
            if heads.get(cluster) != line.peer:
                self._hang_up(cluster)
        for cluster, peer in heads.items():
            if cluster not in self._lines:
                self._dial(cluster, peer)

    def hear(self, seconds: float, now: float) -> Iterator[Heard]:
        """Wait for at most so long; what each head has said. `now`: monotonic seconds."""
        self._dial_anew(now)
        self._say_who(now)
        for socket, _ in self._poller.poll(max(0, int(seconds * 1000))):
            cluster = self._cluster_of[socket]
            self._lines[cluster].heard_at = now
            yield self._read(cluster, socket)

    def _dial_anew(self, now: float) -> None:
        for cluster, line in list(self._lines.items()):
            if line.heard_at is None:
                line.heard_at = now
            elif now - line.heard_at > self.silent_seconds:
                self._hang_up(cluster)
                self._dial(cluster, line.peer)

    def _dial(self, cluster: str, peer: Peer) -> None:
        socket = self._context.socket(zmq.DEALER)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.IMMEDIATE, 1)
        socket.setsockopt(zmq.RECONNECT_IVL, 100)
        socket.setsockopt(zmq.RECONNECT_IVL_MAX, 1000)
        socket.setsockopt(zmq.RCVHWM, 2 * AT_ONCE)
        if ":" in peer.control.removeprefix("tcp://").rpartition(":")[0]:
            socket.setsockopt(zmq.IPV6, 1)
        if self._curve is not None:
            socket.setsockopt_string(zmq.CURVE_SERVERKEY, peer.public_key)
            socket.setsockopt_string(zmq.CURVE_PUBLICKEY, self._curve.public)
            socket.setsockopt_string(zmq.CURVE_SECRETKEY, self._curve.secret)
        socket.connect(peer.control)
        self._lines[cluster] = _Line(peer, socket)
        self._cluster_of[socket] = cluster
        self._poller.register(socket, zmq.POLLIN)

    def _hang_up(self, cluster: str) -> None:
        socket = self._lines.pop(cluster).socket
        del self._cluster_of[socket]
        self._poller.unregister(socket)
        socket.close()

    def _say_who(self, now: float) -> None:
        frame = wire.control_frame(records.Identify(self._name, "collector", 0))
        for line in self._lines.values():
            if now >= line.say_at:
                line.say_at = now + (KNOWN_AGAIN_SECONDS if line.has_spoken else KNOWN_EARLY_SECONDS)
                with contextlib.suppress(zmq.Again):  # not connected: it is said again
                    line.socket.send(frame, zmq.NOBLOCK)

    def _read(self, cluster: str, socket: zmq.Socket[bytes]) -> Heard:
        self._lines[cluster].has_spoken = True
        reports: list[Mapping[str, Any]] = []
        refused = 0
        with contextlib.suppress(zmq.Again):
            for _ in range(AT_ONCE):
                found = loads(socket.recv(zmq.NOBLOCK))
                if found is None:
                    refused += 1
                else:
                    reports += found
        return Heard(cluster, reports, refused)


def loads(data: bytes) -> list[Mapping[str, Any]] | None:
    """The load reports of a frame from a control socket; None if it is not one."""
    try:
        frame = wire.decode_frame(data)
        if not isinstance(frame, wire.Control):
            return None
        said = [records.decode(records.control, raw) for raw in frame.records]
    except wire.WireError:
        return None
    return [record.report for record in said if isinstance(record, records.Load)]
