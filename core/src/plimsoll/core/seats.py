"""Where a newcomer goes: the edges of a cluster as a head sees them, and the placer that chooses among them.

What has been placed since an edge last reported is counted: a burst of newcomers must not all go to the edge that was
the emptiest when it last spoke.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from plimsoll.core.policies import LeastLoaded, Placer, Port, Unit
from plimsoll.core.wire import WireError

NEWCOMER: Final = Unit()


@dataclass(slots=True)
class Seat:
    """An edge, where clients reach it, and its load: as reported, and newcomers since."""

    port: Port
    endpoint: str
    public_key: str

    @property
    def name(self) -> str:
        return self.port.name


class Seats:
    """The edges that can take subscribers now."""

    def __init__(self, placer: Placer | None = None) -> None:
        self.placer = placer or LeastLoaded()
        self._seats: dict[str, Seat] = {}
        self.cordoned: frozenset[str] = frozenset()
        """Edges that take no newcomers; those who are there stay."""

    def add(self, name: str, endpoint: str, public_key: str) -> None:
        self._seats[name] = Seat(Port(name), endpoint, public_key)

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
        seat.port = Port(seat.name, utilization, subscribers, capacity)

    def place(self, exclude: Collection[str], prefer: str = "") -> Seat | None:
        """The seat of a newcomer, or None if there is none; `exclude` is heeded unless nothing else is left."""
        open_seats = [seat for seat in self._seats.values() if seat.name not in self.cordoned]
        seats = [seat for seat in open_seats if seat.name not in exclude] or open_seats
        if not seats:
            return None
        wanted = {seat.name: seat for seat in seats if seat.name == prefer} or {seat.name: seat for seat in seats}
        port = self.placer.place(NEWCOMER, [seat.port for seat in wanted.values()])
        if port is None:
            return None
        seat = wanted[port.name]
        seat.port = port.after(NEWCOMER)
        return seat
