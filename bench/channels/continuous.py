"""A continuous channel: from publication to result, beside the same query in plain Spark from files.

A fleet of this machine records what is published, and its driver joins it with the parameters of as many back-end
subscriptions as asked for. Afterwards plain Spark gets the same rows, in one file for each second of recording, runs
the same query over one file after the other, and collects its rows: without parameters that change, a ledger, or
a subscriber. Its delay of a publication lasts until the last row of the file was recorded, and for the
query. Finally Spark streams the same files with its own source, one to a micro-batch.
"""

from __future__ import annotations

import shutil
import statistics
import threading
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pyarrow.compute as pc
import pyarrow.parquet as pq
from bench.channels.fleet import (
    PATIENCE_SECONDS,
    QUERY,
    connected,
    p95,
    publish,
    running_fleet,
    second_files,
    see_parameters,
    statuses,
    until,
)
from pyspark.sql import DataFrame, SparkSession

from plimsoll.channels.main import SETTINGS
from plimsoll.client import Connection, Delivery, Subscriber, errors
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.sparkjobs.spark_session import make_spark_session

CHANNEL: Final = "areas"
WARM_SECONDS: Final = 10.0
"""What is published in this time is not judged: the first batches compile code."""


class Results:
    """Takes the results of all areas, and notes when each came: by the number of its publication."""

    def __init__(self, connection: Connection, subscriptions: int) -> None:
        self._subscriber = Subscriber(connection)
        for area in range(subscriptions):
            self._subscriber.subscribe(f"[channel,=,'{CHANNEL}'],[area,=,{area}]", wait=False)
        self._subscriber.wait_acknowledged(PATIENCE_SECONDS)
        self.delays: dict[int, float] = {}
        self.repeated = self.gaps = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                items = self._subscriber.receive_many(10_000, 0.2)
            except errors.WaitTimeoutError:
                continue  # nothing has come meanwhile
            now = time.time()
            for item in items:
                if isinstance(item, Delivery):
                    number = int(item.attributes["number"])
                    self.repeated += number in self.delays
                    self.delays[number] = now - float(item.attributes["sent"])
                else:
                    self.gaps += 1

    def end(self) -> None:
        self._stop.set()
        self._thread.join()


class BatchTimes:
    """Notes the times of the channel's queries, in seconds, by the number of the batch, as its status tells them."""

    def __init__(self, folder: FleetFolder) -> None:
        self._folder = folder
        self.found: dict[int, float] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(0.5):
            status = statuses(self._folder)[CHANNEL]
            self.found[status["batch"]] = status["batchMilliseconds"] / 1000

    def end(self) -> list[float]:
        self._stop.set()
        self._thread.join()
        return list(self.found.values())


def plain_spark(spark: SparkSession, files: Sequence[Path]) -> tuple[dict[int, float], list[float]]:
    """The delay of each publication, and the time of each query."""
    delays: dict[int, float] = {}
    times: list[float] = []
    for file in files:
        began = time.monotonic()
        spark.read.parquet(str(file)).createOrReplaceTempView("r")
        rows = spark.sql(QUERY).toArrow()
        times.append(time.monotonic() - began)
        recorded = pc.max(pq.read_table(file, columns=["_recorded"]).column(0).cast("int64")).as_py() / 1e6
        for number, sent in zip(rows.column("number").to_pylist(), rows.column("sent").to_pylist(), strict=True):
            delays[number] = recorded - sent + times[-1]
    return delays, times


def streamed_files(spark: SparkSession, files: Sequence[Path], folder: Path) -> list[float]:
    """The time of each micro-batch when Spark streams the same files, one to a batch."""
    source = folder / "streamed"
    source.mkdir()
    for file in files:
        shutil.copy(file, source)
    ends: list[float] = []

    def on_batch(frame: DataFrame, number: int) -> None:
        frame.createOrReplaceTempView("r")
        frame.sparkSession.sql(QUERY).toArrow()
        ends.append(time.monotonic())

    read = spark.readStream.schema(spark.read.parquet(str(files[0])).schema).option("maxFilesPerTrigger", 1)
    stream = read.parquet(str(source)).writeStream.foreachBatch(on_batch).trigger(availableNow=True)
    stream.option("checkpointLocation", str(folder / "checkpoint")).start().awaitTermination()
    return [after - before for before, after in pairwise(ends)]


def measured(rate: float, subscriptions: int, seconds: float, place: Path) -> dict[str, Any]:
    """What `main` tells. `place`: a folder for the files of plain Spark."""
    with running_fleet({CHANNEL: None}) as folder, connected(folder) as connection:
        results = Results(connection, subscriptions)
        until(lambda: statuses(folder)[CHANNEL].get("subscriptions") == subscriptions, "all parameters are in force")
        times = BatchTimes(folder)
        sent = publish(connection, rate, WARM_SECONDS + seconds, subscriptions)
        until(lambda: len(results.delays) >= sent, f"{sent} results; there are {len(results.delays)}")
        results.end()
        batch_times = times.end()
        files = list(second_files(folder, place).values())
        batches = statuses(folder)[CHANNEL]["batch"]
    first = round(rate * WARM_SECONDS)
    own = [delay for number, delay in results.delays.items() if number > first]
    spark = make_spark_session("bench-channels", SETTINGS)
    try:
        see_parameters(spark, subscriptions)
        plain_spark(spark, files[:5])
        delays, query_times = plain_spark(spark, files)
        plain = [delay for number, delay in delays.items() if number > first]
        file_times = streamed_files(spark, files, place)
    finally:
        spark.stop()
    return {
        "rate": rate, "subscriptions": subscriptions, "seconds": seconds, "published": sent,
        "results": len(results.delays), "repeated": results.repeated, "gaps": results.gaps, "batches": batches,
        "channel": {"p50": statistics.median(own), "p95": p95(own)},
        "plainSpark": {"p50": statistics.median(plain), "p95": p95(plain)},
        "ratioP95": p95(own) / p95(plain), "batch": statistics.median(batch_times),
        "plainQuery": statistics.median(query_times), "streamedFiles": statistics.median(file_times),
    }  # fmt: skip


def summary(found: Mapping[str, Any]) -> str:
    """The lines of one measurement."""
    own, plain = found["channel"], found["plainSpark"]
    return "\n".join((
        f"continuous: {found['published']} publications, {found['results']} results in {found['batches']} batches, "
        f"{found['repeated']} repeated, {found['gaps']} gaps",
        f"channel      p50 {own['p50']:.2f} s   p95 {own['p95']:.2f} s, to the subscriber",
        f"plain Spark  p50 {plain['p50']:.2f} s   p95 {plain['p95']:.2f} s, to the rows of the query",
        f"one batch    the channel's query {found['batch']:.2f} s   plain {found['plainQuery']:.2f} s   "
        f"as a stream of files {found['streamedFiles']:.2f} s",
        f"p95 of the channel is {found['ratioP95']:.2f} times that of plain Spark",
    ))  # fmt: skip
