"""When a channel has its next batch: as soon as there are new rows, or once in each period."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from plimsoll.channels.batch import RowRange

LATE_RATIO: Final = 0.1
"""A batch that begins later than after this part of its period is late."""


class BatchClock:
    """`every_seconds`: the period; None: a batch as soon as there are new rows. `now`: seconds since 1970.

    Periods are counted from 1970, so that channels with the same period have their batches at the same times.
    """

    def __init__(self, every_seconds: float | None, now: float) -> None:
        self._every = every_seconds
        self._period = self._period_at(now)
        self.kept = self.late = self.missed = 0
        """Periods whose batch began in time, began late, and that had none."""

    def _period_at(self, now: float) -> int:
        return 0 if self._every is None else int(now / self._every)

    def wait_seconds(self, now: float) -> float:
        """How long no batch can be due: until the next period begins; 0 without periods, since rows may come."""
        if self._every is None or self._period_at(now) != self._period:
            return 0.0
        return (self._period + 1) * self._every - now

    def is_due(self, ranges: Iterable[RowRange], now: float) -> bool:
        """Whether a batch of these ranges is due."""
        if self._every is None:
            return any(each.count for each in ranges)
        return self._period_at(now) != self._period

    def begun(self, now: float) -> None:
        """The batch that began at `now` is committed: that of its period. Periods without one are not made up for."""
        if self._every is None:
            return
        period = self._period_at(now)
        self.missed += max(0, period - self._period - 1)
        if self.late_seconds(now) > LATE_RATIO * self._every:
            self.late += 1
        else:
            self.kept += 1
        self._period = period

    def late_seconds(self, now: float) -> float:
        """How long after the beginning of its period a batch begins that begins now; 0 without periods."""
        return 0.0 if self._every is None else now - self._period_at(now) * self._every
