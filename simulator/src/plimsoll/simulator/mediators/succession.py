"""The mediators of a run: started one after another, or one taking over while the one before still runs.

A mediator that was only taken for dead goes on sending commands; its lower epoch must make heads refuse them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Protocol

from plimsoll.core.transport.overlay_node import OverlayNode
from plimsoll.core.verify import observations as seen
from plimsoll.simulator.engine.event_queue import EventQueue
from plimsoll.simulator.engine.host import SimulatedHost
from plimsoll.simulator.engine.network import SimulatedNetwork
from plimsoll.simulator.world.brokers import ObservationJournal


class MediatorBackend(Protocol):
    """What outlives a mediator: the requests and the store. It creates each mediator."""

    def mediator(self, name: str, rng: random.Random) -> OverlayNode:
        """Create the next mediator, with a higher epoch."""

    def is_settled(self) -> bool: ...

    def leftovers(self) -> Iterator[str]:
        """What is wrong at the end of the run, in words."""

    def counts(self) -> dict[str, int]:
        """The number of hand-overs by final state, and of members by outcome."""


class MediatorSuccession:
    """The hosts of all mediators of a run, over one backend. `current` is the latest."""

    def __init__(
        self,
        schedule: EventQueue,
        network: SimulatedNetwork,
        journal: ObservationJournal,
        rng: random.Random,
        backend: MediatorBackend,
    ) -> None:
        self.schedule, self.network, self.journal, self.backend = schedule, network, journal, backend
        self.hosts: list[SimulatedHost] = []
        self._salt = rng.getrandbits(32)

    @property
    def current(self) -> SimulatedHost | None:
        return self.hosts[-1] if self.hosts else None

    def start(self) -> None:
        """Start another mediator, with a higher epoch; earlier ones are left as they are."""
        number = len(self.hosts)
        host = SimulatedHost(f"m{number}", self.schedule, self.network)
        self.hosts.append(host)
        rng = random.Random(self._salt + number)
        host.start(lambda: self.backend.mediator(host.name, rng))

    def crash(self) -> None:
        """Kill the latest mediator."""
        if self.current is not None and self.current.node is not None:
            self.network.trace_line(f"! mediator {self.current.name} is killed")
            self.current.crash()

    def restart(self) -> None:
        """Start another mediator if the latest is not running."""
        if self.current is None or self.current.node is None:
            self.start()

    def plan(self, rate: float, rng: random.Random, start: float, until: float, wanted: Callable[[str], bool]) -> None:
        """Draw crashes and take-overs; those whose label is not wanted are left out."""
        number, at = 0, start + rng.expovariate(rate) if rate else until
        while at < until:
            down_seconds, is_taken_over = rng.uniform(0.0, 0.5), rng.random() < 0.4
            if wanted(f"life{number}"):
                self.schedule.at(at, self.start if is_taken_over else self.crash)
                self.schedule.at(at + down_seconds, self.restart)
            number += 1
            at += rng.expovariate(rate)

    def leftovers(self) -> None:
        """I5: every hand-over that was started has an outcome."""
        for what in self.backend.leftovers():
            self.journal.add(seen.ResidueObserved("mediator", what, 1, self.schedule.now))
