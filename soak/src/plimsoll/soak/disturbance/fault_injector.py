"""Faults while sessions are under way: edges and clients are killed, and all but publishers are frozen for moments.

One after another, each kind in turn; a killed process comes back after a second. No head is killed: state that only a
head holds is lost with it, and here nothing may be lost.
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
    """Disturbances `every_seconds` on average. `done`: the number of each kind."""

    def __init__(
        self, ground: FleetHarness, crowd: SoakClients, draw: random.Random, every_seconds: float, processes: int
    ) -> None:
        self._ground, self._crowd, self._draw, self._every = ground, crowd, draw, every_seconds
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
        what, _, whom = kind.partition("-")
        targets = {"edge": self._ground.edges(), "head": self._ground.heads}.get(whom) or self._parts()
        target = self._draw.choice(targets)
        if target in self._undo:
            return  # still recovering from the last disturbance
        self.done[kind] += 1
        seconds = RESTART_SECONDS if what == "kill" else self._draw.uniform(*FREEZE_SECONDS)
        hit = self._clients if whom == "subscribers" else self._broker
        self._undo[target] = (now + seconds, hit(what, target))

    def _parts(self) -> list[str]:
        return [str(part) for part in range(self._processes)]

    def _clients(self, what: str, target: str) -> Callable[[], None]:
        """Hit a process of subscribers; returns the undo action."""
        part = int(target)
        if what == "kill":
            self._crowd.kill(part)
            return lambda: self._crowd.start(part)
        self._crowd.freeze(part)
        return lambda: self._crowd.thaw(part)

    def _broker(self, what: str, name: str) -> Callable[[], None]:
        if what == "kill":
            self._ground.kill(name)
            return lambda: self._ground.start(name)
        self._ground.freeze(name)
        return lambda: self._ground.thaw(name)
