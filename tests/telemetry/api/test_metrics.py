"""What Prometheus reads: names, units, and figures that add up; no label grows with the fleet."""

from __future__ import annotations

import re
from pathlib import Path

from tests.telemetry.rows import NOW_US, report
from tests.telemetry.test_collector import by_spark, started
from tests.telemetry.test_session_rows import session

from plimsoll.telemetry.api.metrics import CollectorMetrics
from plimsoll.telemetry.ingest.head_listener import HeadReports
from plimsoll.telemetry.schema import LATEST, OWNER, SET_ASIDE


def read(text: bytes) -> dict[str, float]:
    lines = [line.rsplit(" ", 1) for line in text.decode().splitlines() if line and not line.startswith("#")]
    return {name: float(value) for name, value in lines}


def test_figures_of_a_collector(tmp_path: Path):
    collector = started(tmp_path)
    metrics = CollectorMetrics(collector, lambda: NOW_US)
    collector.take_reports(HeadReports("c", [report("e1"), report("e1"), report("e2", schema=3)], 1), NOW_US)
    collector.take_session(session(), NOW_US)
    collector.write()
    (tmp_path / SET_ASIDE).mkdir()
    (tmp_path / SET_ASIDE / "a.parquet").touch()
    (tmp_path / OWNER).parent.mkdir(parents=True)
    (tmp_path / OWNER).write_text('{"token": "x", "drivers": 3}')
    found = read(metrics.text())
    prefix = "plimsoll_telemetry_"
    rows = {o: found[f'{prefix}rows_total{{outcome="{o}"}}'] for o in ("counted", "duplicate", "late", "invalid")}
    assert rows == {"counted": 1, "duplicate": 1, "late": 0, "invalid": 2}
    assert found[f'{prefix}rows_invalid_total{{reason="schema"}}'] == 1
    assert found[f'{prefix}rows_invalid_total{{reason="malformed"}}'] == 1
    assert found[f"{prefix}rows_written_total"] == 2
    assert found[f"{prefix}files_written_total"] == 2
    assert found[f"{prefix}rows_waiting"] == 0
    assert (found[f"{prefix}files_set_aside"], found[f"{prefix}live_drivers_total"]) == (1, 3)
    assert found[f'{prefix}sessions_total{{outcome="counted"}}'] == 1
    assert found[f'{prefix}snapshot_usable{{source="spark"}}'] == 0
    assert found[f'{prefix}snapshots_refused_total{{fault="Missing"}}'] == 1
    assert found[f'{prefix}brokers_seen_ratio{{source="fold"}}'] == 0.5


def test_age_and_coverage_of_sparks_snapshot(tmp_path: Path):
    collector = started(tmp_path)
    (tmp_path / LATEST).write_bytes(by_spark(end_us=NOW_US - 3_000_000))
    found = read(CollectorMetrics(collector, lambda: NOW_US).text())
    assert found['plimsoll_telemetry_snapshot_usable{source="spark"}'] == 1
    assert found['plimsoll_telemetry_snapshot_age_seconds{source="spark"}'] == 3
    assert found['plimsoll_telemetry_brokers_seen_ratio{source="spark"}'] == 1


def test_names_and_labels_keep_to_the_vocabulary(tmp_path: Path):
    text = CollectorMetrics(started(tmp_path), lambda: NOW_US).text().decode()
    families = re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE)
    assert len(families) > 12
    for name, kind in families:
        assert name.startswith("plimsoll_telemetry_")
        assert (kind == "counter") == name.endswith("_total")
    assert set(re.findall(r"[{,](\w+)=", text)) <= {"outcome", "reason", "source", "fault"}
