"""Says on standard error that what a command shows may be out of date."""

from __future__ import annotations

from plimsoll.cli.backend import FleetReader
from plimsoll.cli.output import print_error


class StalenessNotes:
    """One line when the status of a fleet becomes old, and one when it is written again."""

    def __init__(self, place: FleetReader) -> None:
        self._place, self._is_old = place, False

    def print_changes(self) -> None:
        note = self._place.staleness_note()
        if note and not self._is_old:
            print_error(f"note: {note}")
        elif self._is_old and not note:
            print_error(f"note: the status of {self._place.title} is written again")
        self._is_old = bool(note)
