"""The control-plane client: a DEALER to each broker's control socket, and what the brokers say on it.

It makes itself known to heads as a mediator, asks every broker for its status, and hands on load reports and what heads
say of hand-overs. Messages may be lost; each is asked or sent again. Nothing is queued for a broker that is not
connected.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import zmq

from plimsoll.core import records, wire
from plimsoll.core.config import Peer, Role
from plimsoll.mediator import answers

SILENT_SECONDS = 5.0
"""A broker that is asked and has said nothing for so long is dialled anew: libzmq gives up for good on a line on which
somebody else has answered, as where an address was reached before its routes were there."""


@dataclass(frozen=True)
class Curve:
    """The client side of CURVE: our own pair."""

    public: str
    secret: str = field(repr=False)


@dataclass(frozen=True)
class Answered:
    """A broker answered to `ask`."""

    broker: str
    status: Mapping[str, Any]


@dataclass(frozen=True)
class Reported:
    """A load report of a broker, by itself or through its head."""

    broker: str
    report: Mapping[str, Any]


@dataclass(frozen=True)
class Told:
    """What a head says of a hand-over, or whom one of its edges serves; or what one of its edges says."""

    head: str
    said: records.Outcome | records.Served | records.Stated | records.Trigger | records.ProfileReply | records.CoverTold


@dataclass(frozen=True)
class Malformed:
    """A broker has said what it may not: `field` of its answer or report, or a whole frame. It is not gone by.

    `times`: so often by now; brokers repeat themselves.
    """

    broker: str
    field: str
    why: str
    times: int = 1

    @property
    def message(self) -> str:
        return f"{self.broker} says what cannot be, which is ignored: {self.field} {self.why}"


Said = Answered | Reported | Told | Malformed
TOLD = records.Outcome | records.Served | records.Stated | records.Trigger | records.ProfileReply | records.CoverTold
Command = records.Command | records.Serving | records.State | records.ProfileQuery | records.CoverQuery | records.Joined


@dataclass(frozen=True)
class Members:
    """The edges of a cluster, and those of them that take no newcomers."""

    edges: tuple[str, ...]
    cordoned: tuple[str, ...] = ()


@dataclass
class _Line:
    peer: Peer
    role: Role
    socket: zmq.Socket[bytes]
    heard_at: float
    """When the broker last said something, or when it was dialled; on a monotonic clock."""


class ControlPlane:
    """Lines to the control sockets of a changing set of brokers. Not thread-safe."""

    def __init__(self, name: str, curve: Curve | None, epoch: int) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._name = name
        self._curve = curve
        self._epoch = epoch
        self._lines: dict[str, _Line] = {}
        self._poller = zmq.Poller()
        self._asked = 0
        self._malformed_times: Counter[tuple[str, str]] = Counter()

    def close(self) -> None:
        for name in list(self._lines):
            self.hang_up(name)
        self._context.term()

    def dial(self, peer: Peer, role: Role) -> None:
        """Connect to a broker, now or when it comes up; dialling the same address again does nothing."""
        line = self._lines.get(peer.name)
        if line is not None and line.peer == peer:
            return
        self.hang_up(peer.name)
        socket = self._context.socket(zmq.DEALER)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.IMMEDIATE, 1)
        socket.setsockopt(zmq.RECONNECT_IVL, 100)
        socket.setsockopt(zmq.RECONNECT_IVL_MAX, 1000)
        if ":" in peer.control.removeprefix("tcp://").rpartition(":")[0]:
            socket.setsockopt(zmq.IPV6, 1)
        if self._curve is not None:
            socket.setsockopt_string(zmq.CURVE_SERVERKEY, peer.public_key)
            socket.setsockopt_string(zmq.CURVE_PUBLICKEY, self._curve.public)
            socket.setsockopt_string(zmq.CURVE_SECRETKEY, self._curve.secret)
        socket.connect(peer.control)
        self._lines[peer.name] = _Line(peer, role, socket, time.monotonic())
        self._poller.register(socket, zmq.POLLIN)

    @property
    def dialled(self) -> set[str]:
        """The brokers that there are lines to."""
        return set(self._lines)

    def hang_up(self, broker: str) -> None:
        line = self._lines.pop(broker, None)
        if line is not None:
            self._poller.unregister(line.socket)
            line.socket.close()

    def ask(self, broker: str, members: Members | None = None) -> None:
        """Ask for its status; heads also learn, again and again, to whom reports go, and which edges are theirs."""
        line = self._lines.get(broker)
        if line is not None and time.monotonic() - line.heard_at > SILENT_SECONDS:
            self.hang_up(broker)
            self.dial(line.peer, line.role)
            line = self._lines[broker]
        if line is None:
            return
        self._asked += 1
        said: list[Any] = [records.StatusQuery(self._asked)]
        if line.role == "head":
            told = [] if members is None else [records.Members(list(members.edges), list(members.cordoned))]
            said = [records.Identify(self._name, "mediator", self._epoch), *told, *said]
        self._send(line, *said)

    def send(
        self,
        broker: str,
        record: Command,
    ) -> None:
        """Say something to a head; lost if it is not connected."""
        line = self._lines.get(broker)
        if line is not None:
            self._send(line, record)

    def poll(self, seconds: float) -> Iterator[Said]:
        """Wait for at most so long; what has been said until then."""
        lines = {line.socket: line for line in self._lines.values()}
        for socket, _ in self._poller.poll(max(0, int(seconds * 1000))):
            line = lines[socket]
            with contextlib.suppress(zmq.Again):
                while True:
                    yield from self._heard(line, line.socket.recv(zmq.NOBLOCK))

    def _send(self, line: _Line, *said: Any) -> None:
        with contextlib.suppress(zmq.Again):  # not connected: it is asked again at the next round
            line.socket.send(wire.control_frame(*said), zmq.NOBLOCK)

    def _heard(self, line: _Line, data: bytes) -> Iterator[Said]:
        line.heard_at = time.monotonic()
        try:
            frame = wire.decode_frame(data)
            if not isinstance(frame, wire.Control):
                raise wire.WireError("misplaced", "only CONTROL frames travel on control sockets")
            said = [records.decode(records.control, raw) for raw in frame.records]
        except wire.WireError as error:
            yield from self._malformed(line.peer.name, ("frame", str(error)))
            return
        for record in said:
            yield from self._one(line.peer.name, record)

    def _one(self, peer: str, record: Any) -> Iterator[Said]:
        if isinstance(record, records.StatusReply):
            if (fault := answers.of_status(record.status)) is not None:
                yield from self._malformed(peer, fault)
            else:
                yield Answered(peer, record.status)
        elif isinstance(record, records.Load | records.Stated):
            about, is_load = str(record.report.get("broker") or peer), isinstance(record, records.Load)
            if (fault := answers.of_report(record.report, named=is_load)) is not None:
                yield from self._malformed(about, fault)
            else:
                yield Reported(about, record.report) if isinstance(record, records.Load) else Told(peer, record)
        elif isinstance(record, TOLD):
            yield Told(peer, record)

    def _malformed(self, broker: str, fault: answers.Fault) -> Iterator[Malformed]:
        field, why = fault
        self._malformed_times[broker, field] += 1
        yield Malformed(broker, field, why, self._malformed_times[broker, field])
