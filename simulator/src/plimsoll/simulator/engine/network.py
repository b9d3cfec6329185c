"""A network with the manners of ZeroMQ over TCP, so far as they matter.

- Frames of one connection and direction arrive in order, once, after a delay; a partition holds them back.
- A connection that breaks loses in silence what was under way in both directions. The dialling side dials again by
  itself and does not notice; what it sends meanwhile waits. The accepting side sees a stranger: a new routing id.
- Sending to a routing id that has gone is answered `unreachable`. Nobody is told of a connection that closes.
- Control sockets may have a weather of their own: what travels on them may be lost, doubled and overtaken by rule.

Each connection draws from a generator of its own, so what happens on one does not shift the others. Frames that are
lost, doubled or overtaken one by one are no manners of TCP: those faults are for tests of the link alone.
"""

from __future__ import annotations

import random
import zlib
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Protocol

from plimsoll.core.protocol import wire
from plimsoll.simulator.engine.event_queue import EventQueue
from plimsoll.simulator.engine.frame_trace import describe_frame

Peer = Hashable
DATA_KIND = bytes((wire.DATA,))


class NetworkParty(Protocol):
    """What has sockets: a host."""

    name: str

    def on_frame(self, peer: Peer, frame: bytes, control: bool) -> None:
        """A frame is at the socket."""


@dataclass(frozen=True, slots=True)
class ConnectionQuality:
    """How a connection behaves. Seconds, bytes per second, and chances between 0 and 1 per frame."""

    delay_seconds: float = 0.001
    jitter_seconds: float = 0.001
    bytes_per_second: float = float("inf")
    drop: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0


class ConnectionDirection:
    """One way of a connection."""

    __slots__ = ("arrives", "departs", "held", "is_held")

    def __init__(self) -> None:
        self.departs = self.arrives = 0.0
        self.is_held = False
        self.held: deque[tuple[int, bytes]] = deque()


class SimulatedConnection:
    """One dialled connection, through all its reconnects. `life` numbers them; frames of an older life are lost."""

    __slots__ = (
        "back", "closed", "control", "dialler", "draw", "endpoint", "forth", "host", "life", "local", "retry",
        "routing_id", "waiting",
    )  # fmt: skip

    def __init__(self, dialler: NetworkParty, local: str, endpoint: str, control: bool, draw: random.Random) -> None:
        self.dialler, self.local, self.endpoint, self.control, self.draw = dialler, local, endpoint, control, draw
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
"""Told of a frame when it is sent: by whom, to whom, on which connection."""


class SimulatedNetwork:
    """All sockets. Who sends gives a party and its own name of the peer, as sockets do.

    `control`: the weather of control sockets, where it is another one. `data_frames` counts frames of records.
    """

    def __init__(
        self,
        schedule: EventQueue,
        draw: random.Random,
        weather: ConnectionQuality,
        control: ConnectionQuality | None = None,
    ) -> None:
        self.schedule, self.weather, self.control = schedule, weather, control
        self.weathers: dict[frozenset[str], ConnectionQuality] = {}
        self.taps: list[FrameTap] = []
        self.digest = 0
        self.frames = self.data_frames = self.lost = 0
        self._salt = draw.getrandbits(32)
        self.trace: Callable[[str], None] | None = None
        self.connect_seconds = 0.01
        self._listening: dict[str, NetworkParty] = {}
        self._dialled: dict[tuple[str, str, bool], SimulatedConnection] = {}
        self._accepted: dict[tuple[str, bytes, bool], SimulatedConnection] = {}
        self._walls: set[tuple[str, str]] = set()
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
        draw = random.Random(zlib.crc32(f"{party.name}/{peer}/{control}/{count}".encode(), self._salt))
        self._dialled[key] = connection = SimulatedConnection(party, peer, endpoint, control, draw)
        self._retry(connection, 0.0)

    def hang_up(self, party: NetworkParty, peer: str, control: bool) -> None:
        connection = self._dialled.pop((party.name, peer, control), None)
        if connection is not None:
            self._drain(connection)
            connection.closed = True

    def _drain(self, connection: SimulatedConnection) -> None:
        """A socket that is closed in good order still sends what it has; then nobody is there."""
        life, at = connection.life, max(connection.forth.arrives, self.schedule.now)
        self.schedule.at(at, lambda: self._break(connection) if connection.life == life else None)

    def send(self, party: NetworkParty, peer: Peer, frame: bytes, control: bool) -> bool:
        """Give a frame to a socket. False: unreachable, which only an accepting side is told."""
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
            raise TypeError(f"{party.name} sends to {peer!r}, which is no peer")
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
        if host is None or self._walled(connection.dialler.name, host.name):
            self._retry(connection, self.connect_seconds * (1 + connection.draw.random()))
            return
        self._routing_ids += 1
        connection.host, connection.routing_id = host, b"\0" + self._routing_ids.to_bytes(4, "big")
        self._accepted[host.name, connection.routing_id, connection.control] = connection
        self.trace_line(f"{connection} is up as {self._routing_ids}")
        while connection.waiting:
            self._depart(connection, connection.forth, connection.waiting.popleft())

    def _break(self, connection: SimulatedConnection) -> None:
        """Lose the connection and what is under way on it."""
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
            self._retry(connection, self.connect_seconds * (1 + connection.draw.random()))

    def _depart(self, connection: SimulatedConnection, way: ConnectionDirection, frame: bytes) -> None:
        assert connection.host is not None  # noqa: S101  # both callers have looked
        now, draw = self.schedule.now, connection.draw
        weather = self._weather(connection)
        self.frames += 1
        self.data_frames += frame[2:3] == DATA_KIND
        way.departs = max(way.departs, now) + len(frame) / weather.bytes_per_second
        at = way.departs + weather.delay_seconds + weather.jitter_seconds * draw.random()
        if weather.drop and draw.random() < weather.drop:
            self.lost += 1
            self.trace_line(f"lost on {connection}")
        else:
            if not (weather.reorder and draw.random() < weather.reorder):
                at = way.arrives = max(way.arrives, at)
            copies = 2 if weather.duplicate and draw.random() < weather.duplicate else 1
            for _ in range(copies):
                self.schedule.at(at, self._arrive, connection, way, connection.life, frame)
        if self.taps:
            src, dst = self._ends(connection, way)
            for tap in list(self.taps):
                tap(connection, src, dst, frame)

    def _weather(self, connection: SimulatedConnection) -> ConnectionQuality:
        if self.weathers and connection.host is not None:
            pair = frozenset((connection.dialler.name, connection.host.name))
            if (weather := self.weathers.get(pair)) is not None:
                return weather
        return self.control if connection.control and self.control is not None else self.weather

    def _ends(self, connection: SimulatedConnection, way: ConnectionDirection) -> tuple[NetworkParty, NetworkParty]:
        assert connection.host is not None  # noqa: S101  # only asked of one that is up
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
        if way.is_held or (self._walls and self._walled(src.name, dst.name)):
            way.is_held = True
            way.held.append((life, frame))
            return
        self.digest = zlib.crc32(frame, (self.digest + hash(self.schedule.now)) & 0xFFFFFFFF)
        if self.trace is not None:
            self.trace(f"{src.name} > {dst.name}: {describe_frame(frame)}")
        dst.on_frame(connection.routing_id if forth else connection.local, frame, connection.control)

    # -- faults

    def connections(self) -> list[SimulatedConnection]:
        """All that is dialled, in the order of dialling."""
        return list(self._dialled.values())

    def reconnect(self, connection: SimulatedConnection) -> None:
        """The connection breaks; its dialling side finds its way back."""
        self._break(connection)

    def _walled(self, src: str, dst: str) -> bool:
        return (src, dst) in self._walls

    def wall(self, src: str, dst: str) -> None:
        """From now on nothing gets from one to the other; TCP keeps what is sent."""
        self._walls.add((src, dst))

    def unwall(self, src: str, dst: str) -> None:
        """What was kept arrives, in order."""
        self._walls.discard((src, dst))
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

    def close_all(self, party: NetworkParty) -> None:
        """The process is gone: its sockets with it, and what waited in them."""
        for endpoint in [endpoint for endpoint, host in self._listening.items() if host is party]:
            del self._listening[endpoint]
        for key in [key for key in self._dialled if key[0] == party.name]:
            connection = self._dialled.pop(key)
            connection.closed = True
            self._break(connection)
        for connection in [c for c in self._dialled.values() if c.host is party]:
            self._break(connection)
