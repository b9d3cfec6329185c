"""The periods of a repetitive channel: which has begun, and which were kept, late or left out.

Periods are counted from 1970, as Spark counts them: channels with the same period have their batches at the same times.
"""

from __future__ import annotations

from typing import Final

LATE_RATIO: Final = 0.1
"""A batch that begins later than after this part of its period is late."""


def period_at(every_seconds: float | None, now: float) -> int:
    """The number of the period that has begun at `now`, in seconds since 1970; 0 without periods."""
    return 0 if every_seconds is None else int(now / every_seconds)


class BatchClock:
    """`every_seconds`: the period; None: a batch as soon as there are new rows. `now`: seconds since 1970."""

    def __init__(self, every_seconds: float | None, now: float) -> None:
        self._every = every_seconds
        self.period = period_at(every_seconds, now)
        """That of the last batch; at first the one in which the channel starts, which gets none."""
        self.kept = self.late = self.missed = 0
        """Periods whose batch began in time, began late, and that had none."""

    def begun(self, period: int, now: float) -> None:
        """The batch of a period, which began at `now`, is committed. Periods without one are not made up for."""
        if self._every is None:
            return
        self.missed += max(0, period - self.period - 1)
        if self.late_seconds(period, now) > LATE_RATIO * self._every:
            self.late += 1
        else:
            self.kept += 1
        self.period = period

    def late_seconds(self, period: int, now: float) -> float:
        """How long after the beginning of its period a batch begins that begins now; 0 without periods."""
        return 0.0 if self._every is None else now - period * self._every
