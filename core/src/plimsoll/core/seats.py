"""Where a newcomer goes: the edges of a cluster as a head sees them, and the `least-loaded` placement among them.

The load of an edge is the higher of its utilisations in its last report, plus what has been placed there since: a
burst of
newcomers must not all go to the edge that was the emptiest when it last spoke.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from plimsoll.core.wire import WireError

PLACED_SHARE = 0.002
"""Utilisation that one newcomer is taken to add on an edge of `REFERENCE_CAPACITY` until the next report."""


@dataclass(slots=True)
class Seat:
    name: str
    endpoint: str
    public_key: str
    utilization: float = 0.0
    capacity: float = 1.0
    subscribers: int = 0
    placed: int = 0

    @property
    def load(self) -> float:
        """What newcomers are compared by: utilisation, then subscribers by capacity."""
        return self.utilization + PLACED_SHARE * (self.subscribers + self.placed) / self.capacity


class Seats:
    """The edges that can take subscribers now."""

    def __init__(self) -> None:
        self._seats: dict[str, Seat] = {}
        self.cordoned: frozenset[str] = frozenset()
        """Edges that take no newcomers; those who are there stay."""

    def add(self, name: str, endpoint: str, public_key: str) -> None:
        self._seats[name] = Seat(name, endpoint, public_key)

    def remove(self, name: str) -> None:
        self._seats.pop(name, None)

    def heard(self, report: Mapping[str, Any]) -> None:
        """Take an edge's load report.

        Raises:
            WireError: `report`, and nothing is taken from it.

        """
        seat = self._seats.get(str(report.get("broker")))
        if seat is None:
            return
        try:
            utilization = max(float(report["input_utilization"]), float(report["output_utilization"]))
            capacity, subscribers = float(report.get("capacity", 1.0)), int(report["subscribers"])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise WireError("report", f"the load report of {seat.name} cannot be read: {error!r}") from error
        if not (0.0 <= utilization < float("inf") and 0.0 < capacity < float("inf") and subscribers >= 0):
            raise WireError("report", f"the load report of {seat.name} has a number out of range")
        seat.utilization, seat.capacity, seat.subscribers, seat.placed = utilization, capacity, subscribers, 0

    def place(self, exclude: Collection[str], prefer: str = "") -> Seat | None:
        """The seat of a newcomer, or None if there is none; `exclude` is heeded unless nothing else is left."""
        open_seats = [seat for seat in self._seats.values() if seat.name not in self.cordoned]
        seats = [seat for seat in open_seats if seat.name not in exclude] or open_seats
        if not seats:
            return None
        wanted = [seat for seat in seats if seat.name == prefer]
        seat = min(wanted or seats, key=lambda s: (s.load, s.name))
        seat.placed += 1
        return seat
