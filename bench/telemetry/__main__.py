"""The collector's benchmark: CPU, memory and bytes by size of the fleet, compared with plain lines of JSON.

    python -m bench.telemetry [--brokers 100 500 ...] [--seconds 20] [--json FILE]

A collector process, and after it a process that writes JSON lines, receive the reports of the same simulated brokers
(ten to a cluster, a report each every 5 s) over real control sockets. CPU is that of the process as the system counts
it, so it holds on a busy machine. Every report sent must have been counted. Then single steps are timed in this
process.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from plimsoll.core.config import LinkSecurity, PeerBroker
from plimsoll.telemetry.collector import TelemetryCollector
from plimsoll.telemetry.config import CollectorConfig, MonitoredCluster, encode_config
from plimsoll.telemetry.schema import INCOMING, LOADS
from plimsoll.telemetry.snapshot import decode_snapshot
from plimsoll.telemetry.snapshot import encode_snapshot as written
from plimsoll.telemetry.storage.folder import TelemetryFolder

INTERVAL_SECONDS = 5.0
IN_A_CLUSTER = 10
TICK = os.sysconf("SC_CLK_TCK")


def fleet(brokers: int) -> dict[str, list[str]]:
    """Clusters of ten: a head and nine edges."""
    count = max(1, brokers // IN_A_CLUSTER)
    return {f"c{i}": [f"c{i}-head", *(f"c{i}-e{j}" for j in range(IN_A_CLUSTER - 1))] for i in range(count)}


def free_ports(count: int) -> list[int]:
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(each.getsockname()[1]) for each in held]
    for each in held:
        each.close()
    return ports


def config_of(folder: Path, clusters: dict[str, list[str]], ports: dict[str, int]) -> CollectorConfig:
    return CollectorConfig(
        name="bench", fleet="bench", folder=str(folder), security=LinkSecurity(plain=True), http="127.0.0.1:0",
        report_seconds=INTERVAL_SECONDS, address_file=str(folder / "address"),
        clusters={
            name: MonitoredCluster(
                head=PeerBroker(name=f"{name}-head", control=f"tcp://127.0.0.1:{ports[name]}"), brokers=tuple(brokers)
            )
            for name, brokers in clusters.items()
        },
    )  # fmt: skip


def cpu_seconds(pid: int) -> float:
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / TICK


def resident_mib(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


@contextmanager
def process(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    running = subprocess.Popen(
        [sys.executable, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield running
    finally:
        if running.poll() is None:
            running.send_signal(signal.SIGTERM)
        running.communicate(timeout=30)


def measured(module: str, brokers: int, seconds: float, place: Path) -> dict[str, Any]:
    """Figures of one process that receives the reports of simulated brokers."""
    clusters = fleet(brokers)
    ports = dict(zip(clusters, free_ports(len(clusters)), strict=True))
    data = place / "data"
    (place / "config.json").write_bytes(encode_config(config_of(data, clusters, ports)))
    plan = {
        "clusters": {name: {"port": ports[name], "brokers": each} for name, each in clusters.items()},
        "interval_seconds": INTERVAL_SECONDS, "seconds": seconds,
    }  # fmt: skip
    (place / "plan.json").write_text(json.dumps(plan))
    flag = ["--config"] if module == "plimsoll.telemetry" else []
    with (
        process("-m", "bench.telemetry.heads", str(place / "plan.json")) as heads,
        process("-m", module, *flag, str(place / "config.json")) as receiver,
    ):
        assert heads.stdout is not None
        assert heads.stdout.readline() == "bound\n"
        assert heads.stdout.readline() == "connected\n"
        before, started = cpu_seconds(receiver.pid), time.monotonic()
        sent = int(heads.stdout.readline().split()[1])
        elapsed, used = time.monotonic() - started, cpu_seconds(receiver.pid) - before
        found = {"sent": sent, "cpu_percent": 100 * used / elapsed, "cpu_us_per_report": 1e6 * used / sent,
                 "resident_mib": resident_mib(receiver.pid)}  # fmt: skip
        if module == "plimsoll.telemetry":
            found |= served(data, sent)
    files = [path for path in data.rglob("*") if path.suffix in (".parquet", ".jsonl")]
    found["bytes_per_report"] = sum(path.stat().st_size for path in files) / sent
    found["files"] = len(files)
    return found


def served(data: Path, sent: int) -> dict[str, Any]:
    """What the collector reports when it has received everything, and the time of a fold over HTTP."""
    address = json.loads((data / "address").read_text())["http"]
    deadline = time.monotonic() + 30
    while True:
        fold = decode_snapshot(urlopen(f"http://{address}/v1/fold", timeout=30).read())
        if fold.counts.rows_in >= sent or time.monotonic() > deadline:
            break
    assert fold.counts.rows_in == fold.counts.counted == sent, (fold.counts, sent)
    took = min(timed(lambda: urlopen(f"http://{address}/v1/fold", timeout=30).read())[0] for _ in range(3))
    return {"fold_http_ms": 1000 * took, "seen": fold.seen, "expected": fold.expected}


def timed(what: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    found = what()
    return time.perf_counter() - started, found


def steps(brokers: int, place: Path) -> dict[str, Any]:
    """Times of single steps in this process: 10 s of reports accepted and written; a fold made, encoded and checked."""
    from bench.telemetry.heads import ReportingBroker

    clusters = fleet(brokers)
    config = config_of(place, clusters, dict.fromkeys(clusters, 1))
    collector = TelemetryCollector(config, TelemetryFolder(place, "bench"), 1)
    collector.start(1)
    made = [ReportingBroker(name, cluster, None, {b""}) for cluster, names in clusters.items() for name in names]  # type: ignore[arg-type]  # no head is dialled
    rounds = []
    for _ in range(2):
        for each in made:
            each.seq += 1
        rounds.append([(each._report(), each.cluster) for each in made])
    gc.collect()
    cpu = time.process_time()
    for reports in rounds:
        for report, cluster in reports:
            assert collector.intake.take_report(report, cluster, report["clock_us"]) == "counted"
    taking = (time.process_time() - cpu) / (2 * len(made))
    now_us = time.time_ns() // 1000
    cpu = time.process_time()
    rows = collector.intake.take_rows()
    assert collector.files.write(INCOMING, LOADS, rows, now_us, now_us)
    writing = time.process_time() - cpu
    folds, reads = [], []
    for _ in range(5):
        cpu = time.process_time()
        fold = collector.fold_snapshot(now_us)
        folds.append(time.process_time() - cpu)
        cpu = time.process_time()
        decode_snapshot(written(fold))
        reads.append(time.process_time() - cpu)
    return {
        "take_us": 1e6 * taking, "write_10s_ms": 1000 * writing, "fold_ms": 1000 * statistics.median(folds),
        "encode_and_check_ms": 1000 * statistics.median(reads), "snapshot_bytes": len(written(fold)),
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.telemetry", description=__doc__)
    parser.add_argument(
        "--brokers", type=int, nargs="+", default=[100, 500, 1000, 2000, 5000], help="sizes of the fleet"
    )
    parser.add_argument("--seconds", type=float, default=20.0, help="length of a measurement (default %(default)s)")
    parser.add_argument(
        "--json",
        type=Path,
        default=Path("bench-report/telemetry.json"),
        help="file for all figures (default %(default)s)",
    )
    options = parser.parse_args()
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print(f"{'':>9} | {'collector':^43} | {'JSON lines':^35} | single steps of the collector, CPU time")
    print(
        f"{'brokers':>9} | {'CPU':>6} {'us/report':>10} {'RSS':>9} {'B/report':>8} {'fold':>6} |"
        f" {'CPU':>6} {'us/report':>10} {'RSS':>9} {'B/rep.':>7} |"
        f" {'take':>7} {'write 10 s':>11} {'fold':>8} {'check':>8} {'snapshot':>10}"
    )
    report = []
    for brokers in options.brokers:
        row: dict[str, Any] = {"brokers": brokers}
        for name, module in (("collector", "plimsoll.telemetry"), ("jsonlines", "bench.telemetry.jsonlines")):
            with tempfile.TemporaryDirectory() as place:
                row[name] = measured(module, brokers, options.seconds, Path(place))
        with tempfile.TemporaryDirectory() as place:
            row["steps"] = steps(brokers, Path(place))
        report.append(row)
        own, plain, cost = row["collector"], row["jsonlines"], row["steps"]
        print(
            f"{brokers:>9} |"
            f" {own['cpu_percent']:>5.1f}% {own['cpu_us_per_report']:>10.0f} {own['resident_mib']:>5.0f} MiB"
            f" {own['bytes_per_report']:>8.0f} {own['fold_http_ms']:>3.0f} ms |"
            f" {plain['cpu_percent']:>5.1f}% {plain['cpu_us_per_report']:>10.0f} {plain['resident_mib']:>5.0f} MiB"
            f" {plain['bytes_per_report']:>7.0f} |"
            f" {cost['take_us']:>4.0f} us {cost['write_10s_ms']:>8.0f} ms {cost['fold_ms']:>5.1f} ms"
            f" {cost['encode_and_check_ms']:>5.1f} ms {cost['snapshot_bytes'] / 1024:>6.0f} KiB",
            flush=True,
        )
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(report, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
