"""The control-plane client: a DEALER socket to each broker's control port.

It identifies itself as a mediator, or as a collector that only lists parameters of channels. It queries the status of
every broker, and passes on load reports and the heads' messages about hand-overs. Messages may be lost: queries and
commands are repeated. Nothing is queued for a broker that is not connected, since a command that arrives late could
contradict a newer one.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import zmq

from plimsoll.core.config import DeclaredGroup, PeerBroker, Role
from plimsoll.core.protocol import messages, wire
from plimsoll.mediator import reply_checks
from plimsoll.mediator.head_cordons import NOT_CORDONED, HeadCordonView
from plimsoll.network import Connector

REDIAL_SECONDS = 5.0
"""A broker that has not answered for this long gets a new connection: libzmq gives up for good after a handshake with
the wrong peer, as when an address is used before its routes are set up."""


class UndialledBrokerError(ValueError):
    """The key or the address of a broker is invalid, so that nobody can dial it."""


@dataclass(frozen=True)
class MediatorKeyPair:
    """The mediator's own CURVE key pair."""

    public: str
    secret: str = field(repr=False)


HeadRecord = (
    messages.Outcome
    | messages.SubscriberPage
    | messages.ReservationReply
    | messages.Trigger
    | messages.ProfileReply
    | messages.CoverReply
    | messages.PublisherOutcome
    | messages.PublisherListPage
    | messages.SliceOutcome
    | messages.SlicePage
    | messages.GroupTrigger
)
"""What heads send to a mediator."""
HeadCommand = (
    messages.Command
    | messages.ListSubscribers
    | messages.BundleTable
    | messages.Reservation
    | messages.ProfileQuery
    | messages.CoverQuery
    | messages.PeerClusterLoads
    | messages.PublisherCommand
    | messages.ListPublishers
    | messages.SliceCommand
    | messages.SliceQuery
    | messages.GoOnAlone
    | messages.Promote
    | messages.Lead
    | messages.Follow
    | messages.Replaced
    | messages.Leave
)
"""What a mediator sends to heads, and to their standbys."""
ListingPage = messages.PublicationPage | messages.SubscriptionPage | messages.ParameterPage
"""What brokers answer when they are asked for a listing."""
ListingRequest = messages.ListPublications | messages.ListSubscriptions | messages.ListParameters


@dataclass(frozen=True)
class StatusReceived:
    """A broker's answer to `ask`."""

    broker: str
    status: Mapping[str, Any]


@dataclass(frozen=True)
class LeadershipReceived:
    """What a process of a head says of itself and of the other one."""

    broker: str
    status: Mapping[str, Any]


@dataclass(frozen=True)
class LoadReportReceived:
    """A load report of a broker, received from itself or from its head."""

    broker: str
    report: Mapping[str, Any]


@dataclass(frozen=True)
class HeadMessageReceived:
    """A head's message: about a hand-over or the subscribers of an edge, or on behalf of an edge."""

    head: str
    said: HeadRecord


@dataclass(frozen=True)
class ListingReceived:
    """A page of what a head has logged, of what the subscribers of an edge ask for, or of their parameters."""

    broker: str
    page: ListingPage


@dataclass(frozen=True)
class MalformedReply:
    """An invalid message of a broker, which is ignored: a `field` of its answer or report, or a whole frame.

    `times`: how often this field was invalid so far, since brokers repeat their messages.
    """

    broker: str
    field: str
    why: str
    times: int = 1

    @property
    def message(self) -> str:
        return f"{self.broker} sent an invalid message, which is ignored: {self.field} {self.why}"


ControlEvent = (
    StatusReceived | LeadershipReceived | LoadReportReceived | HeadMessageReceived | ListingReceived | MalformedReply
)


@dataclass(frozen=True)
class ClusterEdges:
    """The edges of a cluster, and those of them that take no new subscribers.

    `policy`: its balancing policy as JSON, empty if it has none; None: its head keeps the one that it has. `cordon`:
    whether its head takes new publishers.
    `groups`: the consumer groups of the whole fleet; None: its head keeps those that it has.
    """

    edges: tuple[str, ...]
    cordoned: tuple[str, ...] = ()
    policy: str | None = None
    cordon: HeadCordonView = NOT_CORDONED
    groups: tuple[DeclaredGroup, ...] | None = None


def _groups_record(groups: Iterable[DeclaredGroup]) -> messages.ClusterGroups:
    return messages.ClusterGroups(
        [
            messages.DeclaredGroupItem(
                each.cluster, each.name,
                messages.GroupDefinition(
                    each.filter, each.count, each.function, each.by, each.low, each.high, each.unassigned,
                    each.balancing, each.in_session,
                ),
                each.head,
            )
            for each in groups
        ]
    )  # fmt: skip


@dataclass
class _ControlConnection:
    peer: PeerBroker
    role: Role
    socket: zmq.Socket[bytes]
    heard_at: float
    """When the broker last sent something, or was connected to; on a monotonic clock."""


class ControlPlane:
    """Connections to the control sockets of a changing set of brokers. Not thread-safe."""

    def __init__(
        self, name: str, curve: MediatorKeyPair | None, epoch: int, role: Literal["mediator", "collector"] = "mediator"
    ) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._name = name
        self._curve = curve
        self._epoch, self._role = epoch, role
        self._lines: dict[str, _ControlConnection] = {}
        self._connector = Connector()
        self._poller = zmq.Poller()
        self._poller.register(self._connector.fd, zmq.POLLIN)
        self._asked = 0
        self._malformed_times: Counter[tuple[str, str]] = Counter()

    def close(self) -> None:
        for name in list(self._lines):
            self.hang_up(name)
        self._connector.close()
        self._context.term()

    def dial(self, peer: PeerBroker, role: Role) -> None:
        """Connect to a broker, now or when it comes up; the same address again does nothing.

        Raises:
            UndialledBrokerError: its key or its address is none; it has no connection, and no socket is left.

        """
        line = self._lines.get(peer.name)
        if line is not None and line.peer == peer:
            return
        self.hang_up(peer.name)
        socket = self._context.socket(zmq.DEALER)
        try:
            self._connect(socket, peer)
        except zmq.ZMQError as error:  # an open socket would keep `close` waiting for good
            self._connector.forget(socket)
            socket.close(0)
            raise UndialledBrokerError(f"{peer.name} has a key or an address ({peer.control}) that is none") from error
        self._lines[peer.name] = _ControlConnection(peer, role, socket, time.monotonic())
        self._poller.register(socket, zmq.POLLIN)

    def _connect(self, socket: zmq.Socket[bytes], peer: PeerBroker) -> None:
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.IMMEDIATE, 1)
        socket.setsockopt(zmq.CONNECT_TIMEOUT, 2000)
        socket.setsockopt(zmq.RECONNECT_IVL, 100)
        socket.setsockopt(zmq.RECONNECT_IVL_MAX, 1000)
        if self._curve is not None:
            socket.setsockopt_string(zmq.CURVE_SERVERKEY, peer.public_key)
            socket.setsockopt_string(zmq.CURVE_PUBLICKEY, self._curve.public)
            socket.setsockopt_string(zmq.CURVE_SECRETKEY, self._curve.secret)
        self._connector.connect(socket, peer.control)

    @property
    def dialled(self) -> set[str]:
        """The brokers with a connection."""
        return set(self._lines)

    def hang_up(self, broker: str) -> None:
        line = self._lines.pop(broker, None)
        if line is not None:
            self._poller.unregister(line.socket)
            self._connector.forget(line.socket)
            line.socket.close()

    def ask(self, broker: str, members: ClusterEdges | None = None) -> None:
        """Query a broker's status. Each query to a head also carries the mediator's epoch and the head's edges."""
        line = self._live_line(broker)
        if line is None:
            return
        self._asked += 1
        records: list[messages.ControlRecord] = [messages.StatusQuery(self._asked)]
        if line.role == "head":
            if members is not None:
                edges, cordon = (list(members.edges), list(members.cordoned)), members.cordon
                records.insert(0, messages.ClusterMembers(*edges, cordon.epoch, list(cordon.heads)))
                if members.policy is not None:
                    records.insert(1, messages.ClusterPolicy(members.policy))
                if members.groups is not None:
                    records.insert(1, _groups_record(members.groups))
            records.insert(0, messages.Identify(self._name, "mediator", self._epoch))
        self._send(line, *records)

    def ask_leadership(self, process: str) -> None:
        """Ask a process of a head which of the two it is, and what it knows of the other one."""
        line = self._live_line(process)
        if line is not None:
            self._asked += 1
            self._send(
                line, messages.Identify(self._name, "mediator", self._epoch), messages.LeadershipQuery(self._asked)
            )

    def _live_line(self, broker: str) -> _ControlConnection | None:
        """The connection to a broker, replaced by a new one if it has been silent."""
        line = self._lines.get(broker)
        if line is not None and time.monotonic() - line.heard_at > REDIAL_SECONDS:
            self.hang_up(broker)
            self.dial(line.peer, line.role)
            line = self._lines[broker]
        return line

    def send(
        self,
        broker: str,
        record: HeadCommand,
    ) -> None:
        """Send a command to a head; it is lost without a connection."""
        line = self._lines.get(broker)
        if line is not None:
            self._send(line, record)

    def ask_for_page(self, broker: str, request: ListingRequest) -> None:
        """Ask a broker for a page of a listing; it is lost without a connection."""
        line = self._live_line(broker)
        if line is not None:
            self._send(line, messages.Identify(self._name, self._role, self._epoch), request)

    def poll(self, seconds: float) -> Iterator[ControlEvent]:
        """Wait for at most this long; yields what has arrived by then."""
        lines = {line.socket: line for line in self._lines.values()}
        ready = dict(self._poller.poll(int(max(0.0, seconds) * 1000)))
        self._connector.tick()
        for line in (line for socket, line in lines.items() if socket in ready):
            with contextlib.suppress(zmq.Again):  # all that has come is read
                while True:
                    yield from self._decode(line, line.socket.recv(zmq.NOBLOCK))

    def _send(self, line: _ControlConnection, *records: messages.ControlRecord) -> None:
        with contextlib.suppress(zmq.Again):  # not connected: the next query repeats it
            line.socket.send(wire.control_frame(*records), zmq.NOBLOCK)

    def _decode(self, line: _ControlConnection, data: bytes) -> Iterator[ControlEvent]:
        line.heard_at = time.monotonic()
        try:
            frame = wire.decode_frame(data)
            if not isinstance(frame, wire.Control):
                raise wire.WireError("misplaced", "only CONTROL frames travel on control sockets")
            records = [messages.decode(messages.control, raw) for raw in frame.records]
        except wire.WireError as error:
            yield from self._malformed(line.peer.name, ("frame", str(error)))
            return
        for record in records:
            yield from self._event_of(line.peer.name, record)

    def _event_of(self, peer: str, record: messages.ControlRecord) -> Iterator[ControlEvent]:
        """The event of a broker's record, if any; its contents are checked first."""
        if isinstance(record, messages.StatusReply):
            if (fault := reply_checks.status_fault(record.status)) is not None:
                yield from self._malformed(peer, fault)
            else:
                yield StatusReceived(peer, record.status)
        elif isinstance(record, messages.LeadershipReply):
            yield LeadershipReceived(peer, record.status)
        elif isinstance(record, messages.LoadUpdate | messages.ReservationReply):
            is_load = isinstance(record, messages.LoadUpdate)
            broker = str(record.report.get("broker") or peer)
            if (fault := reply_checks.report_fault(record.report, named=is_load)) is not None:
                yield from self._malformed(broker, fault)
            elif isinstance(record, messages.LoadUpdate):
                yield LoadReportReceived(broker, record.report)
            else:
                yield HeadMessageReceived(peer, record)
        elif isinstance(record, ListingPage):
            yield ListingReceived(peer, record)
        elif isinstance(record, HeadRecord):
            yield HeadMessageReceived(peer, record)

    def _malformed(self, broker: str, fault: reply_checks.Fault) -> Iterator[MalformedReply]:
        field, why = fault
        self._malformed_times[broker, field] += 1
        yield MalformedReply(broker, field, why, self._malformed_times[broker, field])
