"""What goes wrong, and when: faults drawn from a seed, each with an end, so that a run can settle and be judged.

A fault acts on hosts and connections from outside, as an operating system or a network would. `FaultInjector.heal`
ends all that are under way. One kind of fault never touches what it does not name: a run that must leave somebody
alone says so in `spared`.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from plimsoll.simulator.engine.event_queue import EventQueue
from plimsoll.simulator.engine.host import SimulatedHost
from plimsoll.simulator.engine.network import SimulatedConnection, SimulatedNetwork
from plimsoll.simulator.world.brokers import SimulatedFleet


@dataclass(frozen=True, slots=True)
class FaultRates:
    """How often each fault happens, per second of the run; and how long those last that last, in seconds."""

    reconnect: float = 0.0
    storm: float = 0.0
    pause_client: float = 0.0
    pause_edge: float = 0.0
    pause_head: float = 0.0
    wall: float = 0.0
    one_way: float = 0.0
    slow: float = 0.0
    crash_client: float = 0.0
    crash_edge: float = 0.0
    crash_head: float = 0.0
    seconds: tuple[float, float] = (0.05, 2.0)


class CrashableClients(Protocol):
    """What faults need of the applications; the run provides it."""

    def names(self) -> list[str]:
        """Client processes that are up."""

    def host(self, name: str) -> SimulatedHost: ...

    def crash(self, name: str) -> None: ...

    def restart(self, name: str) -> None: ...

    def home(self, name: str) -> str:
        """The process that a publisher or subscriber lives in; empty if nobody knows the name."""


class FaultInjector:
    """Draws faults over an interval and injects them. More than 25 methods: one or two for each kind of fault."""

    def __init__(
        self,
        chances: FaultRates,
        fleet: SimulatedFleet,
        clients: CrashableClients,
        network: SimulatedNetwork,
        schedule: EventQueue,
        draw: random.Random,
        spared: Sequence[str] = (),
    ) -> None:
        self.chances, self.fleet, self.clients, self.network = chances, fleet, clients, network
        self.schedule, self.spared = schedule, frozenset(spared)
        self.draw = self._planning = draw
        self._salt = draw.getrandbits(32)
        self.happened: dict[str, int] = {}
        self._ends: dict[int, tuple[str, Callable[[], None]]] = {}
        self._next = 0
        self.is_over = False

    def plan(self, start: float, until: float, wanted: Callable[[str], bool] = bool) -> None:
        """Draw all faults of an interval; those whose label is not wanted do not happen."""
        number = 0
        for field in dataclasses.fields(self.chances):
            rate = getattr(self.chances, field.name)
            if not isinstance(rate, float) or not rate:
                continue
            at = start + self._planning.expovariate(rate)
            while at < until:
                if wanted(f"fault{number}"):
                    self.schedule.at(at, self._strike, field.name, number)
                number += 1
                at += self._planning.expovariate(rate)

    def heal(self) -> None:
        """End everything that is under way. From now on nothing strikes any more."""
        self.is_over = True
        for key in sorted(self._ends):
            self._end(key)

    def _strike(self, kind: str, number: int) -> None:
        """Each fault draws from a generator of its own: without one of them the others stay what they were."""
        self.draw = random.Random(self._salt + number)
        self.strike(getattr(self, f"_{kind}"), kind)

    def strike(self, action: Callable[[], bool], kind: str) -> bool:
        """Let one fault happen, unless all has healed; count it if it found a victim."""
        happens = not self.is_over and action()
        if happens:
            self.happened[kind] = self.happened.get(kind, 0) + 1
        return happens

    def lasting(self, text: str, end: Callable[[], None]) -> bool:
        """Say what happens, and let it end in a while."""
        self._next += 1
        self._ends[self._next] = (text, end)
        low, high = self.chances.seconds
        # Many faults are short and some are long: the exponent spreads them over the orders of magnitude between.
        seconds = low * (high / low) ** self.draw.random()
        self.network.trace_line(f"! {text} for {seconds:.3f} s")
        self.schedule.after(seconds, self._end, self._next)
        return True

    def _end(self, key: int) -> None:
        text, end = self._ends.pop(key, ("", None))
        if end is not None:
            self.network.trace_line(f"! end of: {text}")
            end()

    # -- connections

    def connections(self) -> list[SimulatedConnection]:
        return [
            connection
            for connection in self.network.connections()
            if connection.host is not None and not {connection.dialler.name, connection.host.name} & self.spared
        ]

    def _reconnect(self) -> bool:
        found = self.connections()
        if found:
            connection = self.draw.choice(found)
            self.network.trace_line(f"! {connection} breaks")
            self.network.reconnect(connection)
        return bool(found)

    def _storm(self) -> bool:
        """All clients lose their connections at once."""
        self.network.trace_line("! all connections of clients break")
        clients = set(self.clients.names())
        for connection in self.connections():
            if connection.dialler.name in clients:
                self.network.reconnect(connection)
        return True

    def _pair(self) -> tuple[str, str] | None:
        found = self.connections()
        if not found:
            return None
        connection = self.draw.choice(found)
        assert connection.host is not None  # noqa: S101  # chosen so
        ends = [connection.dialler.name, connection.host.name]
        self.draw.shuffle(ends)
        return ends[0], ends[1]

    def _wall(self) -> bool:
        pair = self._pair()
        return pair is not None and self.wall_off(f"no way between {pair[0]} and {pair[1]}", [pair, pair[::-1]])

    def _one_way(self) -> bool:
        pair = self._pair()
        return pair is not None and self.wall_off(f"no way from {pair[0]} to {pair[1]}", [pair])

    def wall_off(self, text: str, ways: list[tuple[str, str]]) -> bool:
        """Hold what goes these ways; when it ends, the connections may have broken meanwhile."""
        breaks = self.draw.random() < 0.5
        for way in ways:
            self.network.wall(*way)

        def end() -> None:
            if breaks:
                for connection in self.connections():
                    if connection.host and {connection.dialler.name, connection.host.name} == set(ways[0]):
                        self.network.reconnect(connection)
            for way in ways:
                self.network.unwall(*way)

        return self.lasting(text, end)

    def _slow(self) -> bool:
        pair = self._pair()
        if pair is None or frozenset(pair) in self.network.weathers:
            return False
        ends = frozenset(pair)
        slow = dataclasses.replace(
            self.network.weather,
            delay_seconds=self.draw.uniform(0.02, 0.5),
            jitter_seconds=self.draw.uniform(0.0, 0.3),
            bytes_per_second=self.draw.choice([2_000.0, 20_000.0, float("inf")]),
        )
        self.network.weathers[ends] = slow

        def end() -> None:
            self.network.weathers.pop(ends, None)

        return self.lasting(f"{pair[0]} and {pair[1]} are far apart", end)

    # -- processes

    def _host(self, name: str) -> SimulatedHost:
        return self.fleet.brokers[name].host if name in self.fleet.brokers else self.clients.host(name)

    def pause_one(self, name: str, host: SimulatedHost | None = None) -> bool:
        """Let a process stand still for a while, if it runs."""
        host = host or self._host(name)
        if host.node is None or host.is_paused or name in self.spared:
            return False
        host.pause()
        return self.lasting(f"{name} stands still", lambda: host.resume() if host.is_paused else None)

    def crash_one(self, name: str) -> bool:
        """Kill a broker or an application, if it runs, and start it again after a while."""
        if self._host(name).node is None or name in self.spared:
            return False
        party = self.fleet if name in self.fleet.brokers else self.clients
        party.crash(name)
        return self.lasting(f"{name} is killed", lambda: self._start(name))

    def _start(self, name: str) -> None:
        if name in self.fleet.brokers:
            self.fleet.start(name)
        else:
            self.clients.restart(name)

    def _pause(self, names: list[str]) -> bool:
        up = [name for name in names if not self._host(name).is_paused]
        up = [name for name in up if self._host(name).node is not None and name not in self.spared]
        return bool(up) and self.pause_one(self.draw.choice(up))

    def _pause_client(self) -> bool:
        return self._pause(self.clients.names())

    def _pause_edge(self) -> bool:
        return self._pause([broker.name for broker in self.fleet.edges()])

    def _pause_head(self) -> bool:
        return self._pause([broker.name for broker in self.fleet.heads()])

    def _crash(self, names: list[str]) -> bool:
        up = [name for name in names if self._host(name).node is not None and name not in self.spared]
        return bool(up) and self.crash_one(self.draw.choice(up))

    def _crash_client(self) -> bool:
        return self._crash(self.clients.names())

    def _crash_edge(self) -> bool:
        return self._crash([broker.name for broker in self.fleet.edges()])

    def _crash_head(self) -> bool:
        return self._crash([broker.name for broker in self.fleet.heads()])
