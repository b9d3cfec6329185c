"""How busy the machine was with other work during a run.

A run that shares its processors with other processes still proves what was delivered. Its time to converge and its
overhead then depend more on those processes than on Plimsoll, so those claims are not judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

OTHERS_SHARE_AT_MOST: Final = 0.15
"""Processor time of other processes, as a share of one processor. A quiet machine needs a few per cent for itself."""
FREE_SHARE_AT_LEAST: Final = 0.03
"""Idle share of all processors, on average. Below it the fleet itself has waited for a processor."""


@dataclass(frozen=True, slots=True)
class ProcessorTimes:
    """One sample of the machine. Times are processor seconds since a fixed moment.

    `busy`: of all processes together. `own`: by process id, of the demo and all its descendants.
    """

    at: float
    busy: float
    own: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class MachineLoad:
    """Average processors in use over a stretch of time. `seconds` is 0 where the system gives no figures."""

    processors: int
    seconds: float
    own: float
    others: float

    @property
    def is_known(self) -> bool:
        return self.seconds > 0.0

    @property
    def is_too_busy(self) -> bool:
        """Whether the machine was too busy for figures that depend on it."""
        if not self.is_known:
            return False
        free = self.processors - self.own - self.others
        return self.others > OTHERS_SHARE_AT_MOST or free < FREE_SHARE_AT_LEAST * self.processors

    def text(self) -> str:
        """A sentence without its full stop."""
        if not self.is_known:
            return "this system does not report what other processes used"
        used = f"other processes used {self.others:.2f} and the demo {self.own:.2f}"
        return f"{used} of {self.processors} processors on average"

    def plain(self) -> dict[str, Any]:
        """The section of `report.json`."""
        return {
            "processors": self.processors,
            "seconds": round(self.seconds, 1),
            "own_processors": round(self.own, 3) if self.is_known else None,
            "other_processors": round(self.others, 3) if self.is_known else None,
            "too_busy": self.is_too_busy,
        }


@dataclass(slots=True)
class MachineLoadMeter:
    """Adds up the use between samples. A process that ends between two samples keeps its last value."""

    processors: int
    seconds: float = 0.0
    busy: float = 0.0
    own: float = 0.0
    _last: ProcessorTimes | None = field(default=None)

    def take(self, times: ProcessorTimes) -> None:
        last, self._last = self._last, times
        if last is None:
            return
        self.seconds += times.at - last.at
        self.busy += max(0.0, times.busy - last.busy)
        self.own += sum(max(0.0, seconds - last.own.get(pid, 0.0)) for pid, seconds in times.own.items())

    def load(self) -> MachineLoad:
        """The average so far."""
        if self.seconds <= 0.0:
            return MachineLoad(self.processors, 0.0, 0.0, 0.0)
        others = max(0.0, self.busy - self.own)
        return MachineLoad(self.processors, self.seconds, self.own / self.seconds, others / self.seconds)
