"""The time that sessions count with: the time of day, which does not step while a session is open.

Stored times and those of maintenance windows are times of day. But a deadline must not pass because a clock was set. So
while sessions are open time goes on as the monotonic clock does; with none open the time of day is taken over.
"""

from __future__ import annotations

import time
from collections.abc import Callable


class SteadyClock:
    """`time_of_day` and `monotonic`: the clocks of this machine, in seconds."""

    def __init__(
        self, time_of_day: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._time_of_day, self._monotonic = time_of_day, monotonic
        self._ahead = time_of_day() - monotonic()

    def now(self, *, is_busy: bool) -> float:
        """The time, in seconds since 1970. `is_busy`: a session is open, so that it must not step."""
        if not is_busy:
            self._ahead = self._time_of_day() - self._monotonic()
        return self._monotonic() + self._ahead
