"""Faults drawn from a seed, each with an end, so that a run can settle before its laws are checked.

A fault acts on hosts and connections from outside, as an operating system or a network would. `FaultInjector.heal` ends
all faults that are under way. Processes named in `spared` are never struck, nor are their connections.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from plimsoll.simulator.engine.event_queue import EventQueue
from plimsoll.simulator.engine.network import SimulatedNetwork
from plimsoll.simulator.fault_injection.connection_faults import ConnectionFaults
from plimsoll.simulator.fault_injection.process_faults import CrashableClients, ProcessFaults
from plimsoll.simulator.world.brokers import SimulatedFleet


@dataclass(frozen=True, slots=True)
class FaultRates:
    """How often each fault happens, per second of the run.

    `wall`: a partition in both directions; `one_way`: in one. `seconds`: the shortest and the longest time that a
    pause, a partition, a slow connection or a crash lasts. `lose_head`: with its node, so that connections are silent.
    `lose_node`: an edge is on it, too.
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
    crash_standby: float = 0.0
    lose_head: float = 0.0
    lose_node: float = 0.0
    seconds: tuple[float, float] = (0.05, 2.0)


class FaultInjector:
    """Draws faults over an interval and injects them. The faults themselves are `connections`' and `processes`'."""

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
        self.connections = connections = ConnectionFaults(self)
        self.processes = processes = ProcessFaults(self, fleet, clients)
        self._actions: dict[str, Callable[[], bool]] = {
            "reconnect": connections.reconnect,
            "storm": lambda: connections.storm(clients.names()),
            "pause_client": lambda: processes.pause(clients.names()),
            "pause_edge": lambda: processes.pause([broker.name for broker in fleet.edges()]),
            "pause_head": lambda: processes.pause([broker.name for broker in fleet.heads()]),
            "wall": connections.wall,
            "one_way": connections.one_way,
            "slow": connections.slow,
            "crash_client": lambda: processes.crash(clients.names()),
            "crash_edge": lambda: processes.crash([broker.name for broker in fleet.edges()]),
            "crash_head": lambda: processes.crash(fleet.covered_heads()),
            "lose_head": lambda: processes.lose(fleet.covered_heads()),
            "lose_node": lambda: processes.lose(fleet.covered_heads(), with_edge=True),
            "crash_standby": lambda: fleet.crash_standby(self.rng.choice([broker.name for broker in fleet.heads()])),
        }
        """By the names of the fields of `FaultRates`."""

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
        self.strike(self._actions[kind], kind)

    def strike(self, action: Callable[[], bool], kind: str) -> bool:
        """Inject one fault, unless the run has healed; count it if it found a victim."""
        happens = not self.is_over and action()
        if happens:
            self.happened[kind] = self.happened.get(kind, 0) + 1
        return happens

    def end_later(self, text: str, end: Callable[[], None], times: float = 1.0) -> bool:
        """Trace a fault that has begun, and schedule its end. `times`: by how much longer it lasts than others."""
        self._next += 1
        self._ends[self._next] = (text, end)
        low, high = self.rates.seconds
        # Log-uniform: milliseconds are as likely as seconds, since short faults hit other steps than long ones do.
        seconds = times * low * (high / low) ** self.rng.random()
        self.network.trace_line(f"! {text} for {seconds:.3f} s")
        self.schedule.after(seconds, self._end, self._next)
        return True

    def _end(self, key: int) -> None:
        text, end = self._ends.pop(key, ("", None))
        if end is not None:
            self.network.trace_line(f"! end of: {text}")
            end()
