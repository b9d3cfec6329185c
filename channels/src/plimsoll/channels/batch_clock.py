"""When a channel has its next batch: as soon as there are new rows, or once in each period."""

from __future__ import annotations

from collections.abc import Iterable

from plimsoll.channels.batch import RowRange


class BatchClock:
    """`every_seconds`: the period; None: a batch as soon as there are new rows. `now`: seconds since 1970.

    Periods are counted from 1970, so that channels with the same period have their batches at the same times.
    """

    def __init__(self, every_seconds: float | None, now: float) -> None:
        self._every = every_seconds
        self._period = self._period_at(now)

    def _period_at(self, now: float) -> int:
        return 0 if self._every is None else int(now / self._every)

    def is_due(self, ranges: Iterable[RowRange], now: float) -> bool:
        """Whether a batch of these ranges is due."""
        if self._every is None:
            return any(each.count for each in ranges)
        return self._period_at(now) != self._period

    def begin(self, now: float) -> None:
        """A batch begins: the one of the present period. Periods that were missed are not made up for."""
        self._period = self._period_at(now)

    def late_seconds(self, now: float) -> float:
        """How long after the beginning of its period a batch begins that begins now; 0 without periods."""
        return 0.0 if self._every is None else now - self._period_at(now) * self._every
