"""What the operator needs for 10, 50 and 200 brokers, against the API server that KUBECONFIG names.

`python -m bench.operator` (`make bench-operator`). The operator is the real program, and all objects are real ones;
brokers are simulated: their pods are made and placed nowhere, one process answers for all of them under their keys.
It needs the product's definitions there (`kubectl apply --server-side -f crds`), and a machine that reaches Service
addresses, as a node does. The smaller fleets are the baseline: what grows faster than they do is to be mended.
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
    """The address of this machine on the way to the API server: from pods and Services the way back is the same."""
    config = yaml.safe_load(Path(os.environ["KUBECONFIG"]).read_text())
    server = urlsplit(config["clusters"][0]["cluster"]["server"])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((server.hostname, server.port or 443))
        return str(probe.getsockname()[0])


def show(rows: list[Row]) -> None:
    """All sizes beside one another."""

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
    print("settled, loads change every second")
    line("writes per second", ".2f", "settled", "writes_per_second")
    line("reads per second", ".2f", "settled", "reads_per_second")
    line("processor, part of a core", ".2f", "settled", "cpu")
    line("resident memory, MB", ".0f", "settled", "memory_mb")
    line("round of status p50, ms", ".0f", "settled", "round_ms", "p50")
    line("round of status p99, ms", ".0f", "settled", "round_ms", "p99")
    line("event loop late at most, ms", ".0f", "settled", "lag_ms")
    print("changes one after the other")
    line("looks", ".0f", "changed", "looks")
    line("look p50, ms", ".0f", "changed", "look_ms", "p50")
    line("look p99, ms", ".0f", "changed", "look_ms", "p99")
    for name, what in (
        ("lost_object_ms", "a deleted ConfigMap is back"), ("status_ms", "status follows a specification"),
        ("keys_written_ms", "a quota is in the authorized keys"), ("pods_told_ms", "all pods have been told of it"),
    ):  # fmt: skip
        line(f"{what} p50, ms", ".0f", "changed", name, "p50")
        line(f"{what} max, ms", ".0f", "changed", name, "max")
    print("sessions that empty an edge of 50 subscribers")
    line("p50, ms", ".0f", "sessions", "ms", "p50")
    line("writes each", ".1f", "sessions", "writes_each")
    print("killed, and begun anew")
    line("seconds to the next mediator", ".1f", "anew", "seconds")
    line("reads", ".0f", "anew", "reads")
    line("writes", ".0f", "anew", "writes")
    print("memory")
    line("before there is a fleet, MB", ".0f", "idle_mb")
    line("the most of all parts, MB", ".0f", "highest_mb")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.operator", description=__doc__)
    parser.add_argument("--brokers", type=int, nargs="+", default=[10, 50, 200], help="multiples of 10")
    parser.add_argument("--seconds", type=float, default=60.0, help="of looking at a fleet that has settled")
    parser.add_argument("--address", default="", help="of this machine, as Services reach it")
    parser.add_argument("--json", type=Path, default=Path("bench-report/operator.json"))
    options = parser.parse_args()
    if not os.environ.get("KUBECONFIG"):
        print("KUBECONFIG is not set: name a cluster", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # nothing is to be left in the cluster
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
