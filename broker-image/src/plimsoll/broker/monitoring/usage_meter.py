"""Usage of the process: CPU and memory as ratios of their limits, and the lag of its loop."""

from __future__ import annotations

import os
import resource
import sys
import time
from bisect import bisect_left
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from plimsoll.core.config import BrokerHardware

_STATM = Path("/proc/self/statm")


def memory_bytes() -> int:
    """Resident memory of this process; where the system does not give it, its peak."""
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


BOUNDS_SECONDS: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)


@dataclass(slots=True)
class RoundDurations:
    """A histogram of round durations: a count per bound of `BOUNDS_SECONDS`, and a last one for those above all."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS_SECONDS) + 1))
    seconds: float = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(BOUNDS_SECONDS, seconds)] += 1
        self.seconds += seconds

    def copy(self) -> RoundDurations:
        return RoundDurations(list(self.counts), self.seconds)


@dataclass(frozen=True, slots=True)
class ProcessUsage:
    """Usage over one interval. Ratios are to the limits of the profile; `lag_seconds` is the worst of the interval."""

    cpu_ratio: float
    memory_ratio: float
    memory_bytes: int
    lag_seconds: float


class UsageMeter:
    """Measures from one `sample` to the next; call `note_lag` for each late tick."""

    def __init__(self, hardware: BrokerHardware, now: float) -> None:
        self._hardware = hardware
        self._at, self._cpu_seconds = now, time.process_time()
        self._lag_seconds = 0.0

    def note_lag(self, seconds: float) -> None:
        if seconds > self._lag_seconds:
            self._lag_seconds = seconds

    def sample(self, now: float) -> ProcessUsage:
        """The usage since the last sample, over all threads of the process including ZeroMQ's."""
        cpu_seconds = time.process_time()
        elapsed = max(now - self._at, 1e-9)
        resident = memory_bytes()
        usage = ProcessUsage(
            cpu_ratio=(cpu_seconds - self._cpu_seconds) / elapsed / (self._hardware.cpu_millicores / 1000),
            memory_ratio=resident / self._hardware.memory_bytes,
            memory_bytes=resident,
            lag_seconds=self._lag_seconds,
        )
        self._at, self._cpu_seconds, self._lag_seconds = now, cpu_seconds, 0.0
        return usage
