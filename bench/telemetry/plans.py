"""Time, CPU and memory of the jobs `shuffle` and `similarity` from tables to tables, and the quality of their results.

`python -m bench.telemetry.plans --subscribers 10000 100000 1000000`: the items of a subscriber are drawn by popularity,
most subscribers share their set of items with others, and their brokers are drawn at random.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from bench.telemetry.driver import usage

from plimsoll.sparkjobs.jobs import shuffle, similarity
from plimsoll.sparkjobs.spark_session import make_spark_session

SIZES = {10_000: (100, 500, 2_000), 100_000: (300, 2_000, 10_000), 1_000_000: (1_000, 5_000, 30_000)}
"""By number of subscribers: brokers, items, and distinct sets of items."""
JOBS = ("sharing", "keep", "similarity")


def tables(folder: Path, subscribers: int) -> None:
    """Write the tables of a fleet with this number of subscribers."""
    brokers, items, sets = SIZES[subscribers]
    draw = np.random.default_rng(1)
    popularity = 1.0 / np.arange(1, items + 1) ** 0.7
    popularity /= popularity.sum()
    rates = 1.0 / np.arange(1, items + 1) ** 0.8
    rates *= items / rates.sum()
    taken = [np.unique(draw.choice(items, size=draw.integers(1, 8), p=popularity)).tolist() for _ in range(sets)]
    weights = 1.0 / np.arange(1, sets + 1) ** 0.9
    chosen = draw.choice(sets, size=subscribers, p=weights / weights.sum())
    spread = draw.integers(0, brokers, subscribers)
    columns = {
        "subscribers": {
            "subscriber": pa.array([f"s{i}" for i in range(subscribers)]),
            "broker": pa.array([f"b{i}" for i in spread]),
            "items": pa.array([taken[i] for i in chosen], pa.list_(pa.int32())),
        },
        "items": {"item": pa.array(range(items), pa.int32()), "rate": pa.array(rates)},
        "brokers": {"broker": pa.array([f"b{i}" for i in range(brokers)]), "capacity": pa.array(np.full(brokers, 1e5))},
    }
    for name, of_table in columns.items():
        (folder / name).mkdir(parents=True)
        pq.write_table(pa.table(of_table), folder / name / "a.parquet")


def measure(subscribers: int, job: str) -> dict[str, Any]:
    """Run one job from tables to tables, in this process. `job`: similarity, or a plan of shuffle."""
    folder = Path(tempfile.mkdtemp(prefix="plimsoll-bench-"))
    try:
        tables(folder, subscribers)
        began = time.monotonic()
        with make_spark_session("bench", {"spark.driver.memory": "3g"}) as spark:
            ready = time.monotonic()
            found: Any
            if job == "similarity":
                found = similarity.run(spark, folder, folder / "out", similarity.SimilarityOptions(sample=200))
            else:
                found = shuffle.run(spark, folder, folder / "out", job, shuffle.LoadCosts())
            ended = time.monotonic()
    finally:
        shutil.rmtree(folder)
    return {"job": job, **found, "sessionSeconds": round(ready - began, 1), "jobSeconds": round(ended - ready, 1)}


def apart(subscribers: int, job: str, limit_seconds: float) -> dict[str, Any]:
    """Run `measure` in a process of its own, and add the CPU and the peak memory of it and its workers."""
    command = [sys.executable, "-m", "bench.telemetry.plans", "--one", job, "--subscribers", str(subscribers)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    most, cpu, end = 0.0, 0.0, time.monotonic() + limit_seconds
    try:
        while process.poll() is None:
            cpu, resident = usage(process.pid)
            most = max(most, resident)
            if time.monotonic() > end:
                return {"job": job, "subscribers": subscribers, "endedAfterSeconds": limit_seconds,
                        "mostResidentMB": round(most), "cpuSeconds": round(cpu)}  # fmt: skip
            time.sleep(0.5)
        assert process.stdout is not None
        measured: dict[str, Any] = json.loads(process.stdout.read())
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return measured | {"mostResidentMB": round(most), "cpuSeconds": round(cpu)}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.telemetry.plans", description=__doc__)
    parser.add_argument("--subscribers", type=int, nargs="+", default=sorted(SIZES), choices=sorted(SIZES))
    parser.add_argument("--jobs", nargs="+", default=list(JOBS), choices=JOBS)
    parser.add_argument("--limit", type=float, default=900.0, help="seconds after which a job is ended")
    parser.add_argument("--one", choices=JOBS, help="run only this job, in this process")
    asked = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that `apart` ends the job
    for subscribers in asked.subscribers:
        if asked.one:
            print(json.dumps(measure(subscribers, asked.one)), flush=True)
            continue
        for job in asked.jobs:
            print(json.dumps(apart(subscribers, job, asked.limit)), flush=True)


if __name__ == "__main__":
    main()
