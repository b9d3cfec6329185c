"""An edge's reservation for a balancing session: BUSY during one, STABILIZING after it moved load.

The mediator repeats RESERVATION while it holds, with rising numbers, so one that comes late is ignored. If the mediator
falls silent, the reservation lapses when its time runs out.
"""

from __future__ import annotations

import math
from typing import Literal

from plimsoll.core.protocol import messages as msg

LONGEST_SECONDS = 600.0
"""Longest time that one RESERVATION holds, even if it asks for more."""

ReservationChange = Literal["began", "moved", "ended", ""]
"""What a RESERVATION changes: a session began, ended with load moved, ended without; or nothing."""


class EdgeReservation:
    """`session`: the one that this edge is reserved for; empty if none."""

    __slots__ = ("_latest", "_moved", "_until", "session")

    def __init__(self) -> None:
        self.session = ""
        self._moved = ""
        self._until = 0.0
        self._latest = (0, 0)

    def is_new(self, reservation: msg.Reservation) -> bool:
        """Whether this is later than all others so far; if so, remembers it."""
        if (number := (reservation.mediator, reservation.number)) <= self._latest:
            return False
        self._latest = number
        return True

    def take(self, reservation: msg.Reservation, state: msg.BrokerState, now: float) -> ReservationChange:
        """Apply one that is new. `state`: the edge's state now, which decides whether an ASK is granted."""
        if reservation.state == "BUSY" or (
            reservation.state == "ASK" and (state == "OK" or reservation.session == self.session)
        ):
            change: ReservationChange = "" if self.session else "began"
            self.session, self._until, self._moved = reservation.session, now + _bounded(reservation.seconds), ""
            return change
        if reservation.state == "ASK" or (self.session and reservation.session != self.session):
            return ""
        # Repeated until it is answered: only the first STABILIZING of a session begins a new detection interval.
        if reservation.state == "STABILIZING" and reservation.session != self._moved:
            self.session, self._moved = "", reservation.session
            return "moved"
        was, self.session = self.session, ""
        return "ended" if was else ""

    def lapsed(self, now: float) -> bool:
        """Whether the mediator has been silent too long; if so, ends the session here."""
        if not self.session or now < self._until:
            return False
        self.session = ""
        return True


def _bounded(seconds: float) -> float:
    return min(max(seconds, 0.0), LONGEST_SECONDS) if math.isfinite(seconds) else 0.0
