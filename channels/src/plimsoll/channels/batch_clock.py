"""The periods of a repetitive channel: which has begun, and which were kept, late or left out.

Periods are counted from 1970, as Spark counts them: channels with the same period have their batches at the same times.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

LATE_RATIO: Final = 0.1
"""A batch that begins later than after this part of its period is late."""
SLACK_SECONDS: Final = 0.001
"""A last batch that was due so shortly before a period belongs to it: its time was rounded."""
STEP_SECONDS: Final = 1.0
"""A clock that goes back by more between two looks at it was set."""


def period_at(every_seconds: float | None, now: float) -> int:
    """The number of the period that has begun at `now`, in seconds since 1970; 0 without periods."""
    return 0 if every_seconds is None else int(now / every_seconds)


class BatchClock:
    """`every_seconds`: the period; None: a batch as soon as there are new rows.

    `last`: when the last batch was due, in seconds since 1970; of a new channel, when it was
    made, since the period in which that happens gets no batch.
    """

    def __init__(self, every_seconds: float | None, last: float) -> None:
        self._every = every_seconds
        self.period = period_at(every_seconds, last + SLACK_SECONDS)
        """That of the last batch."""
        self.kept = self.late = self.missed = 0
        """Periods whose batch began in time, began late, and that had none."""

    def begun(self, period: int, now: float) -> None:
        """The batch of a period, which began at `now`, is committed. Periods without one are not made up for."""
        if self._every is None or period == self.period:  # the second half of a batch that was too large
            return
        self.missed += max(0, period - self.period - 1)
        if self.late_seconds(period, now) > LATE_RATIO * self._every:
            self.late += 1
        else:
            self.kept += 1
        self.period = period

    def due_us(self, period: int) -> int:
        """When the batch of a period is due, in microseconds since 1970; 0 without periods."""
        return 0 if self._every is None else round(period * self._every * 1e6)

    def follow(self, now: float) -> None:
        """Begin with the period of now if the clock was set back by more than one, not to wait until it has caught up.

        If it was set back by less, the period that begins again has had its batch.
        """
        if (period := period_at(self._every, now)) < self.period - 1:
            self.period = period

    def late_seconds(self, period: int, now: float) -> float:
        """How long after the beginning of its period a batch begins that begins now; 0 without periods."""
        return 0.0 if self._every is None else max(0.0, now - period * self._every)


class ClockWatch:
    """Tells whether the clock was set back. `clock`: seconds since 1970; `steady`: of a clock that is never set."""

    def __init__(self, clock: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._steady = clock, steady
        self._ahead = clock() - steady()

    def was_set_back(self) -> bool:
        """Whether it was since the last call."""
        before, self._ahead = self._ahead, self._clock() - self._steady()
        return self._ahead < before - STEP_SECONDS
