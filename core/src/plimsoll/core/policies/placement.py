"""Where a unit goes: ports that could own it, and the placers that choose among them.

Loads are utilisations, 1.0 being all that a broker has. What has been placed since a port last reported is counted by
`Port.after`, so that many units placed at once do not all go where there was most room.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

PLACED_LOAD = 0.002
"""What a subscriber counts beside its load, as utilisation of a broker of capacity 1."""


PLACED_ONE_BY_ONE = 1000
"""Of more units than this several are placed together: a placement may be wrong by one part in so many."""


@dataclass(frozen=True, slots=True)
class Unit:
    """What has one owner, here a number of subscribers. `load`: the utilisation that they add to a port of capacity 1.

    Zero where it is not known; each subscriber counts a little in any case.
    """

    subscribers: int = 1
    load: float = 0.0


@dataclass(frozen=True, slots=True)
class Port:
    """What can own units: an edge. `capacity` is relative to a reference broker, and above 0."""

    name: str
    utilization: float = 0.0
    subscribers: int = 0
    capacity: float = 1.0

    @property
    def load(self) -> float:
        """What ports are compared by: utilisation, and subscribers by capacity, where little flows."""
        return self.utilization + PLACED_LOAD * self.subscribers / self.capacity

    def after(self, unit: Unit) -> Port:
        """This port with the unit on it."""
        utilization = self.utilization + unit.load / self.capacity
        return replace(self, utilization=utilization, subscribers=self.subscribers + unit.subscribers)

    def without(self, unit: Unit) -> Port:
        """This port without the unit, which was on it."""
        utilization = max(0.0, self.utilization - unit.load / self.capacity)
        return replace(self, utilization=utilization, subscribers=max(0, self.subscribers - unit.subscribers))


class Placer(Protocol):
    """Where one unit goes."""

    def place(self, unit: Unit, ports: Sequence[Port]) -> Port | None:
        """One of the ports, or None if none of them should have it."""


@dataclass(frozen=True)
class LeastLoaded:
    """Each unit to the port that would be the least loaded with it; of equals, to the first by name.

    A port that the unit would bring above `most_utilization` is taken only if all are above it.
    """

    most_utilization: float = 0.9

    def place(self, unit: Unit, ports: Sequence[Port]) -> Port | None:
        """The least loaded port, or None of none."""
        return min(ports, key=lambda port: self._burden(port.after(unit)), default=None)

    def _burden(self, port: Port) -> tuple[bool, float, str]:
        return port.utilization > self.most_utilization, port.load, port.name


def spread(placer: Placer, unit: Unit, count: int, ports: Iterable[Port]) -> tuple[list[str], dict[str, Port]]:
    """Place `count` equal units: the port of each, and all ports as they will be then.

    They go one after another; where there are thousands, a few go together. Fewer names than `count` come back where
    the placer refuses the rest.
    """
    now = {port.name: port for port in ports}
    chosen: list[str] = []
    together = max(1, count // PLACED_ONE_BY_ONE)
    while len(chosen) < count:
        some = min(together, count - len(chosen))
        several = Unit(unit.subscribers * some, unit.load * some)
        port = placer.place(several, list(now.values()))
        if port is None:
            break
        now[port.name] = port.after(several)
        chosen += [port.name] * some
    return chosen, now
