"""One collector: it takes load reports, writes them each interval, folds them and serves the result.

It decides nothing about a fleet: a fault here is counted and logged, and never reaches a broker. One thread does the
work; the service's threads read under its lock. Rows carry wall-clock times; intervals use the monotonic clock.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, Final

from plimsoll.telemetry.config import CollectorConfig
from plimsoll.telemetry.fold import SnapshotHeader, fold_reports
from plimsoll.telemetry.ingest.head_listener import HeadReports
from plimsoll.telemetry.ingest.report_intake import ReportIntake
from plimsoll.telemetry.ingest.session_outcomes import SessionOutcomes
from plimsoll.telemetry.schema import INCOMING, LOADS, MAJOR, OUTCOMES, SESSIONS, ExpectedBrokers
from plimsoll.telemetry.snapshot import (
    SnapshotError,
    SnapshotRequirements,
    TelemetrySnapshot,
    check_usable,
    decode_snapshot,
)
from plimsoll.telemetry.storage import parquet
from plimsoll.telemetry.storage.folder import TelemetryFolder

REMEMBERED_SECONDS: Final = 600.0
"""After a restart, rows written within this time are remembered, so that repeated reports are duplicates."""
MAINTENANCE_SECONDS: Final = 60.0
ALIVE_SECONDS: Final = 15.0


class TelemetryCollector:
    """`start_us`: the wall clock at its start; it names its run."""

    def __init__(self, config: CollectorConfig, files: TelemetryFolder, start_us: int) -> None:
        self.config, self.files = config, files
        self.intake = ReportIntake(config.fleet, config.name)
        self.outcomes = SessionOutcomes(config.fleet, config.name)
        self.lock = threading.RLock()
        self.frames_refused = 0
        self.folds = 0
        self.faults: dict[str, int] = {}
        self.unreadable: list[str] = []
        self._start_us = start_us
        self._write_at: float | None = None
        self._maintain_at = 0.0
        self._alive_at = 0.0
        self._published_config: CollectorConfig | None = None
        self._latest: tuple[bytes, TelemetrySnapshot] | None = None
        self._used: tuple[int, int] | None = None

    def start(self, now_us: int) -> None:
        """Make the folders, and load the rows that earlier runs wrote, to detect duplicates.

        Raises:
            OSError: the folder cannot be used at all.

        """
        self.files.prepare()
        since = now_us - int(REMEMBERED_SECONDS * 1e6)
        for stored in self.files.recent_files(INCOMING, since):
            try:
                self.intake.remember(parquet.read_rows(stored.path, LOADS, ("broker", "epoch", "seq", "received_us")))
            except (OSError, parquet.ParquetFileError) as error:
                self.unreadable.append(str(error))
        for stored in self.files.recent_files(SESSIONS, 0):
            try:
                for row in parquet.read_rows(stored.path, OUTCOMES, ("uid",)):
                    self.outcomes.remember(row["uid"])
            except (OSError, parquet.ParquetFileError) as error:
                self.unreadable.append(str(error))

    # -- the loop

    def take_reports(self, received: HeadReports, now_us: int) -> None:
        """Take the reports of one head."""
        with self.lock:
            self.frames_refused += received.refused
            for _ in range(received.refused):
                self.intake.refuse()
            for report in received.reports:
                self.intake.take_report(report, received.cluster, now_us)

    def advance(self, now: float, now_us: int) -> None:
        """Do what is due: write pending rows, forget silent brokers, remove old files."""
        self._alive_at = now
        if self._write_at is None:
            self._write_at = now + self.config.interval_seconds
        if now >= self._write_at:
            self._write_at = max(self._write_at + self.config.interval_seconds, now)
            self.write()
        if now >= self._maintain_at:
            self._maintain_at = now + MAINTENANCE_SECONDS
            self._maintain(now_us)
        self._publish_expected(now_us)

    def write(self) -> None:
        """Write the pending rows; if that fails they stay pending, up to a bound."""
        with self.lock:
            rows = self.intake.take_rows()
            sessions = self.outcomes.take_rows()
        if rows:
            times = [row[_RECEIVED] for row in rows]
            try:
                is_written = self.files.write(INCOMING, LOADS, rows, min(times), max(times))
            except Exception:  # of rows that cannot be written at all: kept, they would keep all later ones back
                with self.lock:
                    self.intake.dropped += len(rows)
                raise
            if not is_written:
                with self.lock:
                    self.intake.return_rows(rows)
        if sessions:
            times = [row[_SESSION_RECEIVED] for row in sessions]
            if not self.files.write(SESSIONS, OUTCOMES, sessions, min(times), max(times)):
                with self.lock:
                    self.outcomes.return_rows(sessions)

    def reconfigure(self, config: CollectorConfig) -> None:
        """Use a changed configuration. Name and folder of the collector stay as they were at its start."""
        with self.lock:
            self.config = config

    def _maintain(self, now_us: int) -> None:
        try:
            self.files.remove_before(now_us - int(self.config.retain_seconds * 1e6))
        except OSError as error:
            self.files.failures += 1
            self.files.fault = f"cannot remove old files: {error}"
        with self.lock:
            self.intake.forget_silent([name for names in self.expected().values() for name in names], now_us)

    def _publish_expected(self, now_us: int) -> None:
        """Write the expected brokers of the whole fleet when they change. Only the first collector does; it retries."""
        if self.config.index != 0 or self._published_config is self.config:
            return
        clusters = {name: list(each.brokers) for name, each in sorted(self.config.clusters.items())}
        said = ExpectedBrokers(schema=MAJOR, fleet=self.config.fleet, written_us=now_us, clusters=clusters)
        if self.files.write_expected(said):
            self._published_config = self.config

    # -- for the service

    def is_alive(self, now: float) -> bool:
        """Whether the loop has run lately."""
        return now - self._alive_at < ALIVE_SECONDS

    def expected(self) -> Mapping[str, tuple[str, ...]]:
        """The brokers of this collector's share, by cluster."""
        return {name: each.brokers for name, each in self.config.share.items()}

    def fold_snapshot(self, now_us: int) -> TelemetrySnapshot:
        """A snapshot folded from the newest report of each broker."""
        with self.lock:
            self.folds += 1
            header = SnapshotHeader(
                source="fold", fleet=self.config.fleet, run_us=self._start_us, batch=self.folds, window_end_us=now_us,
                written_us=now_us,
            )  # fmt: skip
            points = {cluster: list(of.values()) for cluster, of in self.intake.newest.items()}
            counts, expected, fresh = self.intake.counts, self.expected(), self.config.fresh_seconds
        return fold_reports(points, expected, header, counts, fresh)

    def spark_snapshot(self, now_us: int) -> tuple[bytes, TelemetrySnapshot]:
        """Spark's snapshot as it was written, if it may be used now.

        Raises:
            SnapshotError: naming why it may not.

        """
        try:
            data = self.files.latest()
        except OSError as error:
            raise self._count_refusal(SnapshotError("Malformed", f"cannot be read: {error}")) from error
        with self.lock:
            if data is None:
                raise self._count_refusal(SnapshotError("Missing", "Spark has written none"))
            wanted = SnapshotRequirements(self.config.fleet, self.config.max_age_seconds, after=self._used)
            try:
                if self._latest is None or self._latest[0] != data:
                    self._latest = data, decode_snapshot(data)
                check_usable(self._latest[1], wanted, now_us)
            except SnapshotError as error:
                raise self._count_refusal(error) from None
            self._used = self._latest[1].order
            return self._latest

    def _count_refusal(self, error: SnapshotError) -> SnapshotError:
        with self.lock:
            self.faults[error.fault] = self.faults.get(error.fault, 0) + 1
        return error

    def take_session(self, item: Mapping[str, Any], now_us: int) -> bool:
        """Take a finished session; whether it is new.

        Raises:
            ValueError: it is not a finished session; says why.

        """
        with self.lock:
            return self.outcomes.take_session(item, now_us)


_RECEIVED: Final = LOADS.names.index("received_us")
_SESSION_RECEIVED: Final = OUTCOMES.names.index("received_us")
