"""A network that behaves as ZeroMQ over TCP does, as far as the machines can see.

- Frames of one connection and direction arrive in order, once, after a delay; a partition holds them back.
- A connection that breaks silently loses the frames in flight, in both directions. The dialling side reconnects without
  noticing, and the frames that it sends meanwhile wait. The accepting side sees a new peer: a new routing id.
- Sending to a routing id that is gone fails as `unreachable`. Neither side is notified when a connection closes.
- Nothing is closed with a node that is lost: its peers notice by silence, and find another process by dialling again.
- Control sockets may have a quality of their own, so that commands are lost, repeated and reordered.

Each connection draws from its own generator, so events on one do not shift the random numbers of another. TCP never
loses, repeats or reorders single frames: those faults are for control sockets and for tests of the link.
"""

from __future__ import annotations

import random
import zlib
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Protocol

from plimsoll.simulator.engine.event_queue import EventQueue
from plimsoll.simulator.engine.frame_trace import describe_frame

Peer = Hashable


class NetworkParty(Protocol):
    """An owner of sockets: a host."""

    name: str

    def on_frame(self, peer: Peer, frame: bytes, control: bool) -> None:
        """A frame has arrived at a socket."""


ATTEMPT_SECONDS = 1.0
"""How long a socket waits for a connection that nothing answers, before it tries again."""


class Nowhere:
    """Where connections to a lost node lead."""

    name = "a lost node"

    def on_frame(self, peer: Peer, frame: bytes, control: bool) -> None:
        """Nothing is there."""


NOWHERE = Nowhere()


@dataclass(frozen=True, slots=True)
class ConnectionQuality:
    """How a connection behaves. `drop`, `duplicate` and `reorder` are probabilities per frame."""

    delay_seconds: float = 0.001
    jitter_seconds: float = 0.001
    bytes_per_second: float = float("inf")
    drop: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0


class ConnectionDirection:
    """The state of one direction. `held`: the frames that a partition has stopped."""

    __slots__ = ("arrives", "departs", "held", "is_held")

    def __init__(self) -> None:
        self.departs = self.arrives = 0.0
        self.is_held = False
        self.held: deque[tuple[int, bytes]] = deque()


class SimulatedConnection:
    """One dialled connection, through all its reconnects. `life` counts them; frames of an older life are lost."""

    __slots__ = (
        "back", "closed", "control", "dialler", "endpoint", "forth", "host", "life", "local", "retry", "rng",
        "routing_id", "waiting",
    )  # fmt: skip

    def __init__(self, dialler: NetworkParty, local: str, endpoint: str, control: bool, rng: random.Random) -> None:
        self.dialler, self.local, self.endpoint, self.control, self.rng = dialler, local, endpoint, control, rng
        self.host: NetworkParty | None = None
        self.routing_id = b""
        self.life = 0
        self.forth, self.back = ConnectionDirection(), ConnectionDirection()
        self.waiting: deque[bytes] = deque()
        self.retry = False
        self.closed = False

    @property
    def is_up(self) -> bool:
        return self.host is not None

    def __str__(self) -> str:
        return f"{self.dialler.name}->{self.endpoint}{' control' if self.control else ''}"


FrameTap = Callable[[SimulatedConnection, NetworkParty, NetworkParty, bytes], None]
"""Called for each frame that is sent, with its connection, sender and receiver."""


class SimulatedNetwork:
    """All sockets. A sender passes itself and its own name for the peer, as with a real socket.

    `control`: the quality of control sockets, if it differs. `pair_qualities`: the quality between two processes, if a
    fault has changed it.
    """

    def __init__(
        self,
        schedule: EventQueue,
        rng: random.Random,
        quality: ConnectionQuality,
        control: ConnectionQuality | None = None,
    ) -> None:
        self.schedule, self.quality, self.control = schedule, quality, control
        self.pair_qualities: dict[frozenset[str], ConnectionQuality] = {}
        self.taps: list[FrameTap] = []
        self.digest = 0
        self.frames = self.lost = 0
        self._salt = rng.getrandbits(32)
        self.trace: Callable[[str], None] | None = None
        self.connect_seconds = 0.01
        self._listening: dict[str, NetworkParty] = {}
        self._dialled: dict[tuple[str, str, bool], SimulatedConnection] = {}
        self._accepted: dict[tuple[str, bytes, bool], SimulatedConnection] = {}
        self._partitions: set[tuple[str, str]] = set()
        self._routing_ids = 0
        self._dials: dict[tuple[str, str, bool], int] = {}

    def trace_line(self, text: str) -> None:
        if self.trace is not None:
            self.trace(text)

    # -- sockets

    def listen(self, party: NetworkParty, *endpoints: str) -> None:
        for endpoint in endpoints:
            self._listening[endpoint] = party

    def dial(self, party: NetworkParty, peer: str, endpoint: str, control: bool) -> None:
        self.hang_up(party, peer, control)
        key = (party.name, peer, control)
        count = self._dials[key] = self._dials.get(key, 0) + 1
        rng = random.Random(zlib.crc32(f"{party.name}/{peer}/{control}/{count}".encode(), self._salt))
        self._dialled[key] = connection = SimulatedConnection(party, peer, endpoint, control, rng)
        self._retry(connection, 0.0)

    def hang_up(self, party: NetworkParty, peer: str, control: bool) -> None:
        connection = self._dialled.pop((party.name, peer, control), None)
        if connection is not None:
            self._drain(connection)
            connection.closed = True

    def _drain(self, connection: SimulatedConnection) -> None:
        """A socket that is closed in good order sends what it has queued first; then the connection is gone."""
        life, at = connection.life, max(connection.forth.arrives, self.schedule.now)
        self.schedule.at(at, lambda: self._break(connection) if connection.life == life else None)

    def send(self, party: NetworkParty, peer: Peer, frame: bytes, control: bool) -> bool:
        """Pass a frame to a socket. False means unreachable, which only an accepting side can see."""
        if isinstance(peer, str):
            connection = self._dialled.get((party.name, peer, control))
            if connection is None:
                raise KeyError(f"{party.name} sends to {peer!r}, which it has not dialled")
            if connection.is_up:
                self._depart(connection, connection.forth, frame)
            else:
                connection.waiting.append(frame)
            return True
        if not isinstance(peer, bytes):
            raise TypeError(f"{party.name} sends to {peer!r}, which is neither a dialled name nor a routing id")
        accepted = self._accepted.get((party.name, peer, control))
        if accepted is None:
            return False
        self._depart(accepted, accepted.back, frame)
        return True

    # -- connections

    def _retry(self, connection: SimulatedConnection, seconds: float) -> None:
        if not connection.retry:
            connection.retry = True
            self.schedule.after(seconds, self._connect, connection)

    def _connect(self, connection: SimulatedConnection) -> None:
        connection.retry = False
        if connection.closed or connection.is_up:
            return
        host = self._listening.get(connection.endpoint)
        if host is None or self._is_partitioned(connection.dialler.name, host.name):
            self._retry(connection, self.connect_seconds * (1 + connection.rng.random()))
            return
        self._routing_ids += 1
        connection.host, connection.routing_id = host, b"\0" + self._routing_ids.to_bytes(4, "big")
        self._accepted[host.name, connection.routing_id, connection.control] = connection
        self.trace_line(f"{connection} is up as {self._routing_ids}")
        if host is NOWHERE:
            self.schedule.after(ATTEMPT_SECONDS, self._give_up, connection, connection.life)
        while connection.waiting:
            self._depart(connection, connection.forth, connection.waiting.popleft())

    def _give_up(self, connection: SimulatedConnection, life: int) -> None:
        if connection.life == life:
            self._break(connection)

    def _break(self, connection: SimulatedConnection) -> None:
        """Drop the connection and the frames in flight on it."""
        if connection.host is None:
            return
        self.trace_line(f"{connection} is lost")
        del self._accepted[connection.host.name, connection.routing_id, connection.control]
        connection.host = None
        connection.life += 1
        for way in (connection.forth, connection.back):
            self.lost += len(way.held)
            way.held.clear()
            way.is_held = False
            way.departs = way.arrives = self.schedule.now
        if not connection.closed:
            self._retry(connection, self.connect_seconds * (1 + connection.rng.random()))

    def _depart(self, connection: SimulatedConnection, way: ConnectionDirection, frame: bytes) -> None:
        assert connection.host is not None  # noqa: S101  # the callers have checked that it is up
        now, rng = self.schedule.now, connection.rng
        quality = self._quality_of(connection)
        self.frames += 1
        way.departs = max(way.departs, now) + len(frame) / quality.bytes_per_second
        at = way.departs + quality.delay_seconds + quality.jitter_seconds * rng.random()
        if quality.drop and rng.random() < quality.drop:
            self.lost += 1
            self.trace_line(f"lost on {connection}")
        else:
            if not (quality.reorder and rng.random() < quality.reorder):
                at = way.arrives = max(way.arrives, at)
            copies = 2 if quality.duplicate and rng.random() < quality.duplicate else 1
            for _ in range(copies):
                self.schedule.at(at, self._arrive, connection, way, connection.life, frame)
        if self.taps:
            src, dst = self._ends(connection, way)
            for tap in list(self.taps):
                tap(connection, src, dst, frame)

    def _quality_of(self, connection: SimulatedConnection) -> ConnectionQuality:
        if self.pair_qualities and connection.host is not None:
            pair = frozenset((connection.dialler.name, connection.host.name))
            if (quality := self.pair_qualities.get(pair)) is not None:
                return quality
        return self.control if connection.control and self.control is not None else self.quality

    def _ends(self, connection: SimulatedConnection, way: ConnectionDirection) -> tuple[NetworkParty, NetworkParty]:
        assert connection.host is not None  # noqa: S101  # called only for a connection that is up
        ends = connection.dialler, connection.host
        return ends if way is connection.forth else (ends[1], ends[0])

    def _arrive(self, connection: SimulatedConnection, way: ConnectionDirection, life: int, frame: bytes) -> None:
        if connection.life != life or connection.host is None:
            self.lost += 1
            return
        forth = way is connection.forth
        if connection.closed and not forth:
            return
        src, dst = self._ends(connection, way)
        if way.is_held or (self._partitions and self._is_partitioned(src.name, dst.name)):
            way.is_held = True
            way.held.append((life, frame))
            return
        self.digest = zlib.crc32(frame, (self.digest + hash(self.schedule.now)) & 0xFFFFFFFF)
        if self.trace is not None:
            self.trace(f"{src.name} > {dst.name}: {describe_frame(frame)}")
        dst.on_frame(connection.routing_id if forth else connection.local, frame, connection.control)

    # -- faults

    def connections(self) -> list[SimulatedConnection]:
        """All dialled connections, in the order of dialling."""
        return list(self._dialled.values())

    def reconnect(self, connection: SimulatedConnection) -> None:
        """Break the connection; its dialling side reconnects."""
        self._break(connection)

    def _is_partitioned(self, src: str, dst: str) -> bool:
        return (src, dst) in self._partitions

    def partition(self, src: str, dst: str) -> None:
        """Stop all frames from `src` to `dst`; as with TCP, they are held, not lost."""
        self._partitions.add((src, dst))

    def rejoin(self, src: str, dst: str) -> None:
        """End a partition: the held frames arrive, in order."""
        self._partitions.discard((src, dst))
        for connection in self.connections():
            for way, ends in ((connection.forth, (connection.dialler, connection.host)),
                              (connection.back, (connection.host, connection.dialler))):  # fmt: skip
                if (
                    way.is_held
                    and ends[0] is not None
                    and ends[1] is not None
                    and (ends[0].name, ends[1].name) == (src, dst)
                ):
                    way.is_held = False
                    held, way.held = way.held, deque()
                    for life, frame in held:
                        self._arrive(connection, way, life, frame)

    def lose(self, party: NetworkParty) -> None:
        """The node of this process is lost: no connection of it is closed, and what is sent on them never arrives.

        Its addresses lead nowhere until another process listens there: an attempt to connect ends after a while.
        """
        for endpoint in self._endpoints_of(party):
            self._listening[endpoint] = NOWHERE
        for key in [key for key in self._dialled if key[0] == party.name]:
            self._dialled.pop(key).closed = True  # the other side has it still
        for connection in [c for c in self._dialled.values() if c.host is party]:
            held = self._accepted.pop((party.name, connection.routing_id, connection.control))
            self._accepted[NOWHERE.name, connection.routing_id, connection.control] = held
            connection.host = NOWHERE

    def _endpoints_of(self, party: NetworkParty) -> list[str]:
        return [endpoint for endpoint, host in self._listening.items() if host is party]

    def close_all(self, party: NetworkParty) -> None:
        """The process has died, and with it its sockets and the frames that waited in them."""
        for endpoint in self._endpoints_of(party):
            del self._listening[endpoint]
        for key in [key for key in self._dialled if key[0] == party.name]:
            connection = self._dialled.pop(key)
            connection.closed = True
            self._break(connection)
        for connection in [c for c in self._dialled.values() if c.host is party]:
            self._break(connection)
