"""Faults of processes: brokers and applications are paused for a while, or killed and restarted."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Protocol

from plimsoll.simulator.engine.host import SimulatedHost
from plimsoll.simulator.world.brokers import SimulatedFleet


class CrashableClients(Protocol):
    """The applications of a run, as faults use them."""

    def names(self) -> list[str]:
        """Client processes that are up."""

    def host(self, name: str) -> SimulatedHost: ...

    def crash(self, name: str) -> None: ...

    def restart(self, name: str) -> None: ...

    def process_name(self, name: str) -> str:
        """The process of a publisher or subscriber; empty if the name is unknown."""


class ProcessFaultHost(Protocol):
    """The injector, as faults of processes use it. `rng` changes from one fault to the next."""

    spared: frozenset[str]
    rng: random.Random

    def end_later(self, text: str, end: Callable[[], None], times: float = 1.0) -> bool: ...


EDGE_TIMES = 6.0
"""An edge that is lost with the node of its head is away this many times as long: nothing takes its place."""


class ProcessFaults:
    """Each fault returns whether it has found a victim. `on_node_lost`: called with a head that is lost, and whether an
    edge is lost with it."""

    def __init__(self, host: ProcessFaultHost, fleet: SimulatedFleet, clients: CrashableClients) -> None:
        self.host, self.fleet, self.clients = host, fleet, clients
        self.on_node_lost: Callable[[str, bool], None] = lambda name, with_edge: None

    def _process(self, name: str) -> SimulatedHost:
        return self.fleet.brokers[name].host if name in self.fleet.brokers else self.clients.host(name)

    def pause(self, names: list[str]) -> bool:
        """Pause one of these for a while."""
        up = [name for name in names if not self._process(name).is_paused]
        up = [name for name in up if self._process(name).node is not None and name not in self.host.spared]
        return bool(up) and self.pause_one(self.host.rng.choice(up))

    def pause_one(self, name: str, process: SimulatedHost | None = None) -> bool:
        """Pause a process for a while, if it runs."""
        found = process or self._process(name)
        if found.node is None or found.is_paused or name in self.host.spared:
            return False
        found.pause()
        return self.host.end_later(f"{name} is paused", lambda: found.resume() if found.is_paused else None)

    def crash(self, names: list[str]) -> bool:
        """Kill one of these, and restart it after a while."""
        up = [name for name in names if self._process(name).node is not None and name not in self.host.spared]
        return bool(up) and self.crash_one(self.host.rng.choice(up))

    def crash_one(self, name: str) -> bool:
        """Kill a broker or an application, if it runs, and restart it after a while."""
        if self._process(name).node is None or name in self.host.spared:
            return False
        party = self.fleet if name in self.fleet.brokers else self.clients
        party.crash(name)
        return self.host.end_later(f"{name} is killed", lambda: self._start(name))

    def lose(self, heads: list[str], *, with_edge: bool = False) -> bool:
        """Lose one of these heads with its node, and with an edge of it; its standby leads after a while."""
        up = [name for name in heads if self.fleet.brokers[name].is_up and name not in self.host.spared]
        if not up:
            return False
        name = self.host.rng.choice(up)
        self.fleet.crash(name, with_node=True)
        self.on_node_lost(name, with_edge)
        if with_edge:
            self._lose_edge(name)
        return self.host.end_later(f"{name} is lost with its node", lambda: self._start(name))

    def _lose_edge(self, head: str) -> None:
        up = [each.name for each in self.fleet.edges() if each.is_up and each.config.cluster == head]
        if not up:
            return
        name = self.host.rng.choice(up)
        self.fleet.crash(name, with_node=True)
        self.host.end_later(f"{name} is lost with the node of {head}", lambda: self._start(name), EDGE_TIMES)

    def _start(self, name: str) -> None:
        if name in self.fleet.brokers:
            self.fleet.start(name)
        else:
            self.clients.restart(name)
