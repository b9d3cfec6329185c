"""Faults drawn from a seed, each with an end, so that a run can settle before its laws are checked.

A fault acts on hosts and connections from outside, as an operating system or a network would. `FaultInjector.heal` ends
all faults that are under way. Processes named in `spared` are never struck, nor are their connections.
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
    """How often each fault happens, per second of the run.

    `wall`: a partition in both directions; `one_way`: in one. `seconds`: the shortest and the longest time that a
    pause, a partition, a slow connection or a crash lasts.
    """

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
    """The applications of a run, as faults use them."""

    def names(self) -> list[str]:
        """Client processes that are up."""

    def host(self, name: str) -> SimulatedHost: ...

    def crash(self, name: str) -> None: ...

    def restart(self, name: str) -> None: ...

    def process_name(self, name: str) -> str:
        """The process of a publisher or subscriber; empty if the name is unknown."""


class FaultInjector:
    """Draws faults over an interval and injects them. More than 25 methods: one or two for each kind of fault."""

    def __init__(
        self,
        rates: FaultRates,
        fleet: SimulatedFleet,
        clients: CrashableClients,
        network: SimulatedNetwork,
        schedule: EventQueue,
        rng: random.Random,
        spared: Sequence[str] = (),
    ) -> None:
        self.rates, self.fleet, self.clients, self.network = rates, fleet, clients, network
        self.schedule, self.spared = schedule, frozenset(spared)
        self.rng = self._planning = rng
        self._salt = rng.getrandbits(32)
        self.happened: dict[str, int] = {}
        self._ends: dict[int, tuple[str, Callable[[], None]]] = {}
        self._next = 0
        self.is_over = False

    def plan(self, start: float, until: float, wanted: Callable[[str], bool] = bool) -> None:
        """Draw all faults of an interval; those whose label is not wanted are left out."""
        number = 0
        for field in dataclasses.fields(self.rates):
            rate = getattr(self.rates, field.name)
            if not isinstance(rate, float) or not rate:
                continue
            at = start + self._planning.expovariate(rate)
            while at < until:
                if wanted(f"fault{number}"):
                    self.schedule.at(at, self._strike, field.name, number)
                number += 1
                at += self._planning.expovariate(rate)

    def heal(self) -> None:
        """End all faults that are under way; no fault strikes after this."""
        self.is_over = True
        for key in sorted(self._ends):
            self._end(key)

    def _strike(self, kind: str, number: int) -> None:
        """Each fault draws from its own generator, so that leaving one out does not change the others."""
        self.rng = random.Random(self._salt + number)
        self.strike(getattr(self, f"_{kind}"), kind)

    def strike(self, action: Callable[[], bool], kind: str) -> bool:
        """Inject one fault, unless the run has healed; count it if it found a victim."""
        happens = not self.is_over and action()
        if happens:
            self.happened[kind] = self.happened.get(kind, 0) + 1
        return happens

    def end_later(self, text: str, end: Callable[[], None]) -> bool:
        """Trace a fault that has begun, and schedule its end."""
        self._next += 1
        self._ends[self._next] = (text, end)
        low, high = self.rates.seconds
        # Log-uniform: milliseconds are as likely as seconds, since short faults hit other steps than long ones do.
        seconds = low * (high / low) ** self.rng.random()
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
            connection = self.rng.choice(found)
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
        connection = self.rng.choice(found)
        assert connection.host is not None  # noqa: S101  # connections() has only those that are up
        ends = [connection.dialler.name, connection.host.name]
        self.rng.shuffle(ends)
        return ends[0], ends[1]

    def _wall(self) -> bool:
        pair = self._pair()
        return pair is not None and self.partition([pair, pair[::-1]])

    def _one_way(self) -> bool:
        pair = self._pair()
        return pair is not None and self.partition([pair])

    def partition(self, ways: list[tuple[str, str]]) -> bool:
        """Partition two processes in these directions; half of the time their connections break before it ends."""
        (one, other), is_both = ways[0], len(ways) > 1
        breaks = self.rng.random() < 0.5
        for way in ways:
            self.network.partition(*way)

        def end() -> None:
            if breaks:
                for connection in self.connections():
                    if connection.host and {connection.dialler.name, connection.host.name} == {one, other}:
                        self.network.reconnect(connection)
            for way in ways:
                self.network.rejoin(*way)

        text = f"between {one} and {other}" if is_both else f"from {one} to {other}"
        return self.end_later(f"partition {text}", end)

    def _slow(self) -> bool:
        pair = self._pair()
        if pair is None or frozenset(pair) in self.network.pair_qualities:
            return False
        ends = frozenset(pair)
        slow = dataclasses.replace(
            self.network.quality,
            delay_seconds=self.rng.uniform(0.02, 0.5),
            jitter_seconds=self.rng.uniform(0.0, 0.3),
            bytes_per_second=self.rng.choice([2_000.0, 20_000.0, float("inf")]),
        )
        self.network.pair_qualities[ends] = slow

        def end() -> None:
            self.network.pair_qualities.pop(ends, None)

        return self.end_later(f"slow network between {pair[0]} and {pair[1]}", end)

    # -- processes

    def _host(self, name: str) -> SimulatedHost:
        return self.fleet.brokers[name].host if name in self.fleet.brokers else self.clients.host(name)

    def pause_one(self, name: str, host: SimulatedHost | None = None) -> bool:
        """Pause a process for a while, if it runs."""
        host = host or self._host(name)
        if host.node is None or host.is_paused or name in self.spared:
            return False
        host.pause()
        return self.end_later(f"{name} is paused", lambda: host.resume() if host.is_paused else None)

    def crash_one(self, name: str) -> bool:
        """Kill a broker or an application, if it runs, and restart it after a while."""
        if self._host(name).node is None or name in self.spared:
            return False
        party = self.fleet if name in self.fleet.brokers else self.clients
        party.crash(name)
        return self.end_later(f"{name} is killed", lambda: self._start(name))

    def _start(self, name: str) -> None:
        if name in self.fleet.brokers:
            self.fleet.start(name)
        else:
            self.clients.restart(name)

    def _pause(self, names: list[str]) -> bool:
        up = [name for name in names if not self._host(name).is_paused]
        up = [name for name in up if self._host(name).node is not None and name not in self.spared]
        return bool(up) and self.pause_one(self.rng.choice(up))

    def _pause_client(self) -> bool:
        return self._pause(self.clients.names())

    def _pause_edge(self) -> bool:
        return self._pause([broker.name for broker in self.fleet.edges()])

    def _pause_head(self) -> bool:
        return self._pause([broker.name for broker in self.fleet.heads()])

    def _crash(self, names: list[str]) -> bool:
        up = [name for name in names if self._host(name).node is not None and name not in self.spared]
        return bool(up) and self.crash_one(self.rng.choice(up))

    def _crash_client(self) -> bool:
        return self._crash(self.clients.names())

    def _crash_edge(self) -> bool:
        return self._crash([broker.name for broker in self.fleet.edges()])

    def _crash_head(self) -> bool:
        return self._crash([broker.name for broker in self.fleet.heads()])
