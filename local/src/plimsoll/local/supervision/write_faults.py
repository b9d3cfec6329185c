"""What a running supervisor cannot write now. It goes on without it, and tries again at its next round."""

from __future__ import annotations

from collections.abc import Callable

from plimsoll.local.storage.state_files import StateWriteError
from plimsoll.local.supervision.fleet_events import FleetEvents


class WriteFaults:
    """Says once that writing fails, with the first fault, and once that all is written again."""

    def __init__(self, events: FleetEvents) -> None:
        self._events = events
        self._failing: dict[str, str] = {}
        self._is_reported = False

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
        self._failing.pop(what, None)
        return True

    def settle(self) -> None:
        """End of a round: store the events that wait, and say it when nothing fails any longer."""
        if self._events.flush() and self._is_reported and not self._failing:
            self._is_reported = False
            text = "the state of the fleet is written again"
            self._events.record_fleet_event("Normal", "WritesResumed", text)
            self._events.announce(text)
