"""One collector: rows wait until they are written, a restart repeats nothing, a good snapshot is served."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.telemetry.rows import NOW_US, expected_brokers, report, row
from tests.telemetry.test_session_rows import session

from plimsoll.core.config import LinkSecurity, PeerBroker
from plimsoll.telemetry import snapshot
from plimsoll.telemetry.collector import ALIVE_SECONDS, MAINTENANCE_SECONDS, TelemetryCollector
from plimsoll.telemetry.config import CollectorConfig, MonitoredCluster
from plimsoll.telemetry.fold import ReportPoint, SnapshotHeader, fold_reports
from plimsoll.telemetry.ingest.head_listener import HeadReports
from plimsoll.telemetry.schema import EXPECTED, INCOMING, LATEST, LOADS, OUTCOMES, SESSIONS
from plimsoll.telemetry.snapshot import ReportCounts, SnapshotError
from plimsoll.telemetry.storage import parquet
from plimsoll.telemetry.storage.folder import TelemetryFolder

SECOND = 1_000_000


def config(root: Path, **changes: Any) -> CollectorConfig:
    clusters = {"c": MonitoredCluster(head=PeerBroker(name="h", control="tcp://127.0.0.1:1"), brokers=("e1", "e2"))}
    plain = CollectorConfig(
        name="c0", fleet="f", folder=str(root), security=LinkSecurity(plain=True), clusters=clusters, http="127.0.0.1:0"
    )
    return msgspec.structs.replace(plain, **changes)


def started(root: Path, **changes: Any) -> TelemetryCollector:
    collector = TelemetryCollector(config(root, **changes), TelemetryFolder(root, "c0"), NOW_US)
    collector.start(NOW_US)
    return collector


def stored(root: Path, folder: str = INCOMING) -> list[dict[str, Any]]:
    table = LOADS if folder == INCOMING else OUTCOMES
    return [each for path in sorted((root / folder).iterdir()) for each in parquet.read_rows(path, table)]


def test_rows_are_written_once_an_interval(tmp_path: Path):
    collector = started(tmp_path)
    collector.advance(100.0, NOW_US)
    collector.take_reports(HeadReports("c", [report("e1"), report("e2"), report("e1")], 2), NOW_US)
    collector.advance(109.9, NOW_US)
    assert stored(tmp_path) == []
    collector.advance(110.0, NOW_US)
    assert {each["broker"] for each in stored(tmp_path)} == {"e1", "e2"}
    collector.advance(120.0, NOW_US)
    assert collector.files.written == 1, "nothing new, no file"
    assert collector.intake.counts == ReportCounts(rows_in=5, counted=2, duplicate=1, invalid=2)


def test_rows_that_cannot_be_written_are_written_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    collector = started(tmp_path)
    collector.take_reports(HeadReports("c", [report("e1")], 0), NOW_US)
    collector.take_session(session(), NOW_US)

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        collector.write()
    collector.take_reports(HeadReports("c", [report("e1", 2)], 0), NOW_US)
    assert collector.files.failures == 2
    collector.write()
    assert [each["seq"] for each in stored(tmp_path)] == [1, 2]
    assert [each["name"] for each in stored(tmp_path, SESSIONS)] == ["s1"]


def test_rows_that_cannot_be_written_at_all_keep_no_later_ones_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    collector = started(tmp_path)
    collector.take_reports(HeadReports("c", [report("e1")], 0), NOW_US)

    def odd(*given: object) -> int:
        raise OverflowError("int too big to convert")

    with monkeypatch.context() as patched:
        patched.setattr(parquet, "write_values", odd)
        with pytest.raises(OverflowError):
            collector.write()
    assert collector.intake.dropped == 1
    collector.take_reports(HeadReports("c", [report("e1", 2)], 0), NOW_US)
    collector.write()
    assert [each["seq"] for each in stored(tmp_path)] == [2]


def test_a_restart_counts_nothing_twice(tmp_path: Path):
    before = started(tmp_path)
    before.take_reports(HeadReports("c", [report("e1", 1), report("e1", 2)], 0), NOW_US)
    before.take_session(session(), NOW_US)
    before.write()
    (tmp_path / INCOMING / f"c0-1-{NOW_US // 1000}-9.parquet").write_bytes(b"broken")
    after = started(tmp_path)
    assert len(after.unreadable) == 1
    assert "-9.parquet" in after.unreadable[0]
    after.take_reports(HeadReports("c", [report("e1", 2), report("e1", 3)], 0), NOW_US)
    assert not after.take_session(session(), NOW_US)
    assert after.intake.counts == ReportCounts(rows_in=2, counted=1, duplicate=1)


def test_the_house_is_kept(tmp_path: Path):
    collector = started(tmp_path, retain_seconds=10.0)
    old = tmp_path / INCOMING / f"c7-1-{NOW_US // 1000 - 10_001}-1.parquet"
    old.write_bytes(b"")
    collector.take_reports(HeadReports("c", [report("e1"), report("x")], 0), NOW_US)
    collector.advance(0.0, NOW_US)
    assert not old.exists()
    collector.advance(MAINTENANCE_SECONDS, NOW_US + 3601 * SECOND)
    assert set(collector.intake.newest["c"]) == {"e1"}, "x is not expected, and it is silent"


def test_a_folder_that_is_gone_is_counted_and_said(tmp_path: Path):
    collector = started(tmp_path)
    (tmp_path / INCOMING).rmdir()
    collector.take_reports(HeadReports("c", [report("e1")], 0), NOW_US)
    collector.advance(0.0, NOW_US)
    collector.write()
    assert collector.files.failures == 2
    assert "incoming" in collector.files.fault
    assert len(collector.intake.pending_rows) == 1


def test_the_first_collector_writes_the_expected_brokers(tmp_path: Path):
    collector = started(tmp_path)
    collector.advance(0.0, NOW_US)
    assert expected_brokers(tmp_path).clusters == {"c": ["e1", "e2"]}
    more = MonitoredCluster(head=PeerBroker(name="k", control="tcp://127.0.0.1:2"), brokers=("k",))
    collector.reconfigure(config(tmp_path, clusters={**collector.config.clusters, "d": more}))
    collector.advance(1.0, NOW_US + 5)
    assert expected_brokers(tmp_path).clusters == {"c": ["e1", "e2"], "d": ["k"]}
    assert expected_brokers(tmp_path).written_us == NOW_US + 5
    (tmp_path / EXPECTED).unlink()
    started(tmp_path, index=1, collectors=2).advance(0.0, NOW_US)
    assert not (tmp_path / EXPECTED).exists()


def test_the_fold_is_of_what_came_lately(tmp_path: Path):
    collector = started(tmp_path)
    collector.take_reports(
        HeadReports("c", [report("e1", at_us=NOW_US - 3600 * SECOND, input_utilization=0.5)], 0), NOW_US
    )
    found = collector.fold_snapshot(NOW_US + 4 * SECOND)
    assert (found.seen, found.expected, found.clusters["c"].missing) == (1, 2, ["e2"])
    assert found.clusters["c"].window(5).metrics["input_utilization"].mean == 0.5
    assert (found.source, found.run_us, found.counts.counted) == ("fold", NOW_US, 1)
    assert collector.fold_snapshot(NOW_US + 5 * SECOND).seen == 0
    assert collector.fold_snapshot(NOW_US).order > found.order


def test_a_collector_is_alive_while_it_goes_round(tmp_path: Path):
    collector = started(tmp_path)
    collector.advance(50.0, NOW_US)
    assert collector.is_alive(50.0 + ALIVE_SECONDS - 0.1)
    assert not collector.is_alive(50.0 + ALIVE_SECONDS)


def by_spark(batch: int = 1, end_us: int = NOW_US, brokers: tuple[str, ...] = ("e1", "e2")) -> bytes:
    header = SnapshotHeader(source="spark", fleet="f", run_us=1, batch=batch, window_end_us=end_us, written_us=end_us)
    points = [ReportPoint.of(row(name, at_us=end_us)) for name in brokers]
    return snapshot.encode_snapshot(fold_reports({"c": points}, {"c": ("e1", "e2")}, header, ReportCounts()))


def fault(collector: TelemetryCollector, now_us: int = NOW_US) -> str:
    with pytest.raises(SnapshotError) as refused:
        collector.spark_snapshot(now_us)
    return refused.value.fault


def test_the_snapshot_of_spark_is_served_only_while_it_is_good(tmp_path: Path):
    collector, latest = started(tmp_path), tmp_path / LATEST
    assert fault(collector) == "Missing"
    latest.write_bytes(by_spark(batch=3))
    assert collector.spark_snapshot(NOW_US)[0] == latest.read_bytes()
    assert fault(collector, NOW_US + 46 * SECOND) == "Stale"
    latest.write_bytes(by_spark(batch=2))
    assert fault(collector) == "OutOfOrder"
    latest.write_bytes(by_spark(batch=4, brokers=("e1",)))
    assert fault(collector) == "Incomplete"
    latest.write_bytes(by_spark(batch=5).replace(b'"batch":5', b'"batch":6'))
    assert fault(collector) == "ChecksumMismatch"
    latest.write_bytes(by_spark(batch=5))
    assert collector.spark_snapshot(NOW_US)[1].batch == 5
    assert collector.faults == {
        "Missing": 1, "Stale": 1, "OutOfOrder": 1, "Incomplete": 1, "ChecksumMismatch": 1,
    }  # fmt: skip
    latest.unlink()
    latest.mkdir()
    assert fault(collector) == "Malformed", "it cannot be read"
