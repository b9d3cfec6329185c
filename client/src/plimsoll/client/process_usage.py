"""What this process uses: its processor time, and its memory. Members of consumer groups report it."""

from __future__ import annotations

import os
import time
from pathlib import Path

LIMIT_FILES = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
STATM = Path("/proc/self/statm")


class OwnUsage:
    """Each call measures since the one before.

    The processor counts as a share of one, since one thread of an interpreter runs at a time; memory as a share of the
    container's limit, or of the machine's. What a system does not tell is 0.
    """

    def __init__(self) -> None:
        self._at, self._used = time.monotonic(), time.process_time()
        self._memory_limit = memory_limit()

    def __call__(self) -> tuple[float, float]:
        at, used = time.monotonic(), time.process_time()
        seconds, worked = at - self._at, used - self._used
        self._at, self._used = at, used
        cpu = min(1.0, worked / seconds) if seconds > 0 else 0.0
        return cpu, min(1.0, resident_bytes() / self._memory_limit)


def memory_limit() -> int:
    """Bytes that this process may have."""
    found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for path in LIMIT_FILES:
        try:
            text = path.read_text().strip()
        except OSError:
            continue  # another kind of system, or of control group
        if text.isdigit():
            found.append(int(text))
    return max(1, min(found))


def resident_bytes() -> int:
    """Bytes of memory that this process has; 0 where the system does not tell."""
    try:
        return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0  # no Linux
