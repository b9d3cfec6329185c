"""Repetitive channels: how late each batch begins and ends against its period, beside plain Spark from files.

Channels with several periods run in one driver over one feed, each with as many back-end subscriptions as asked for.
All of them begin batches at the same times, so the longer periods disturb the shorter ones, which is the hard case.
Of each batch: how long after the beginning of its period it began, was committed, and had its last result delivered;
and how far the time between two batches is from the period. The driver's figures say the first two of every batch.

Plain Spark then has the same rows in files, one for each second. At the beginning of each period the same query runs
over the files of the period before, in one thread for each channel that is due, on a machine that does nothing else.
It has no time to begin, no ledger and no subscriber.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

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
from pyspark.sql import SparkSession

from plimsoll.channels.config import read_figures
from plimsoll.channels.main import SETTINGS
from plimsoll.client import Connection, Delivery, Subscriber, errors
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.sparkjobs.spark_session import make_spark_session

WARM_PERIODS: Final = 2
"""Of the longest period: batches that begin in this time are not judged, since the first ones compile code."""
SAMPLE_SECONDS: Final = 0.2
"""How often the driver's figures are read, which it writes each second."""
STEPS: Final = ("begins", "committed", "delivered", "interval")


class SeenBatch(NamedTuple):
    """A batch by the driver's figures: the beginning of its period, and what followed, in seconds since 1970."""

    period_at: float
    began: float
    committed: float


class Deliveries:
    """Takes the results of all areas of some channels, and notes when the last one of each batch came."""

    def __init__(self, connection: Connection, channels: Iterable[str], subscriptions: int) -> None:
        self._subscriber = Subscriber(connection)
        for channel in channels:
            for area in range(subscriptions):
                self._subscriber.subscribe(f"[channel,=,'{channel}'],[area,=,{area}]", wait=False)
        self._subscriber.wait_acknowledged(PATIENCE_SECONDS)
        self.ends: dict[tuple[str, int], float] = {}
        self._numbers: dict[str, set[int]] = defaultdict(set)
        self.repeated = self.gaps = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def results(self) -> int:
        return sum(map(len, list(self._numbers.values())))

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                items = self._subscriber.receive_many(10_000, 0.2)
            except errors.WaitTimeoutError:
                continue  # nothing has come meanwhile
            now = time.time()
            for item in items:
                if not isinstance(item, Delivery):
                    self.gaps += 1
                    continue
                channel, number = str(item.attributes["channel"]), int(item.attributes["number"])
                self.repeated += number in self._numbers[channel]
                self._numbers[channel].add(number)
                self.ends[channel, int(item.attributes["batch"])] = now

    def end(self) -> None:
        self._stop.set()
        self._thread.join()


class BatchTimes:
    """Reads the driver's figures while it runs, and notes the times of each batch: the last word on it counts."""

    def __init__(self, folder: FleetFolder) -> None:
        self._file = folder.config("channels-figures")
        self.batches: dict[tuple[str, int], SeenBatch] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(SAMPLE_SECONDS):
            self._sample()

    def _sample(self) -> None:
        figures = read_figures(self._file)
        for name, own in (figures.channels if figures is not None else {}).items():
            if own.batch and own.period_seconds:
                late, committed = own.late_milliseconds / 1000, own.batch_us / 1e6
                # Rounded: a batch reads its clock a moment after the reading that its lateness is counted by.
                at = round((committed - own.batch_milliseconds / 1000 - late) / own.period_seconds)
                period_at = at * own.period_seconds
                self.batches[name, own.batch] = SeenBatch(period_at, period_at + late, committed)

    def end(self) -> None:
        self._stop.set()
        self._thread.join()
        self._sample()


def lateness(
    period: float, batches: Mapping[int, SeenBatch], ends: Mapping[int, float], since: float
) -> dict[str, list[float]]:
    """Of each batch with results that began after `since`: seconds after the beginning of its period, by step."""
    judged = {number: each for number, each in sorted(batches.items()) if each.period_at >= since and number in ends}
    commits = [each.committed for each in judged.values()]
    return {
        "begins": [each.began - each.period_at for each in judged.values()],
        "committed": [each.committed - each.period_at for each in judged.values()],
        "delivered": [ends[number] - each.period_at for number, each in judged.items()],
        "interval": [abs(after - before - period) for before, after in pairwise(commits)],
    }


def plain_lateness(
    spark: SparkSession, files: Mapping[int, Path], periods: Sequence[float], subscriptions: int
) -> dict[float, list[float]]:
    """How long after the beginning of a period plain Spark has the rows of the query, by period."""
    sessions = {period: spark.newSession() for period in periods}
    for each in sessions.values():
        see_parameters(each, subscriptions)

    def query(period: float, at: int) -> float:
        found = [str(files[second]) for second in range(at - round(period), at) if second in files]
        sessions[period].read.parquet(*found).createOrReplaceTempView("r")
        sessions[period].sql(QUERY).toArrow()
        return time.monotonic()

    late: dict[float, list[float]] = {period: [] for period in periods}
    free_at = dict.fromkeys(periods, 0.0)  # a query that outlasts its period delays the next one
    with ThreadPoolExecutor(len(periods)) as threads:
        for at in range(min(files) + round(max(periods)), max(files) + 1):
            due = [period for period in periods if at % period == 0]
            began = time.monotonic()
            running = {period: threads.submit(query, period, at) for period in due}
            for period, found in running.items():
                free_at[period] = max(at, free_at[period]) + found.result() - began
                late[period].append(free_at[period] - at)
    return late


def measured(rate: float, subscriptions: int, seconds: float, periods: Sequence[float], place: Path) -> dict[str, Any]:
    """What `main` tells. `place`: a folder for the files of plain Spark."""
    channels = {f"every-{period:g}": period for period in periods}
    warm = WARM_PERIODS * max(periods)
    with running_fleet(channels) as folder, connected(folder) as connection:
        deliveries = Deliveries(connection, channels, subscriptions)
        until(
            lambda: all(each.get("subscriptions") == subscriptions for each in statuses(folder).values()),
            "all parameters are in force",
        )
        times, began = BatchTimes(folder), time.time()
        sent = publish(connection, rate, warm + seconds, subscriptions)
        due = sent * len(channels)
        until(lambda: deliveries.results >= due, f"{due} results; there are {deliveries.results}")
        deliveries.end()
        times.end()
        figures = read_figures(folder.config("channels-figures"))
        files = second_files(folder, place)
    late = {
        name: lateness(
            period, {number: each for (of, number), each in times.batches.items() if of == name},
            {number: at for (of, number), at in deliveries.ends.items() if of == name}, began + warm,
        )
        for name, period in channels.items()
    }  # fmt: skip
    spark = make_spark_session("bench-channels", SETTINGS)
    try:
        first = dict(sorted(files.items())[: round(max(periods)) + 4])
        plain_lateness(spark, first, periods, subscriptions)  # compiles code
        plain = plain_lateness(spark, files, periods, subscriptions)
    finally:
        spark.stop()
    shares = {step: [each / period for name, period in channels.items() for each in late[name][step]] for step in STEPS}
    plain_shares = [each / period for period in periods for each in plain[period]]
    kept = {} if figures is None else {
        name: [each.periods_kept, each.periods_late, each.periods_missed] for name, each in figures.channels.items()
    }  # fmt: skip
    return {
        "rate": rate, "subscriptions": subscriptions, "seconds": seconds, "published": sent, "due": due,
        "results": deliveries.results, "repeated": deliveries.repeated, "gaps": deliveries.gaps,
        "channels": {
            name: {
                "period": period, "batches": len(late[name]["begins"]), "keptLateMissed": kept.get(name, []),
                **{step: _spread(late[name][step]) for step in STEPS}, "plainSpark": _spread(plain[period]),
            }
            for name, period in channels.items()
        },
        "p95OfPeriod": {step: p95(values) for step, values in shares.items()} | {"plainSpark": p95(plain_shares)},
        "ratioP95": p95(shares["committed"]) / p95(plain_shares),
    }  # fmt: skip


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {"p50": statistics.median(values), "p95": p95(values), "most": max(values)}


def summary(found: Mapping[str, Any]) -> str:
    """The lines of one measurement."""
    lines = [
        f"repetitive: {found['published']} publications, {found['results']} of {found['due']} results, "
        f"{found['repeated']} repeated, {found['gaps']} gaps",
        "seconds after the beginning of the period: p50, p95, most",
    ]
    for name, each in found["channels"].items():
        kept, late, missed = each["keptLateMissed"]
        lines.append(
            f"{name}: {each['batches']} batches judged; of all periods {kept} kept, {late} late, {missed} missed"
        )
        for step in (*STEPS, "plainSpark"):
            spread = each[step]
            lines.append(f"  {step:11} {spread['p50']:6.3f} {spread['p95']:6.3f} {spread['most']:6.3f}")
    shares = ", ".join(f"{step} {share:.1%}" for step, share in found["p95OfPeriod"].items())
    lines.append(f"p95 of all batches, of their periods: {shares}")
    lines.append(f"p95 to the commit is {found['ratioP95']:.2f} times that of plain Spark to the rows of its query")
    return "\n".join(lines)
