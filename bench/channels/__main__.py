"""A continuous channel measured: from publication to result, beside the same query in plain Spark from files.

    python -m bench.channels [--rate 1000] [--subscriptions 1000] [--seconds 60] [--json FILE]

A fleet of this machine records what is published, and its driver joins it with the parameters of as many back-end
subscriptions as asked for. Afterwards plain Spark gets the same rows, in one file for each second of recording, runs
the same query over one file after the other, and collects its rows: without parameters that change, a ledger, or
anyone who gets a result. Its delay of a publication lasts until the last row of the file was recorded, and for the
query. Finally Spark streams these files, one to a micro-batch, which says what its own checkpoint costs.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from plimsoll.channels.feed_rows import all_files
from plimsoll.channels.main import SETTINGS
from plimsoll.client import Connection, Curve, Delivery, Publisher, Subscriber, errors
from plimsoll.core.client import Address
from plimsoll.core.spec import SourceDocument, parse
from plimsoll.local import runtime
from plimsoll.local.head_access import head_access
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import ObjectStore
from plimsoll.sparkjobs.spark_session import make_spark_session

QUERY: Final = "SELECT p.area, r.number, r.sent FROM parameters p JOIN r ON r.area = p.area"
WARM_SECONDS: Final = 10.0
"""What is published in this time is not judged: the first batches compile code."""
PATIENCE_SECONDS: Final = 180.0
BURST_SECONDS: Final = 0.05


def documents() -> list[SourceDocument]:
    """A head, two edges, a feed that commits each second, and a channel."""
    columns = [{"name": "area", "type": "Integer"}, {"name": "number", "type": "Integer"},
               {"name": "sent", "type": "Number"}]  # fmt: skip
    edges = [{"name": "edge", "profile": "broker", "replicas": 2}]
    return [
        _document("BrokerFleet", "bench-channels"),
        _document("HardwareProfile", "broker", cpu="1", memory="256Mi"),
        _document("BrokerCluster", "c", head={"profile": "broker"}, edges=edges),
        _document("Feed", "reports", subscription="[class,=,'REPORT']", commitInterval="1s",
                  schema={"columns": columns, "unknownAttributes": "Drop"}),
        _document("Channel", "areas", parameters=[{"name": "area", "type": "Integer"}],
                  feeds=[{"name": "r", "feed": "reports"}], query=QUERY),
    ]  # fmt: skip


def _document(kind: str, name: str, **spec: Any) -> SourceDocument:
    return SourceDocument(
        {"apiVersion": "plimsoll.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    )


@contextmanager
def running_fleet() -> Iterator[FleetFolder]:
    resources = parse(documents())
    runtime.up_detached(resources, lambda line: None)
    folder = FleetFolder.of(resources.fleet.name)
    try:
        yield folder
    finally:
        runtime.down(folder)


def connected(folder: FleetFolder) -> Connection:
    way = head_access(folder)
    secret = str(way.secret_key_file) if way.secret_key_file is not None else ""
    return Connection(Address(way.endpoint), security=Curve(secret=secret, server=way.server))


def status(folder: FleetFolder) -> dict[str, Any]:
    with ObjectStore(folder.store) as store:
        found: dict[str, Any] = store.objects("Channel")[1][0].get("status", {})
    return found


def until(condition: Any, what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"not within {PATIENCE_SECONDS:.0f} s: {what}")
        time.sleep(0.1)


class Results:
    """Takes the results of all areas, and notes when each came: by the number of its publication."""

    def __init__(self, connection: Connection, subscriptions: int) -> None:
        self._subscriber = Subscriber(connection)
        for area in range(subscriptions):
            self._subscriber.subscribe(f"[channel,=,'areas'],[area,=,{area}]", wait=False)
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


def publish(connection: Connection, rate: float, seconds: float, subscriptions: int) -> int:
    """Publish at a rate, areas in turn; returns how many."""
    publisher, number, began = Publisher(connection), 0, time.monotonic()
    while (passed := time.monotonic() - began) < seconds:
        while number < passed * rate:
            number += 1
            publisher.publish(
                {"class": "REPORT", "area": number % subscriptions, "number": number, "sent": time.time()}
            )
        time.sleep(BURST_SECONDS)
    publisher.flush(PATIENCE_SECONDS)
    return number


def second_files(rows: pa.Table, folder: Path) -> list[Path]:
    """The rows as one file for each second in which they were recorded."""
    seconds = pc.divide(rows.column("_recorded").cast(pa.int64()), 1_000_000)
    files = []
    for second in sorted(set(seconds.to_pylist())):
        files.append(folder / f"{second}.parquet")
        pq.write_table(rows.filter(pc.equal(seconds, second)), files[-1])
    return files


def see_parameters(spark: SparkSession, subscriptions: int) -> None:
    parameters = [(area,) for area in range(subscriptions)]
    spark.createDataFrame(parameters, "area long").createOrReplaceTempView("parameters")


def plain_spark(spark: SparkSession, files: Sequence[Path]) -> tuple[dict[int, float], list[float]]:
    """The delay of each publication, and the time of each query."""
    delays: dict[int, float] = {}
    times: list[float] = []
    for file in files:
        began = time.monotonic()
        spark.read.parquet(str(file)).createOrReplaceTempView("r")
        rows = spark.sql(QUERY).toArrow()
        times.append(time.monotonic() - began)
        recorded = pc.max(pq.read_table(file, columns=["_recorded"]).column(0).cast(pa.int64())).as_py() / 1e6
        for number, sent in zip(rows.column("number").to_pylist(), rows.column("sent").to_pylist(), strict=True):
            delays[number] = recorded - sent + times[-1]
    return delays, times


def handed_over(spark: SparkSession, files: Sequence[Path]) -> list[float]:
    """The time of each query as channels have it: rows are read by pyarrow, and handed to Spark."""
    times = []
    for file in files:
        began = time.monotonic()
        spark.createDataFrame(pq.read_table(file, partitioning=None)).createOrReplaceTempView("r")
        spark.sql(QUERY).toArrow()
        times.append(time.monotonic() - began)
    return times


def streamed(spark: SparkSession, files: Sequence[Path], folder: Path) -> list[float]:
    """The time of each micro-batch when Spark streams the same files, one to a batch, with a checkpoint of its own."""
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


def p95(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=20)[18]


def measured(rate: float, subscriptions: int, seconds: float, home: str) -> dict[str, Any]:
    with running_fleet() as folder, connected(folder) as connection:
        until(
            lambda: any(each["status"] == "True" for each in status(folder).get("conditions", [])), "the channel runs"
        )
        results = Results(connection, subscriptions)
        until(lambda: status(folder).get("subscriptions") == subscriptions, "all parameters are in force")
        sent = publish(connection, rate, WARM_SECONDS + seconds, subscriptions)
        until(lambda: len(results.delays) >= sent, f"{sent} results; there are {len(results.delays)}")
        results.end()
        dataset = folder.path / "feeds" / "reports"
        rows = pa.concat_tables(pq.read_table(each, partitioning=None) for each in all_files(dataset, None))
        files = second_files(rows, Path(home))
        told = status(folder)
        first = round(rate * WARM_SECONDS)
        own = [delay for number, delay in results.delays.items() if number > first]
        spark = make_spark_session("bench-channels", SETTINGS)
        try:
            see_parameters(spark, subscriptions)
            plain_spark(spark, files[:5])
            delays, query_times = plain_spark(spark, files)
            plain = [delay for number, delay in delays.items() if number > first]
            handed = handed_over(spark, files)
            batch_times = streamed(spark, files, Path(home))
        finally:
            spark.stop()
    return {
        "rate": rate, "subscriptions": subscriptions, "seconds": seconds, "published": sent,
        "results": len(results.delays), "repeated": results.repeated, "gaps": results.gaps, "batches": told["batch"],
        "channel": {"p50": statistics.median(own), "p95": p95(own)},
        "plainSpark": {"p50": statistics.median(plain), "p95": p95(plain)},
        "ratioP95": p95(own) / p95(plain), "handedOver": statistics.median(handed),
        "plainQuery": statistics.median(query_times), "streamedBatch": statistics.median(batch_times),
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.channels", description=__doc__)
    parser.add_argument("--rate", type=float, default=1000.0, help="publications a second")
    parser.add_argument("--subscriptions", type=int, default=1000, help="back-end subscriptions")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long, behind ten seconds that are not judged")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        os.environ["PLIMSOLL_HOME"] = home
        found = measured(options.rate, options.subscriptions, options.seconds, home)
    own, plain = found["channel"], found["plainSpark"]
    print(f"{found['published']} publications, {found['results']} results in {found['batches']} batches, "
          f"{found['repeated']} repeated, {found['gaps']} gaps")  # fmt: skip
    print(f"channel      p50 {own['p50']:.2f} s   p95 {own['p95']:.2f} s, to the subscriber")
    print(f"plain Spark  p50 {plain['p50']:.2f} s   p95 {plain['p95']:.2f} s, to the rows of the query")
    print(f"one batch    handed over {found['handedOver']:.2f} s   plain {found['plainQuery']:.2f} s   "
          f"structured streaming {found['streamedBatch']:.2f} s")  # fmt: skip
    print(f"p95 of the channel is {found['ratioP95']:.2f} times that of plain Spark")
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
