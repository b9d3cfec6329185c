"""Placement: the targets that could own a unit, and the placers that choose among them.

Loads are utilisations; 1.0 is all that a broker has. `PlacementTarget.after` counts units placed since the target's
last report, so that many units placed at once do not all go where there was most room.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

LOAD_PER_SUBSCRIBER = 0.002
"""Counted per subscriber on top of its load, as utilisation of a broker of capacity 1."""


SINGLE_PLACEMENTS_AT_MOST = 1000
"""Above this number several units are placed together: a placement may then be off by one part in this many."""


Location = tuple[float, float]
"""Coordinates on a plane, in any unit that all clients and edges of a fleet share."""


@dataclass(frozen=True, slots=True)
class PlacementUnit:
    """Subscribers that have one owner. `load`: the utilisation that they add to a target of capacity 1; 0 if unknown.

    Each subscriber counts a little in any case. `number`: how many were placed before; `location`: where it is, None if
    that is not known. `message_rate`: publications per second, in and out, that it is taken to bring.
    """

    subscribers: int = 1
    load: float = 0.0
    number: int = 0
    location: Location | None = None
    message_rate: float = 0.0


@dataclass(frozen=True, slots=True)
class PlacementTarget:
    """An edge that can own units. `capacity` is relative to a reference broker, and above 0.

    `usage`: the highest utilisation of all its resources; `message_rate`: publications per second in and out, over a
    long term. `beside`: how much it has that should be apart from the unit, as topics that are correlated with it.
    """

    name: str
    utilization: float = 0.0
    subscribers: int = 0
    capacity: float = 1.0
    location: Location | None = None
    usage: float = 0.0
    message_rate: float = 0.0
    beside: int = 0

    @property
    def load(self) -> float:
        """The load to compare targets by: utilisation, and subscribers by capacity, which decide if traffic is low."""
        return self.utilization + LOAD_PER_SUBSCRIBER * self.subscribers / self.capacity

    def after(self, unit: PlacementUnit) -> PlacementTarget:
        """This target with the unit on it."""
        utilization = self.utilization + unit.load / self.capacity
        subscribers, rate = self.subscribers + unit.subscribers, self.message_rate + unit.message_rate
        return replace(self, utilization=utilization, subscribers=subscribers, message_rate=rate)

    def without(self, unit: PlacementUnit) -> PlacementTarget:
        """This target without the unit, which was on it."""
        utilization = max(0.0, self.utilization - unit.load / self.capacity)
        subscribers, rate = self.subscribers - unit.subscribers, self.message_rate - unit.message_rate
        return replace(self, utilization=utilization, subscribers=max(0, subscribers), message_rate=max(0.0, rate))


class Placer(Protocol):
    """Chooses where one unit goes."""

    def place(self, unit: PlacementUnit, ports: Sequence[PlacementTarget]) -> PlacementTarget | None:
        """One of the targets, or None if none of them should have the unit."""


@dataclass(frozen=True)
class LeastLoadedPlacer:
    """Places each unit on the target that would be the least loaded with it; ties go to the first by name.

    A target that the unit would bring above `most_utilization` is taken only if every target would be above it.
    """

    most_utilization: float = 0.9

    def place(self, unit: PlacementUnit, ports: Sequence[PlacementTarget]) -> PlacementTarget | None:
        """The least loaded target, or None if there are no targets."""
        return min(ports, key=lambda port: self._burden(port.after(unit)), default=None)

    def _burden(self, port: PlacementTarget) -> tuple[bool, float, str]:
        return port.utilization > self.most_utilization, port.load, port.name


def place_units(
    placer: Placer, unit: PlacementUnit, count: int, ports: Iterable[PlacementTarget]
) -> tuple[list[str], dict[str, PlacementTarget]]:
    """Place `count` equal units. Returns the target of each unit, and all targets as they will be afterwards.

    Units are placed one after another, or a few together if there are thousands. Fewer names than `count` come back
    if the placer refuses the rest.
    """
    now = {port.name: port for port in ports}
    chosen: list[str] = []
    together = max(1, count // SINGLE_PLACEMENTS_AT_MOST)
    while len(chosen) < count:
        some = min(together, count - len(chosen))
        several = PlacementUnit(unit.subscribers * some, unit.load * some)
        port = placer.place(several, list(now.values()))
        if port is None:
            break
        now[port.name] = port.after(several)
        chosen += [port.name] * some
    return chosen, now
