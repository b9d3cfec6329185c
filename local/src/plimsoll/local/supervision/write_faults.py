"""What a running supervisor cannot do now. It goes on without it, and tries again at its next round.

Mostly that is to write on a full disk. Any other exception is a fault of the program, met by one object or message: it
must not end the brokers of the fleet, so it is counted, and said at the first, tenth, hundredth time and so on.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable

from plimsoll.core.printable import is_told_again, printable
from plimsoll.local.storage.state_files import StateWriteError
from plimsoll.local.supervision.fleet_events import FleetEvents

TEXT_AT_MOST = 500
"""Of what an event says about a fault of the program."""


class WriteFaults:
    """Says once that writing fails, with the first fault, and once that all is written again."""

    def __init__(self, events: FleetEvents) -> None:
        self._events = events
        self._failing: dict[str, str] = {}
        self._is_reported = False
        self._broken: dict[str, int] = {}

    def attempt(self, what: str, action: Callable[[], object]) -> bool:
        """Do something that may have to write; whether it could. `what` names it until it succeeds."""
        try:
            action()
        except StateWriteError as error:
            self._failing[what] = str(error)
            if not self._is_reported:
                self._is_reported = True
                self._events.record_fleet_event(
                    "Warning", "WriteFailed", f"{error}; brokers go on, and the supervisor tries again each second"
                )
            return False
        except Exception as error:  # noqa: BLE001  # the brokers of the fleet outlive a fault of the program that runs them
            self.note_fault(what, error)
            return False
        self._failing.pop(what, None)
        return True

    def note_fault(self, what: str, error: Exception) -> None:
        """Say that this cannot be done for a fault of the program; of the same again only some are said."""
        times = self._broken[what] = self._broken.get(what, 0) + 1
        if is_told_again(times):
            where = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{where.filename.rpartition('/')[2]}, line {where.lineno}"
            text = f"{what} failed ({times} times so far), and the rest goes on: {type(error).__name__}: {error}"
            self._events.record_fleet_event("Warning", "PartFailed", printable(f"{text[:TEXT_AT_MOST]} ({place})"))

    def settle(self) -> None:
        """End of a round: store the events that wait, and say it when nothing fails any longer."""
        if self._events.flush() and self._is_reported and not self._failing:
            self._is_reported = False
            text = "the state of the fleet is written again"
            self._events.record_fleet_event("Normal", "WritesResumed", text)
            self._events.announce(text)
