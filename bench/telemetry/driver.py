"""The time from a file of load reports to a snapshot that contains them, and the CPU and memory of the driver.

`python -m bench.telemetry.driver --brokers 5000`: the live job runs as a process on two cores. Its five minutes of rows
are full from the start, and every five seconds there is a file with a report of every broker. Time is measured from the
rename that publishes a file to the rename that publishes a `latest.json` with all its rows. Use an idle machine; its
load average is in the result as `load`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from plimsoll.sparkjobs.launch.local_process import job_environment, live_command
from plimsoll.sparkjobs.launch.spec import SparkLaunch
from plimsoll.telemetry.schema import INCOMING, LATEST, LOADS, MAJOR, METRICS
from plimsoll.telemetry.snapshot import TelemetrySnapshot, decode_snapshot
from plimsoll.telemetry.storage import parquet

FLEET = "bench"
CLUSTER = 50
EVERY_SECONDS = 5


def row(broker: int) -> dict[str, Any]:
    found: dict[str, Any] = {field.name: None for field in LOADS.fields}
    counts = {field.name: 0 for field in LOADS.fields if field.type == "int64" and not field.nullable}
    texts = {field.name: "x" for field in LOADS.fields if field.type == "string"}
    ratios = {field.name: 0.0 for field in LOADS.fields if field.type == "float64" and not field.nullable}
    about = {
        "schema": MAJOR, "fleet": FLEET, "cluster": f"c{broker // CLUSTER}", "broker": f"b{broker}", "epoch": 1,
        "role": "edge" if broker % CLUSTER else "head", "state": "OK", "balanced_set": [], "publisher_rates": [],
        "covers": [],
    }  # fmt: skip
    return found | counts | texts | ratios | about


class ReportTables:
    """Makes tables with a report of every broker."""

    def __init__(self, brokers: int) -> None:
        self.table = pa.Table.from_pylist([row(broker) for broker in range(brokers)], parquet.arrow_schema(LOADS))
        self.draw = np.random.default_rng(1)

    def at(self, at_us: int, seq: int) -> pa.Table:
        count = len(self.table)
        times = at_us - self.draw.integers(0, EVERY_SECONDS * 1_000_000, count)
        columns: dict[str, Any] = {"at_us": times, "event_us": times, "received_us": times, "seq": np.full(count, seq)}
        columns |= {name: self.draw.random(count) for name in METRICS}
        table = self.table
        for name, values in columns.items():
            index = table.schema.get_field_index(name)
            table = table.set_column(index, table.schema.field(index), pa.array(values))
        return table


def write(table: pa.Table, folder: Path, name: str) -> float:
    """Write a file; returns when it was renamed, by `time.monotonic`."""
    partial = folder / f".{name}.partial"
    pq.write_table(table, partial, compression="zstd")
    partial.replace(folder / name)
    return time.monotonic()


def usage(session: int) -> tuple[float, float]:
    """CPU seconds and resident MB of all processes of a session: Spark's Python workers leave the process group."""
    seconds, resident = 0.0, 0.0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):  # it has ended since the folder was listed
            continue
        if int(fields[3]) == session:
            seconds += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            resident += int(fields[21]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    return seconds, resident


class Watch:
    """The newest snapshot. The file is read only when it was replaced: reading it all the time would take a core."""

    def __init__(self, root: Path) -> None:
        self.path = root / LATEST
        self.latest: TelemetrySnapshot | None = None
        self.at = 0.0
        self._file = (0, 0)

    @property
    def batch(self) -> int:
        return self.latest.batch if self.latest is not None else 0

    def look(self) -> None:
        with contextlib.suppress(FileNotFoundError):  # none was written yet
            found = self.path.stat()
            if (found.st_ino, found.st_mtime_ns) != self._file:
                self.at, self._file = time.monotonic(), (found.st_ino, found.st_mtime_ns)
                self.latest = decode_snapshot(self.path.read_bytes())

    def wait(self, rows: int, seconds: float) -> float:
        """Wait for a snapshot with at least `rows` rows; returns when it was seen."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.look()
            if self.latest is not None and self.latest.counts.rows_in >= rows:
                return self.at
            time.sleep(0.02)
        raise TimeoutError(f"no snapshot with {rows} rows after {seconds} s; the last one is {self.latest}"[:200])


@contextlib.contextmanager
def live(root: Path, trigger: int) -> Iterator[int]:
    """Run the live job as a process; yields its id, which is also that of its session."""
    launch = SparkLaunch(fleet=FLEET, namespace="", image="", trigger_seconds=trigger, lag_seconds=EVERY_SECONDS)
    driver = subprocess.Popen(
        live_command(launch, root), env=job_environment(os.environ), start_new_session=True, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield driver.pid
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()


def measure(root: Path, brokers: int, seconds: float, trigger: int) -> dict[str, Any]:
    """Write a file at each interval and wait for its rows; times are in seconds."""
    folder, fleet, watch = root / INCOMING, ReportTables(brokers), Watch(root)
    folder.mkdir(parents=True)
    now_us = time.time_ns() // 1000
    before = [
        fleet.at(now_us - back * 1_000_000, 100 - back // EVERY_SECONDS) for back in range(300, 0, -EVERY_SECONDS)
    ]
    write(pa.concat_tables(before), folder, "before.parquet")
    rows, started = len(before) * brokers, time.monotonic()
    took: list[float] = []
    with live(root, trigger) as driver:
        ready = watch.wait(rows, 600) - started
        cpu_before, _ = usage(driver)
        began, batches = time.monotonic(), watch.batch
        for number in range(round(seconds / EVERY_SECONDS)):
            due = began + number * EVERY_SECONDS
            time.sleep(max(0.0, due - time.monotonic()))
            written = write(fleet.at(time.time_ns() // 1000, 200 + number), folder, f"r{number:04}.parquet")
            rows += brokers
            took.append(watch.wait(rows, 120) - written)
        cpu_after, resident = usage(driver)
        elapsed = time.monotonic() - began
    ordered = sorted(took)
    return {
        "brokers": brokers, "files": len(took), "trigger_seconds": trigger, "first_snapshot": round(ready, 1),
        "p50": round(statistics.median(took), 2), "p95": round(ordered[-(-len(took) * 95 // 100) - 1], 2),
        "max": round(max(took), 2), "batches": watch.batch - batches, "seconds": round(elapsed, 1),
        "cpu_cores": round((cpu_after - cpu_before) / elapsed, 2), "resident_mb": round(resident),
        "snapshot_kb": round(watch.path.stat().st_size / 1000), "load": round(os.getloadavg()[0], 1),
    }  # fmt: skip


def catch_up(root: Path, brokers: int, trigger: int) -> dict[str, Any]:
    """Start a driver after an hour without one, in which a collector wrote a file every ten seconds."""
    folder, fleet, watch = root / INCOMING, ReportTables(brokers), Watch(root)
    folder.mkdir(parents=True)
    now_us = time.time_ns() // 1000
    for number, back in enumerate(range(3600, 0, -2 * EVERY_SECONDS)):
        both = [fleet.at(now_us - (back - half) * 1_000_000, 2 * number + half // EVERY_SECONDS + 1)
                for half in (0, EVERY_SECONDS)]  # fmt: skip
        write(pa.concat_tables(both), folder, f"r{number:04}.parquet")
    rows, started = 3600 // EVERY_SECONDS * brokers, time.monotonic()
    with live(root, trigger) as driver:
        ready = watch.wait(rows, 900) - started
        cpu, resident = usage(driver)
    latest = watch.latest
    assert latest is not None
    counts = latest.counts
    assert (counts.rows_in, counts.unaccounted) == (rows, 0)
    return {
        "brokers": brokers, "hour_of_rows": rows, "counted": counts.counted, "late": counts.late,
        "caught_up": round(ready, 1), "cpu_seconds": round(cpu), "resident_mb": round(resident),
        "load": round(os.getloadavg()[0], 1),
    }  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.telemetry.driver", description=__doc__)
    parser.add_argument("--brokers", type=int, nargs="+", default=[100, 500, 1000, 5000])
    parser.add_argument("--seconds", type=float, default=100.0, help="length of the measurement, for each size")
    parser.add_argument("--trigger", type=int, default=2, help="seconds between micro-batches")
    parser.add_argument(
        "--hour", action="store_true", help="measure instead how long a driver takes to read an hour of files"
    )
    asked = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that `live` ends the driver
    for brokers in asked.brokers:
        root = Path(tempfile.mkdtemp(prefix="plimsoll-bench-"))
        try:
            found = (
                catch_up(root, brokers, asked.trigger) if asked.hour
                else measure(root, brokers, asked.seconds, asked.trigger)
            )  # fmt: skip
            print(json.dumps(found), flush=True)
        finally:
            shutil.rmtree(root)


if __name__ == "__main__":
    main()
