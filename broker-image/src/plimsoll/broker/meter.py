"""What a process uses of its machine: CPU and memory against their limits, and how late its loop runs."""

from __future__ import annotations

import os
import resource
import sys
import time
from bisect import bisect_left
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from plimsoll.core.config import Hardware

_STATM = Path("/proc/self/statm")


def memory_bytes() -> int:
    """Resident memory of this process now; where the system does not say, the most that it has ever been."""
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


BOUNDS_SECONDS: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)


@dataclass(slots=True)
class Durations:
    """How long rounds took: how many up to each of `BOUNDS_SECONDS`, above the one before; then how many above all."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS_SECONDS) + 1))
    seconds: float = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(BOUNDS_SECONDS, seconds)] += 1
        self.seconds += seconds

    def copy(self) -> Durations:
        return Durations(list(self.counts), self.seconds)


@dataclass(frozen=True, slots=True)
class Usage:
    """Use over one interval. Ratios are to the limits of the profile; `lag_seconds` is the worst of the interval."""

    cpu_ratio: float
    memory_ratio: float
    memory_bytes: int
    lag_seconds: float


class Meter:
    """Measures from one `sample` to the next. `late` is told of each tick that came after its time."""

    def __init__(self, hardware: Hardware, now: float) -> None:
        self._hardware = hardware
        self._at, self._cpu_seconds = now, time.process_time()
        self._lag_seconds = 0.0

    def late(self, seconds: float) -> None:
        if seconds > self._lag_seconds:
            self._lag_seconds = seconds

    def sample(self, now: float) -> Usage:
        """The use since the last sample; all threads of the process count, those of ZeroMQ too."""
        cpu_seconds = time.process_time()
        elapsed = max(now - self._at, 1e-9)
        resident = memory_bytes()
        usage = Usage(
            cpu_ratio=(cpu_seconds - self._cpu_seconds) / elapsed / (self._hardware.cpu_millicores / 1000),
            memory_ratio=resident / self._hardware.memory_bytes,
            memory_bytes=resident,
            lag_seconds=self._lag_seconds,
        )
        self._at, self._cpu_seconds, self._lag_seconds = now, cpu_seconds, 0.0
        return usage
