"""`python -m plimsoll.sparkjobs.launch.liveness_probe FOLDER`: the exit code says whether the live job works.

For a kubelet, where the job shares a pod with a collector and nobody else can start it anew alone: 0 while the last
snapshot is not dead, else 1 and why.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from plimsoll.core.printable import printable_lines
from plimsoll.sparkjobs.launch.live_job_health import assess_live_job
from plimsoll.telemetry.schema import LATEST
from plimsoll.telemetry.snapshot import SnapshotError, TelemetrySnapshot, decode_snapshot


def main(arguments: Sequence[str]) -> int:
    # A probe begins when a start may be over: what is not there by now is not about to come.
    found = assess_live_job(time.time_ns() // 1000, _read(Path(arguments[0]) / LATEST), 0)
    if found.wants_restart:
        sys.stderr.write(printable_lines(f"{found.message}\n"))
        return 1
    return 0


def _read(path: Path) -> TelemetrySnapshot | None:
    try:
        return decode_snapshot(path.read_bytes())
    except (OSError, SnapshotError):
        return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
