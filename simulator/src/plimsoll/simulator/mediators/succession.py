"""The lives of mediators: one after another, or one that takes over while the other still believes in itself."""

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
    """What outlives mediators: what is asked for, and what is stored. It makes each of them."""

    def mediator(self, name: str, draw: random.Random) -> OverlayNode:
        """One more life, with a higher epoch."""

    def is_settled(self) -> bool: ...

    def leftovers(self) -> Iterator[str]:
        """What is wrong at the end."""

    def counts(self) -> dict[str, int]:
        """Hand-overs by their end, and members by their outcome."""


class MediatorSuccession:
    """Hosts of mediators over one office. `current` is the youngest."""

    def __init__(
        self,
        schedule: EventQueue,
        network: SimulatedNetwork,
        journal: ObservationJournal,
        draw: random.Random,
        office: MediatorBackend,
    ) -> None:
        self.schedule, self.network, self.journal, self.office = schedule, network, journal, office
        self.hosts: list[SimulatedHost] = []
        self._salt = draw.getrandbits(32)

    @property
    def current(self) -> SimulatedHost | None:
        return self.hosts[-1] if self.hosts else None

    def start(self) -> None:
        """Start one more, with a higher epoch; those before are left as they are."""
        number = len(self.hosts)
        host = SimulatedHost(f"m{number}", self.schedule, self.network)
        self.hosts.append(host)
        draw = random.Random(self._salt + number)
        host.start(lambda: self.office.mediator(host.name, draw))

    def crash(self) -> None:
        """Kill the youngest."""
        if self.current is not None and self.current.node is not None:
            self.network.trace_line(f"! mediator {self.current.name} is killed")
            self.current.crash()

    def restart(self) -> None:
        """Start another if the youngest is gone."""
        if self.current is None or self.current.node is None:
            self.start()

    def plan(self, rate: float, draw: random.Random, start: float, until: float, wanted: Callable[[str], bool]) -> None:
        """Draw deaths and take-overs; those whose label is not wanted do not happen."""
        number, at = 0, start + draw.expovariate(rate) if rate else until
        while at < until:
            away, usurped = draw.uniform(0.0, 0.5), draw.random() < 0.4
            if wanted(f"life{number}"):
                self.schedule.at(at, self.start if usurped else self.crash)
                self.schedule.at(at + away, self.restart)
            number += 1
            at += draw.expovariate(rate)

    def leftovers(self) -> None:
        """I5: every hand-over that was begun has come to something."""
        for what in self.office.leftovers():
            self.journal.add(seen.ResidueObserved("mediator", what, 1, self.schedule.now))
