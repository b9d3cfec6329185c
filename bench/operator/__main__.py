"""Requests, time, CPU and memory of the operator for 10, 50 and 200 brokers, at the API server of KUBECONFIG.

`python -m bench.operator` (`make bench-operator`). The operator and all objects are real. Only brokers are simulated:
their pods are created and never scheduled, and one process answers for all of them under their keys. The cluster needs
the custom resource definitions (`kubectl apply --server-side -f crds`), and this machine must reach Service addresses,
as a node does. The smaller fleets are the baseline: a figure that grows faster than the fleet is a defect.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import signal
import socket
import sys
from pathlib import Path
from urllib.parse import urlsplit

import yaml
from bench.operator.measuring import Row, measure


def own_address() -> str:
    """The local address of a connection to the API server: Services and pods reach this machine there."""
    config = yaml.safe_load(Path(os.environ["KUBECONFIG"]).read_text())
    server = urlsplit(config["clusters"][0]["cluster"]["server"])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((server.hostname, server.port or 443))
        return str(probe.getsockname()[0])


def show(rows: list[Row]) -> None:
    """Print a table with a column for each size."""

    def line(what: str, form: str, *path: str) -> None:
        cells = []
        for row in rows:
            value = row
            for key in path:
                value = value[key]
            cells.append(format(value, form))
        print(f"  {what:<58}" + "".join(f"{cell:>10}" for cell in cells))

    print(f"{'':60}" + "".join(f"{row['brokers']:>10}" for row in rows) + "   brokers")
    print("from nothing to Ready")
    line("seconds", ".1f", "start", "seconds")
    line("writes", ".0f", "start", "writes")
    line("reads", ".0f", "start", "reads")
    line("processor, part of a core", ".2f", "start", "cpu")
    print("settled, with loads that change every second")
    line("writes per second", ".2f", "settled", "writes_per_second")
    line("reads per second", ".2f", "settled", "reads_per_second")
    line("processor, part of a core", ".2f", "settled", "cpu")
    line("resident memory, MB", ".0f", "settled", "memory_mb")
    line("round of status p50, ms", ".0f", "settled", "round_ms", "p50")
    line("round of status p99, ms", ".0f", "settled", "round_ms", "p99")
    line("largest lag of the event loop, ms", ".0f", "settled", "lag_ms")
    print("changes, one after the other")
    line("reconciles", ".0f", "changed", "looks")
    line("reconcile p50, ms", ".0f", "changed", "look_ms", "p50")
    line("reconcile p99, ms", ".0f", "changed", "look_ms", "p99")
    for name, what in (
        ("lost_object_ms", "a deleted ConfigMap is back"), ("status_ms", "status follows a specification"),
        ("keys_written_ms", "a quota is in the authorized keys"), ("pods_told_ms", "all pods have that quota"),
    ):  # fmt: skip
        line(f"{what} p50, ms", ".0f", "changed", name, "p50")
        line(f"{what} max, ms", ".0f", "changed", name, "max")
    print("sessions that drain an edge of 50 subscribers")
    line("p50, ms", ".0f", "sessions", "ms", "p50")
    line("writes for each", ".1f", "sessions", "writes_each")
    print("killed and restarted")
    line("seconds to the next mediator", ".1f", "anew", "seconds")
    line("reads", ".0f", "anew", "reads")
    line("writes", ".0f", "anew", "writes")
    print("1,000 sessions by triggers at once, then a user's and an evacuation")
    line("until the user's session is over, s", ".1f", "crowded", "user_seconds")
    line("until the edge is evacuated, s", ".1f", "crowded", "evacuated_seconds")
    line("until all are over, s", ".1f", "crowded", "all_seconds")
    line("writes per second", ".2f", "crowded", "writes_per_second")
    line("processor, part of a core", ".2f", "crowded", "cpu")
    line("resident memory, MB", ".0f", "crowded", "memory_mb")
    for row in rows:
        print(
            f"  ends at {row['brokers']} brokers: "
            + ", ".join(f"{n} {end}" for end, n in row["crowded"]["ends"].items())
        )
    print("memory")
    line("without a fleet, MB", ".0f", "idle_mb")
    line("peak of all phases, MB", ".0f", "highest_mb")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.operator", description=__doc__)
    parser.add_argument("--brokers", type=int, nargs="+", default=[10, 50, 200], help="multiples of 10")
    parser.add_argument("--seconds", type=float, default=60.0, help="least time to measure a settled fleet")
    parser.add_argument("--address", default="", help="address at which Services reach this machine")
    parser.add_argument(
        "--json",
        type=Path,
        default=Path("bench-report/operator.json"),
        help="file for all figures (default %(default)s)",
    )
    options = parser.parse_args()
    if not os.environ.get("KUBECONFIG"):
        print("KUBECONFIG is not set: set it to the file of a cluster", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the namespace is deleted
    options.json.parent.mkdir(parents=True, exist_ok=True)
    address, rows = options.address or own_address(), []
    machine = {"processor": platform.processor() or platform.machine(), "python": sys.version.split()[0]}
    for count in options.brokers:
        rows.append(asyncio.run(measure(count, options.seconds, address, options.json.parent)))
        print(f"{count} brokers: load average {os.getloadavg()[0]:.1f}", flush=True)
        options.json.write_text(json.dumps({"machine": machine, "measured": rows}, indent=1))
    show(rows)
    print(f"\nAll figures, and requests by verb and kind: {options.json}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
