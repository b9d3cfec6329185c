"""Processor time of the hourly means of ten metrics over compacted load reports: Spark beside DuckDB, same files.

    python -m bench.telemetry.hourly [--rows 10000000] [--executors 1 2 4]

Two queries, each in a process of its own: `plain` is one aggregate, and `series` the input of `history`, where of
reports that came twice only the first counts. DuckDB's answers must equal Spark's before anything is reported.
Processor time is that of all processes of a run, the Java virtual machine and its start included. `job` leaves the
start of the session out, and `again` is the same query a second time in the same session: what the rows cost, once
classes are loaded and code is compiled. `--executors` also runs `plain` in Spark's local-cluster mode, with
that number of executors of one core each, as processes of this machine.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from bench.telemetry.driver import CLUSTER, FLEET, row, usage

from plimsoll.sparkjobs.jobs.compact import HOURLY_FOLDER
from plimsoll.telemetry.schema import LOADS, METRICS
from plimsoll.telemetry.storage import parquet

HOUR_US: Final = 3_600_000_000
FIRST_HOUR: Final = 490_000
HOURS: Final = 24
EVERY_US: Final = 5_000_000
REPORTS: Final = HOUR_US // EVERY_US
COPIES: Final = 0.002
"""Share of the reports that a second collector has stored as well."""
QUERIES: Final = ("plain", "series")
IN_DRIVER: Final = "PLIMSOLL_BENCH_IN_DRIVER"
"""An environment variable: this is the driver's pod of `bench.telemetry.executors`."""
Answer = list[list[Any]]


def write_day(root: Path, rows: int) -> int:
    """A day of about `rows` reports below `raw/v1/loads`, one file for each hour; returns their exact number."""
    brokers = max(CLUSTER, rows // (HOURS * REPORTS))
    draw = np.random.default_rng(1)
    one = pa.Table.from_pylist([row(broker) for broker in range(brokers)], parquet.arrow_schema(LOADS))
    written = 0
    for number in range(HOURS):
        table = _hour(one, number, draw)
        at_us = (FIRST_HOUR + number) * HOUR_US / 1e6
        folder = root / HOURLY_FOLDER / time.strftime("dt=%Y-%m-%d/hr=%H", time.gmtime(at_us))
        folder.mkdir(parents=True)
        pq.write_table(table, folder / f"c-{number:05}.parquet", compression="zstd")
        written += len(table)
    return written


def _hour(one: pa.Table, number: int, draw: np.random.Generator) -> pa.Table:
    brokers = len(one)
    table = one.take(pa.array(np.tile(np.arange(brokers), REPORTS)))
    count = len(table)
    start_us = (FIRST_HOUR + number) * HOUR_US
    at_us = start_us + np.repeat(np.arange(REPORTS) * EVERY_US, brokers) + draw.integers(0, EVERY_US, count)
    seq = np.repeat(np.arange(REPORTS), brokers) + number * REPORTS + 1
    columns: dict[str, Any] = {"at_us": at_us, "event_us": at_us, "received_us": at_us, "seq": seq}
    columns |= {name: np.round(draw.random(count), 6) for name in METRICS}
    for name, values in columns.items():
        index = table.schema.get_field_index(name)
        table = table.set_column(index, table.schema.field(index), pa.array(values))
    copies = table.take(pa.array(np.flatnonzero(draw.random(count) < COPIES)))
    index = table.schema.get_field_index("collector")
    other = copies.set_column(index, table.schema.field(index), pa.array(["y"] * len(copies)))
    return pa.concat_tables([table, other])


def spark_answers(root: Path, query: str, settings: dict[str, str]) -> Iterator[Answer]:
    """First nothing, when the session is ready; then cluster, hour and the ten means, in order, as often as asked."""
    from pyspark.sql import functions as F  # noqa: N812  # its name everywhere

    from plimsoll.sparkjobs import telemetry_source
    from plimsoll.sparkjobs.jobs import history
    from plimsoll.sparkjobs.spark_session import make_spark_session

    with make_spark_session("bench", {**history.HISTORY_SETTINGS, **settings}) as spark:
        yield []
        while True:
            files = sorted((root / HOURLY_FOLDER).rglob("*.parquet"))
            loads = telemetry_source.read_files(spark, files, telemetry_source.loads_schema())
            if query == "plain":
                edges = loads.where(F.col("role") == "edge")
                hour = history.hour_of("at_us").alias("hour")
                table = edges.groupBy("cluster", hour).agg(*history.means_of(METRICS))
            else:
                table = history.hourly_table(telemetry_source.report_points(loads, FLEET))
            yield sorted([row["cluster"], row["hour"], *(row[name] for name in METRICS)] for row in table.collect())


def duckdb_answers(root: Path, query: str) -> Iterator[Answer]:
    """The same by DuckDB, on two threads."""
    import duckdb

    hour = f"at_us // {HOUR_US}"
    means = ", ".join(f"avg({name})" for name in METRICS)
    # Like the job: valid rows only, and of each key the one received first.
    valid = " AND ".join(
        [
            f"schema = 1 AND fleet = '{FLEET}' AND role IN ('head', 'edge') AND epoch >= 0 AND seq >= 1",
            "abs(at_us - received_us) <= 5000000",
            *(f"length({name}) > 0" for name in ("cluster", "broker", "state", "collector")),
            *(f"abs({name}) <= 9.2e9" for name in METRICS),
        ]
    )
    copy = "row_number() OVER (PARTITION BY cluster, broker, epoch, seq ORDER BY received_us, collector) AS copy"
    with duckdb.connect(config={"threads": 2}) as connection:
        yield []
        while True:
            loads = connection.read_parquet(f"{root / HOURLY_FOLDER}/*/*/*.parquet", hive_partitioning=False)
            if query == "series":
                loads = loads.filter(valid).project(f"*, {copy}").filter("copy = 1")
            grouped = loads.filter("role = 'edge'").aggregate(f"cluster, {hour} AS hour, {means}", f"cluster, {hour}")
            yield [list(each) for each in grouped.order("cluster, hour").fetchall()]


def measure(root: Path, engine: str, query: str, executors: int, output: Path) -> None:
    """Run one query in this process and write its answer and its cost."""
    began = time.monotonic()
    settings = {"spark.master": f"local-cluster[{executors},1,1024]"} if executors else {}
    answers = spark_answers(root, query, settings) if engine == "spark" else duckdb_answers(root, query)
    next(answers)
    spent = [usage(os.getsid(0))[0]]
    answer = next(answers)
    wall = time.monotonic() - began
    spent.append(usage(os.getsid(0))[0])
    if query == "plain":  # once more, with everything loaded and compiled
        next(answers)
    spent.append(usage(os.getsid(0))[0])
    cost = {"cpu": spent[1], "job": spent[1] - spent[0], "again": spent[2] - spent[1], "wall": wall}
    output.write_text(json.dumps({"answer": answer, **cost}))


def apart(root: Path, engine: str, query: str, executors: int = 0) -> dict[str, Any]:
    """`measure` in a process of its own, which leads a session: that is whose processor time is counted."""
    output = root / "answer.json"
    command = [sys.executable, "-m", "bench.telemetry.hourly", "--one", engine, query, str(executors), str(root)]
    process = subprocess.Popen(command, start_new_session=True)
    most = 0.0
    try:
        while process.poll() is None:
            most = max(most, usage(process.pid)[1])
            time.sleep(0.5)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if process.returncode:
        raise RuntimeError(f"{engine} {query} ended with {process.returncode}")
    return {**json.loads(output.read_text()), "memory": most}


def same(one: Answer, other: Answer) -> bool:
    """Whether two answers are equal, but for the order in which floats were added."""
    return len(one) == len(other) and all(
        a[:2] == b[:2] and all(math.isclose(x, y, rel_tol=1e-9) for x, y in zip(a[2:], b[2:], strict=True))
        for a, b in zip(one, other, strict=True)
    )


def report(name: str, found: dict[str, Any], against: float) -> None:
    print(
        f"{name:24} {found['cpu']:6.1f} s processor time ({found['job']:5.1f} s job,"
        f" {found['again']:4.1f} s again), {found['wall']:6.1f} s, {found['memory']:6.0f} MB,"
        f" {found['cpu'] / against:4.1f} x DuckDB, load {os.getloadavg()[0]:.1f}",
        flush=True,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.telemetry.hourly", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000, help="load reports of the day")
    parser.add_argument("--executors", type=int, nargs="*", default=[], help="numbers of executors to try as well")
    parser.add_argument("--folder", type=Path, help="keep the files here, and use those of an earlier run")
    parser.add_argument("--one", nargs=4, metavar=("ENGINE", "QUERY", "EXECUTORS", "FOLDER"), help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.one:
        engine, query, executors, folder = asked.one
        measure(Path(folder), engine, query, int(executors), Path(folder) / "answer.json")
        return
    root = asked.folder or Path(tempfile.mkdtemp(prefix="plimsoll-bench-"))
    try:
        if not (root / HOURLY_FOLDER).exists():
            print(f"{write_day(root, asked.rows):,} reports in {HOURS} files", flush=True)
        for query in QUERIES:
            by_duckdb = apart(root, "duckdb", query)
            report(f"{query}, DuckDB", by_duckdb, by_duckdb["cpu"])
            for executors in (0, *(asked.executors if query == "plain" else ())):
                by_spark = apart(root, "spark", query, executors)
                if not same(by_spark["answer"], by_duckdb["answer"]):
                    raise RuntimeError(f"{query}: Spark and DuckDB do not agree")
                report(f"{query}, Spark{f', {executors} executors' if executors else ''}", by_spark, by_duckdb["cpu"])
    finally:
        if asked.folder is None:
            shutil.rmtree(root)


if __name__ == "__main__":
    main()
