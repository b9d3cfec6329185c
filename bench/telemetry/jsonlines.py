"""The baseline: appends the same reports to one file as lines of JSON. It checks, counts and serves nothing.

    python -m bench.telemetry.jsonlines CONFIG

CONFIG is the configuration of a collector. SIGTERM ends the process.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path

from plimsoll.telemetry import config as configuration
from plimsoll.telemetry.ingest.head_listener import HeadListener


def main(path: Path) -> int:
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
    config = configuration.read_config(path)
    listener = HeadListener(config.name, None)
    listener.set_heads({name: each.head for name, each in config.clusters.items()})
    folder = Path(config.folder)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "reports.jsonl").open("w") as file:
        write_at = time.monotonic() + config.interval_seconds
        while not stopped:
            for received in listener.receive(0.2, time.monotonic()):
                for report in received.reports:
                    file.write(json.dumps({**report, "received_us": time.time_ns() // 1000}) + "\n")
            if time.monotonic() > write_at:
                file.flush()
                write_at += config.interval_seconds
    listener.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
