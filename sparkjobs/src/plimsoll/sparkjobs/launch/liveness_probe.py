"""`python -m plimsoll.sparkjobs.launch.liveness_probe FOLDER`: exits with 1 and a reason if the live job is dead.

For the kubelet, where the job is a container in a collector's pod: only the kubelet can restart it without the
collector. The exit code is 0 while the job is not `Dead`.
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
    # The first probe comes after START_SECONDS, so a missing snapshot is an error: hence a start at 0.
    found = assess_live_job(time.time_ns() // 1000, _read(Path(arguments[0]) / LATEST), 0)
    if found.wants_restart:
        sys.stderr.write(printable_lines(f"{found.message}\n"))
        return 1
    return 0


def _read(path: Path) -> TelemetrySnapshot | None:
    try:
        return decode_snapshot(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, SnapshotError) as error:
        sys.stderr.write(printable_lines(f"{path}: {error}\n"))
        return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
