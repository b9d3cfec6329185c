"""What both measurements share: a fleet of this machine, its publisher, and the feed's rows as files."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from plimsoll.client import Connection, Curve, Publisher
from plimsoll.core.client import Address
from plimsoll.core.spec import SourceDocument, parse
from plimsoll.feeds.commit_log import read_state
from plimsoll.feeds.dataset import dataset_files
from plimsoll.local import runtime
from plimsoll.local.head_access import head_access
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import ObjectStore

QUERY: Final = "SELECT p.area, r.number, r.sent FROM parameters p JOIN r ON r.area = p.area"
PATIENCE_SECONDS: Final = 180.0
BURST_SECONDS: Final = 0.05


def documents(channels: Mapping[str, float | None]) -> list[SourceDocument]:
    """A head, two edges, a feed that commits each second, and channels by name with their periods in seconds."""
    columns = [{"name": "area", "type": "Integer"}, {"name": "number", "type": "Integer"},
               {"name": "sent", "type": "Number"}]  # fmt: skip
    edges = [{"name": "edge", "profile": "broker", "replicas": 2}]
    return [
        _document("BrokerFleet", "bench-channels"),
        _document("HardwareProfile", "broker", cpu="1", memory="256Mi"),
        _document("BrokerCluster", "c", head={"profile": "broker"}, edges=edges),
        _document("Feed", "reports", subscription="[class,=,'REPORT']", commitInterval="1s",
                  schema={"columns": columns, "unknownAttributes": "Drop"}),
        *(_channel(name, period) for name, period in channels.items()),
    ]  # fmt: skip


def _channel(name: str, period: float | None) -> SourceDocument:
    mode = {} if period is None else {"mode": "Repetitive", "every": f"{period:g}s"}
    parameters, feeds = [{"name": "area", "type": "Integer"}], [{"name": "r", "feed": "reports"}]
    return _document("Channel", name, parameters=parameters, feeds=feeds, query=QUERY, **mode)


def _document(kind: str, name: str, **spec: Any) -> SourceDocument:
    return SourceDocument(
        {"apiVersion": "plimsoll.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    )


@contextmanager
def running_fleet(channels: Mapping[str, float | None]) -> Iterator[FleetFolder]:
    """A fleet whose channels run; it ends with the block."""
    resources = parse(documents(channels))
    runtime.up_detached(resources, lambda line: None)
    folder = FleetFolder.of(resources.fleet.name)
    try:
        until(lambda: all(map(_runs, statuses(folder).values())), "all channels run")
        yield folder
    finally:
        runtime.down(folder)


def connected(folder: FleetFolder) -> Connection:
    way = head_access(folder)
    secret = str(way.secret_key_file) if way.secret_key_file is not None else ""
    return Connection(Address(way.endpoint), security=Curve(secret=secret, server=way.server))


def statuses(folder: FleetFolder) -> dict[str, dict[str, Any]]:
    """The status of each channel."""
    with ObjectStore(folder.store) as store:
        return {item["metadata"]["name"]: item.get("status", {}) for item in store.objects("Channel")[1]}


def _runs(status: Mapping[str, Any]) -> bool:
    return any(each["status"] == "True" for each in status.get("conditions", []))


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"not within {PATIENCE_SECONDS:.0f} s: {what}")
        time.sleep(0.1)


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


def second_files(folder: FleetFolder, place: Path) -> dict[int, Path]:
    """The rows of the feed as one file for each second, since 1970, in which they were recorded."""
    dataset = folder.path / "feeds" / "reports"
    places = dataset_files(dataset, read_state(dataset))
    rows = pa.concat_tables(pq.read_table(each, partitioning=None) for each in places)
    seconds = pc.divide(rows.column("_recorded").cast(pa.int64()), 1_000_000)
    files = {}
    for second in sorted(set(seconds.to_pylist())):
        files[second] = place / f"{second}.parquet"
        pq.write_table(rows.filter(pc.equal(seconds, second)), files[second])
    return files


def see_parameters(spark: SparkSession, subscriptions: int) -> None:
    parameters = [(area,) for area in range(subscriptions)]
    spark.createDataFrame(parameters, "area long").createOrReplaceTempView("parameters")


def p95(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=20, method="inclusive")[18]
