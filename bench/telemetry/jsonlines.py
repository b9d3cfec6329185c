"""The baseline: the same reports as lines of JSON in one file, as they come; nothing is checked, counted or served.

    python -m bench.telemetry.jsonlines CONFIG

CONFIG is a collector's. SIGTERM ends it.
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
    listening = HeadListener(config.name, None)
    listening.set_heads({name: each.head for name, each in config.clusters.items()})
    folder = Path(config.folder)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "reports.jsonl").open("w") as file:
        write_at = time.monotonic() + config.interval_seconds
        while not stopped:
            for heard in listening.receive(0.2, time.monotonic()):
                for report in heard.reports:
                    file.write(json.dumps({**report, "received_us": time.time_ns() // 1000}) + "\n")
            if time.monotonic() > write_at:
                file.flush()
                write_at += config.interval_seconds
    listening.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
