"""What sessions mean for an edge, for as long as a mediator has said: BUSY in one, STABILIZING after it.

A mediator says it again and again while it holds, with numbers that rise; what comes late changes nothing. A mediator
that falls silent binds nobody: the time that it gave runs out.
"""

from __future__ import annotations

import math
from typing import Literal

from plimsoll.core import records as r

LONGEST_SECONDS = 600.0
"""Nothing binds an edge for longer at one word."""

Turn = Literal["began", "moved", "ended", ""]
"""What a word means: a session began here, ended with a move, or without one; or nothing new."""


class Standing:
    """`session`: the one that this edge takes part in, as far as it has been told; empty without."""

    __slots__ = ("_heard", "_moved", "_until", "session")

    def __init__(self) -> None:
        self.session = ""
        self._moved = ""
        self._until = 0.0
        self._heard = (0, 0)

    def is_new(self, said: r.State) -> bool:
        """Whether this is later than all that was heard. What is not, changes nothing."""
        if (number := (said.mediator, said.number)) <= self._heard:
            return False
        self._heard = number
        return True

    def take(self, said: r.State, state: r.BrokerState, now: float) -> Turn:
        """Take a word in that is new. `state`: that of the edge now, which answers an ASK."""
        if said.state == "BUSY" or (said.state == "ASK" and (state == "OK" or said.session == self.session)):
            turn: Turn = "" if self.session else "began"
            self.session, self._until, self._moved = said.session, now + _bounded(said.seconds), ""
            return turn
        if said.state == "ASK" or (self.session and said.session != self.session):
            return ""
        if said.state == "STABILIZING" and said.session != self._moved:
            self.session, self._moved = "", said.session
            return "moved"
        was, self.session = self.session, ""
        return "ended" if was else ""

    def lapsed(self, now: float) -> bool:
        """Whether the mediator has been silent for too long: the session is then taken to have ended."""
        if not self.session or now < self._until:
            return False
        self.session = ""
        return True


def _bounded(seconds: float) -> float:
    return min(max(seconds, 0.0), LONGEST_SECONDS) if math.isfinite(seconds) else 0.0
