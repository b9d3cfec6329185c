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

from plimsoll.simulator.engine.event_queue import EventQueue
from plimsoll.simulator.engine.network import SimulatedNetwork
from plimsoll.simulator.fault_injection.connection_faults import ConnectionFaults
from plimsoll.simulator.fault_injection.process_faults import CrashableClients, ProcessFaults
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


class FaultInjector:
    """Draws faults over an interval and injects them. The faults themselves are `connections`' and `processes`'."""

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
            "crash_head": lambda: processes.crash([broker.name for broker in fleet.heads()]),
        }
        """By the names of the fields of `FaultRates`."""

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
        self.strike(self._actions[kind], kind)

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
