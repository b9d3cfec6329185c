"""`python -m bench.hostile.flood`: what a publisher notices of another one, of the same head, that floods.

One head and one edge as processes of this machine. A light publisher sends at a steady rate to some subscribers, first
alone; then beside a flood at a head and an edge of their own, which takes the machine's cores and nothing else; and
then beside a flood at the same head and edge. A flood is a client in another process that publishes as fast as it
gets credit, with one publisher or several, to subscribers of a third process. The figures are the 50th and 99th
percentile and the longest latency of the light one's deliveries, in milliseconds, the ratio of the 99th to that of the
run alone, and the flood's accepted publications per second. To compare two versions, run each with its own PYTHONPATH,
in turns.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Literal

from bench.hostile.live import TwoBrokers, latencies, summary

FLOOD = """
import os, sys, time
from plimsoll import client
os.nice(10)
head, seconds, size, count = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
with client.Connection(head, security="plain", name="flood") as connection:
    connection.wait_open(30.0)
    publishers, payload = [client.Publisher(connection, name=f"flood{i}") for i in range(count)], b"x" * size
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        is_full = True
        for publisher in publishers:
            try:
                publisher.publish({"kind": "flood", "n": 1}, payload)
                is_full = False
            except client.errors.BufferFullError:
                continue
        if is_full:
            time.sleep(0.001)
    print(sum(each.statistics()["accepted"] for each in publishers) / seconds, flush=True)
"""

SINK = """
import os, sys, time
from plimsoll import client
os.nice(10)
with client.Connection(sys.argv[1], security="plain", name="sink") as connection:
    connection.wait_open(30.0)
    subscribers = [client.Subscriber(connection, name=f"sink{i}") for i in range(int(sys.argv[3]))]
    for each in subscribers:
        each.subscribe("[kind,=,'flood']", timeout=30.0)
    print("ready", flush=True)
    until = time.monotonic() + float(sys.argv[2])
    while time.monotonic() < until:
        for each in subscribers:
            try:
                while each.receive(timeout=0.0) is not None:
                    pass
            except client.errors.WaitTimeoutError:
                continue
        time.sleep(0.001)
"""


def started(program: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def run(options: argparse.Namespace, flooded: Literal["", "same", "other"]) -> dict[str, float]:
    """Latencies of the light publisher, and what the flood got accepted. `flooded`: which brokers are."""
    others: list[subprocess.Popen[str]] = []
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as elsewhere:
        brokers = TwoBrokers(Path(folder))
        second = TwoBrokers(Path(elsewhere)) if flooded == "other" else None
        try:
            if flooded:
                head = (second or brokers).head
                others.append(started(SINK, head, options.seconds + 30, options.sinks))
                assert others[0].stdout is not None
                others[0].stdout.readline()
                others.append(started(FLOOD, head, options.seconds + 2, options.bytes, options.publishers))
            found = summary(latencies(brokers.head, options.seconds, options.rate))
            if flooded:
                found["flood_per_second"] = float(others[1].communicate(timeout=60)[0] or 0)
        finally:
            for process in others:
                process.kill()
                process.wait()
            brokers.close()
            if second is not None:
                second.close()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each run")
    parser.add_argument("--rate", type=float, default=100.0, help="publications per second of the light publisher")
    parser.add_argument("--bytes", type=int, default=200, help="payload of the flood's publications")
    parser.add_argument("--publishers", type=int, default=1, help="of the flood, all of one client")
    parser.add_argument("--sinks", type=int, default=5, help="subscribers of the flood")
    parser.add_argument("--json", type=Path, default=Path("bench-report/hostile-flood.json"))
    options = parser.parse_args()
    rows: dict[str, Any] = {
        "alone": run(options, ""), "flood elsewhere": run(options, "other"), "flood here": run(options, "same"),
    }  # fmt: skip
    for name, row in rows.items():
        ratio = row["p99"] / rows["alone"]["p99"]
        shown = "  ".join(f"{key} {row[key]:8.1f} ms" for key in ("p50", "p99", "longest"))
        print(f"{name:16} {shown}  p99 x{ratio:.1f}  flood {row.get('flood_per_second', 0):.0f}/s", flush=True)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
