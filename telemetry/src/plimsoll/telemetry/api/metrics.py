"""A collector's metrics in Prometheus' text format. No label names a broker, a subscriber or a session."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector as Source

from plimsoll.telemetry.collector import TelemetryCollector
from plimsoll.telemetry.snapshot import SnapshotError, TelemetrySnapshot

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST


class CollectorMetrics(Source):
    """The counters of one collector. `clock_us`: the wall clock."""

    def __init__(self, collector: TelemetryCollector, clock_us: Callable[[], int]) -> None:
        self._collector, self._clock_us = collector, clock_us
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def text(self) -> bytes:
        """All metrics in the text format."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """All families; called by the registry."""
        with self._collector.lock:
            yield from self._rows()
            yield from self._written()
            yield from self._sessions()
        yield from self._snapshots()

    def _rows(self) -> Iterator[Metric]:
        intake = self._collector.intake
        rows = _counter("rows", "Load reports, by result.", "outcome")
        for outcome in ("counted", "duplicate", "late", "invalid"):
            rows.add_metric([outcome], getattr(intake.counts, outcome))
        yield rows
        invalid = _counter("rows_invalid", "Load reports that were refused, by reason.", "reason")
        for reason in ("malformed", "schema", "misplaced", "future", "full"):
            invalid.add_metric([reason], intake.reasons[reason])
        yield invalid
        yield _single(_counter("rows_skewed", "Reports that are dated by the time of their arrival."), intake.skewed)
        yield _single(_counter("rows_dropped", "Rows dropped because they could not be written."), intake.dropped)
        yield _single(_gauge("rows_waiting", "Rows waiting to be written."), len(intake.pending_rows))
        yield _single(_gauge("brokers_known", "Brokers whose report numbers are remembered."), intake.brokers)

    def _written(self) -> Iterator[Metric]:
        files = self._collector.files
        yield _single(_counter("files_written", "Parquet files written."), files.written)
        yield _single(_counter("rows_written", "Rows in them."), files.rows)
        yield _single(_counter("written_bytes", "Bytes in them."), files.size_bytes)
        yield _single(_counter("write_failures", "Files that could not be written; rows were kept."), files.failures)
        aside = _gauge("files_set_aside", "Files set aside because a job could not read them.")
        yield _single(aside, len(files.set_aside()))
        drivers = _counter("live_drivers", "Drivers of the live job so far; each one more is a replacement.")
        yield _single(drivers, files.live_drivers())
        yield _single(_counter("files_removed", "Files removed because of their age."), files.removed)

    def _sessions(self) -> Iterator[Metric]:
        outcomes = self._collector.outcomes
        sessions = _counter("sessions", "Sessions that were received, by result.", "outcome")
        for name, count in (
            ("counted", outcomes.counted), ("duplicate", outcomes.duplicates), ("invalid", outcomes.refused),
        ):  # fmt: skip
            sessions.add_metric([name], count)
        yield sessions

    def _snapshots(self) -> Iterator[Metric]:
        now_us = self._clock_us()
        found: dict[str, TelemetrySnapshot] = {"fold": self._collector.fold_snapshot(now_us)}
        with contextlib.suppress(SnapshotError):  # the collector counts its refusals itself
            _, found["spark"] = self._collector.spark_snapshot(now_us)
        usable = _gauge("snapshot_usable", "1 if the snapshot of this source may be used now.", "source")
        usable.add_metric(["fold"], 1)
        usable.add_metric(["spark"], int("spark" in found))
        age = _gauge(
            "snapshot_age_seconds",
            "Seconds since the end of the snapshot's window; absent if it may not be used.",
            "source",
        )
        seen = _gauge("brokers_seen_ratio", "Share of the expected brokers that were seen.", "source")
        for source, snapshot in found.items():
            age.add_metric([source], max(0.0, snapshot.age_seconds(now_us)))
            seen.add_metric([source], snapshot.coverage)
        refused = _counter("snapshots_refused", "How often Spark's snapshot could not be used, by reason.", "fault")
        for fault, count in sorted(self._collector.faults.items()):
            refused.add_metric([fault], count)
        yield from (usable, age, seen, refused)


def _counter(name: str, about: str, label: str = "") -> CounterMetricFamily:
    return CounterMetricFamily(f"plimsoll_telemetry_{name}", about, labels=[label] if label else None)


def _gauge(name: str, about: str, label: str = "") -> GaugeMetricFamily:
    return GaugeMetricFamily(f"plimsoll_telemetry_{name}", about, labels=[label] if label else None)


def _single(family: CounterMetricFamily | GaugeMetricFamily, value: float) -> Metric:
    family.add_metric([], value)
    return family
