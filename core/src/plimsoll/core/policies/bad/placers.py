"""Where newcomers go in BAD: to the nearest broker, to any, or to each in turn, whatever the loads are."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.core.policies.placement import Location, PlacementTarget, PlacementUnit


@dataclass(frozen=True)
class NearestPlacer:
    """The edge nearest by coordinates, ties by name.

    Without a location of the newcomer or of any edge they go in turn, since all are as near as far as is known (ours).
    """

    def place(self, unit: PlacementUnit, ports: Sequence[PlacementTarget]) -> PlacementTarget | None:
        """The nearest of the edges that have a location."""
        here = unit.location
        placed = [(port, there) for port in ports if (there := port.location) is not None]
        if here is None or not placed:
            return RoundRobinPlacer().place(unit, ports)
        return min(placed, key=lambda each: (distance(here, each[1]), each[0].name))[0]


def distance(one: Location, other: Location) -> float:
    """The distance of two locations on a plane, in their unit."""
    return math.hypot(one[0] - other[0], one[1] - other[1])


@dataclass(frozen=True)
class RandomPlacer:
    """Any edge, drawn by the seed and the number of the newcomer: equal seeds draw the same."""

    seed: int = 1

    def place(self, unit: PlacementUnit, ports: Sequence[PlacementTarget]) -> PlacementTarget | None:
        """One of the edges, each as likely as the others."""
        if not ports:
            return None
        drawn = hashlib.sha256(f"{self.seed}/{unit.number}".encode()).digest()
        return sorted(ports, key=lambda port: port.name)[int.from_bytes(drawn[:8], "big") % len(ports)]


@dataclass(frozen=True)
class RoundRobinPlacer:
    """Each edge in turn, in the order of their names."""

    def place(self, unit: PlacementUnit, ports: Sequence[PlacementTarget]) -> PlacementTarget | None:
        """The edge whose turn it is, by the number of the newcomer."""
        return sorted(ports, key=lambda port: port.name)[unit.number % len(ports)] if ports else None
