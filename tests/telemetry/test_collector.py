"""One collector: rows wait until they are written, a restart repeats nothing, a good snapshot is served."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.telemetry.rows import NOW_US, report, row
from tests.telemetry.test_outcomes import session

from plimsoll.core.config import Peer, Security
from plimsoll.telemetry import arrow, snapshot
from plimsoll.telemetry.collector import ALIVE_SECONDS, HOUSE_SECONDS, Collector
from plimsoll.telemetry.config import CollectorConfig, Listened
from plimsoll.telemetry.files import Files, expected_of
from plimsoll.telemetry.fold import Header, Point, fold
from plimsoll.telemetry.listening import Heard
from plimsoll.telemetry.schema import EXPECTED, INCOMING, LATEST, LOADS, OUTCOMES, SESSIONS
from plimsoll.telemetry.snapshot import Counts, SnapshotError

SECOND = 1_000_000


def config(root: Path, **changes: Any) -> CollectorConfig:
    clusters = {"c": Listened(head=Peer(name="h", control="tcp://127.0.0.1:1"), brokers=("e1", "e2"))}
    plain = CollectorConfig(
        name="c0", fleet="f", folder=str(root), security=Security(plain=True), clusters=clusters, http="127.0.0.1:0"
    )
    return msgspec.structs.replace(plain, **changes)


def started(root: Path, **changes: Any) -> Collector:
    collector = Collector(config(root, **changes), Files(root, "c0"), NOW_US)
    collector.start(NOW_US)
    return collector


def stored(root: Path, folder: str = INCOMING) -> list[dict[str, Any]]:
    table = LOADS if folder == INCOMING else OUTCOMES
    return [each for path in sorted((root / folder).iterdir()) for each in arrow.read(path, table)]


def test_rows_are_written_once_an_interval(tmp_path: Path):
    collector = started(tmp_path)
    collector.step(100.0, NOW_US)
    collector.heard(Heard("c", [report("e1"), report("e2"), report("e1")], 2), NOW_US)
    collector.step(109.9, NOW_US)
    assert stored(tmp_path) == []
    collector.step(110.0, NOW_US)
    assert {each["broker"] for each in stored(tmp_path)} == {"e1", "e2"}
    collector.step(120.0, NOW_US)
    assert collector.files.written == 1, "nothing new, no file"
    assert collector.intake.counts == Counts(rows_in=5, counted=2, duplicate=1, invalid=2)


def test_rows_that_cannot_be_written_are_written_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    collector = started(tmp_path)
    collector.heard(Heard("c", [report("e1")], 0), NOW_US)
    collector.session(session(), NOW_US)

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        collector.write()
    collector.heard(Heard("c", [report("e1", 2)], 0), NOW_US)
    assert collector.files.failures == 2
    collector.write()
    assert [each["seq"] for each in stored(tmp_path)] == [1, 2]
    assert [each["name"] for each in stored(tmp_path, SESSIONS)] == ["s1"]


def test_a_restart_counts_nothing_twice(tmp_path: Path):
    before = started(tmp_path)
    before.heard(Heard("c", [report("e1", 1), report("e1", 2)], 0), NOW_US)
    before.session(session(), NOW_US)
    before.write()
    (tmp_path / INCOMING / f"c0-1-{NOW_US // 1000}-9.parquet").write_bytes(b"broken")
    after = started(tmp_path)
    assert len(after.unreadable) == 1
    assert "-9.parquet" in after.unreadable[0]
    after.heard(Heard("c", [report("e1", 2), report("e1", 3)], 0), NOW_US)
    assert not after.session(session(), NOW_US)
    assert after.intake.counts == Counts(rows_in=2, counted=1, duplicate=1)


def test_the_house_is_kept(tmp_path: Path):
    collector = started(tmp_path, retain_seconds=10.0)
    old = tmp_path / INCOMING / f"c7-1-{NOW_US // 1000 - 10_001}-1.parquet"
    old.write_bytes(b"")
    collector.heard(Heard("c", [report("e1"), report("x")], 0), NOW_US)
    collector.step(0.0, NOW_US)
    assert not old.exists()
    collector.step(HOUSE_SECONDS, NOW_US + 3601 * SECOND)
    assert set(collector.intake.newest["c"]) == {"e1"}, "nobody expects x, and it is silent"


def test_a_folder_that_is_gone_is_counted_and_said(tmp_path: Path):
    collector = started(tmp_path)
    (tmp_path / INCOMING).rmdir()
    collector.heard(Heard("c", [report("e1")], 0), NOW_US)
    collector.step(0.0, NOW_US)
    collector.write()
    assert collector.files.failures == 2
    assert "incoming" in collector.files.fault
    assert len(collector.intake.waiting) == 1


def test_the_first_collector_says_whom_to_expect(tmp_path: Path):
    collector = started(tmp_path)
    collector.step(0.0, NOW_US)
    assert expected_of(tmp_path / EXPECTED).clusters == {"c": ["e1", "e2"]}
    more = Listened(head=Peer(name="k", control="tcp://127.0.0.1:2"), brokers=("k",))
    collector.told(config(tmp_path, clusters={**collector.config.clusters, "d": more}))
    collector.step(1.0, NOW_US + 5)
    assert expected_of(tmp_path / EXPECTED).clusters == {"c": ["e1", "e2"], "d": ["k"]}
    assert expected_of(tmp_path / EXPECTED).written_us == NOW_US + 5
    (tmp_path / EXPECTED).unlink()
    started(tmp_path, index=1, collectors=2).step(0.0, NOW_US)
    assert not (tmp_path / EXPECTED).exists()


def test_the_fold_is_of_what_came_lately(tmp_path: Path):
    collector = started(tmp_path)
    collector.heard(Heard("c", [report("e1", at_us=NOW_US - 3600 * SECOND, input_utilization=0.5)], 0), NOW_US)
    found = collector.fold(NOW_US + 4 * SECOND)
    assert (found.seen, found.expected, found.clusters["c"].missing) == (1, 2, ["e2"])
    assert found.clusters["c"].window(5).metrics["input_utilization"].mean == 0.5
    assert (found.source, found.run_us, found.counts.counted) == ("fold", NOW_US, 1)
    assert collector.fold(NOW_US + 5 * SECOND).seen == 0
    assert collector.fold(NOW_US).order > found.order


def test_a_collector_is_alive_while_it_goes_round(tmp_path: Path):
    collector = started(tmp_path)
    collector.step(50.0, NOW_US)
    assert collector.is_alive(50.0 + ALIVE_SECONDS - 0.1)
    assert not collector.is_alive(50.0 + ALIVE_SECONDS)


def by_spark(batch: int = 1, end_us: int = NOW_US, brokers: tuple[str, ...] = ("e1", "e2")) -> bytes:
    header = Header(source="spark", fleet="f", run_us=1, batch=batch, window_end_us=end_us, written_us=end_us)
    points = [Point.of(row(name, at_us=end_us)) for name in brokers]
    return snapshot.encode(fold({"c": points}, {"c": ("e1", "e2")}, header, Counts()))


def fault(collector: Collector, now_us: int = NOW_US) -> str:
    with pytest.raises(SnapshotError) as refused:
        collector.spark(now_us)
    return refused.value.fault


def test_the_snapshot_of_spark_is_served_only_while_it_is_good(tmp_path: Path):
    collector, latest = started(tmp_path), tmp_path / LATEST
    assert fault(collector) == "Missing"
    latest.write_bytes(by_spark(batch=3))
    assert collector.spark(NOW_US)[0] == latest.read_bytes()
    assert fault(collector, NOW_US + 46 * SECOND) == "Stale"
    latest.write_bytes(by_spark(batch=2))
    assert fault(collector) == "OutOfOrder"
    latest.write_bytes(by_spark(batch=4, brokers=("e1",)))
    assert fault(collector) == "Incomplete"
    latest.write_bytes(by_spark(batch=5).replace(b'"batch":5', b'"batch":6'))
    assert fault(collector) == "ChecksumMismatch"
    latest.write_bytes(by_spark(batch=5))
    assert collector.spark(NOW_US)[1].batch == 5
    assert collector.faults == {
        "Missing": 1, "Stale": 1, "OutOfOrder": 1, "Incomplete": 1, "ChecksumMismatch": 1,
    }  # fmt: skip
    latest.unlink()
    latest.mkdir()
    assert fault(collector) == "Malformed", "it cannot be read"
