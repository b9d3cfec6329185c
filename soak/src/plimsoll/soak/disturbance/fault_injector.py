"""Faults during sessions: edges and subscribers are killed; edges, heads and subscribers are frozen for a few seconds.

The kinds take turns, and a killed process is restarted after a second. Heads are not killed: a head loses the
publications that only it holds, and a soak with this injector may lose none.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Final

from plimsoll.soak.disturbance.disturbance_plan import FREEZE_SECONDS
from plimsoll.soak.harness.clients import SoakClients
from plimsoll.soak.harness.fleet_harness import FleetHarness

KINDS: Final = ("kill-edge", "freeze-edge", "freeze-subscribers", "freeze-head", "kill-subscribers")
RESTART_SECONDS: Final = 1.0


class SoakFaultInjector:
    """One disturbance every `every_seconds` on average. `done` counts them by kind."""

    def __init__(
        self, harness: FleetHarness, clients: SoakClients, draw: random.Random, every_seconds: float, processes: int
    ) -> None:
        self._harness, self._clients, self._draw, self._every = harness, clients, draw, every_seconds
        self._processes = processes
        self._next: float | None = None
        self._undo: dict[str, tuple[float, Callable[[], None]]] = {}
        self._count = 0
        self.done: Counter[str] = Counter()

    def step(self, now: float) -> None:
        """Begin and undo the disturbances that are due."""
        if self._next is None:
            self._next = now + self._pause()
        for target, (at, undo) in list(self._undo.items()):
            if now >= at:
                del self._undo[target]
                undo()
        if now >= self._next:
            self._next = now + self._pause()
            self._hit(KINDS[self._count % len(KINDS)], now)
            self._count += 1

    def heal(self) -> None:
        """Undo all disturbances."""
        while self._undo:
            _, (_, undo) = self._undo.popitem()
            undo()

    def _pause(self) -> float:
        return self._every * self._draw.uniform(0.5, 1.5)

    def _hit(self, kind: str, now: float) -> None:
        what, _, role = kind.partition("-")
        targets = {"edge": self._harness.edges(), "head": self._harness.heads}.get(role) or self._parts()
        target = self._draw.choice(targets)
        if target in self._undo:
            return  # still recovering from the last disturbance
        self.done[kind] += 1
        seconds = RESTART_SECONDS if what == "kill" else self._draw.uniform(*FREEZE_SECONDS)
        hit = self._hit_client if role == "subscribers" else self._hit_broker
        self._undo[target] = (now + seconds, hit(what, target))

    def _parts(self) -> list[str]:
        return [str(part) for part in range(self._processes)]

    def _hit_client(self, what: str, target: str) -> Callable[[], None]:
        """Kill or freeze a process of subscribers; returns the action that undoes it."""
        part = int(target)
        if what == "kill":
            self._clients.kill(part)
            return lambda: self._clients.start(part)
        self._clients.freeze(part)
        return lambda: self._clients.thaw(part)

    def _hit_broker(self, what: str, name: str) -> Callable[[], None]:
        if what == "kill":
            self._harness.kill(name)
            return lambda: self._harness.start(name)
        self._harness.freeze(name)
        return lambda: self._harness.thaw(name)
