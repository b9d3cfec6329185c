"""Faults of processes: brokers and applications that stand still for a while, or are killed and started again."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Protocol

from plimsoll.simulator.engine.host import SimulatedHost
from plimsoll.simulator.world.brokers import SimulatedFleet


class CrashableClients(Protocol):
    """What faults need of the applications; the run provides it."""

    def names(self) -> list[str]:
        """Client processes that are up."""

    def host(self, name: str) -> SimulatedHost: ...

    def crash(self, name: str) -> None: ...

    def restart(self, name: str) -> None: ...

    def home(self, name: str) -> str:
        """The process that a publisher or subscriber lives in; empty if nobody knows the name."""


class ProcessFaultHost(Protocol):
    """The injector, to a fault of a process. `draw` changes from one fault to the next."""

    spared: frozenset[str]
    draw: random.Random

    def lasting(self, text: str, end: Callable[[], None]) -> bool: ...


class ProcessFaults:
    """Each returns whether it has found a victim."""

    def __init__(self, host: ProcessFaultHost, fleet: SimulatedFleet, clients: CrashableClients) -> None:
        self.host, self.fleet, self.clients = host, fleet, clients

    def _process(self, name: str) -> SimulatedHost:
        return self.fleet.brokers[name].host if name in self.fleet.brokers else self.clients.host(name)

    def pause(self, names: list[str]) -> bool:
        """One of these stands still for a while."""
        up = [name for name in names if not self._process(name).is_paused]
        up = [name for name in up if self._process(name).node is not None and name not in self.host.spared]
        return bool(up) and self.pause_one(self.host.draw.choice(up))

    def pause_one(self, name: str, process: SimulatedHost | None = None) -> bool:
        """Let a process stand still for a while, if it runs."""
        found = process or self._process(name)
        if found.node is None or found.is_paused or name in self.host.spared:
            return False
        found.pause()
        return self.host.lasting(f"{name} stands still", lambda: found.resume() if found.is_paused else None)

    def crash(self, names: list[str]) -> bool:
        """One of these is killed, and starts again after a while."""
        up = [name for name in names if self._process(name).node is not None and name not in self.host.spared]
        return bool(up) and self.crash_one(self.host.draw.choice(up))

    def crash_one(self, name: str) -> bool:
        """Kill a broker or an application, if it runs, and start it again after a while."""
        if self._process(name).node is None or name in self.host.spared:
            return False
        party = self.fleet if name in self.fleet.brokers else self.clients
        party.crash(name)
        return self.host.lasting(f"{name} is killed", lambda: self._start(name))

    def _start(self, name: str) -> None:
        if name in self.fleet.brokers:
            self.fleet.start(name)
        else:
            self.clients.restart(name)
