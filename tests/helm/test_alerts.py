"""Alerts use existing metrics, with labels that these have, and promtool can read them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
ALERTS = ROOT / "helm" / "plimsoll" / "files" / "alerts.yaml"
RULES = [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]
SOURCES = {
    "plimsoll_broker_": ROOT / "broker-image/src/plimsoll/broker/monitoring/metrics.py",
    "plimsoll_telemetry_": ROOT / "telemetry/src/plimsoll/telemetry/api/metrics.py",
    "plimsoll_sessions_with_": ROOT / "operator/src/plimsoll/operator/session_metrics.py",
    "plimsoll_session_": ROOT / "operator/src/plimsoll/operator/session_metrics.py",
    "plimsoll_": ROOT / "operator/src/plimsoll/operator/metrics.py",
}


def named(expression: str) -> set[str]:
    """Metrics that an expression uses; a pattern of alternatives stands for each."""
    found: set[str] = set()
    for name in re.findall(r"plimsoll_[a-z_()|]+", expression):
        parts = re.split(r"\(([a-z|]+)\)", name)
        found |= {parts[0] + each + parts[2] for each in parts[1].split("|")} if len(parts) == 3 else {name}
    return found


def test_patterns_are_taken_apart():
    assert named('max({__name__=~"plimsoll_broker_(input|output)_utilization"}) > 1') == {
        "plimsoll_broker_input_utilization", "plimsoll_broker_output_utilization",
    }  # fmt: skip


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule["alert"]))
def test_an_alert_asks_for_what_is_measured(rule: dict[str, str]):
    assert named(rule["expr"])
    for name in named(rule["expr"]):
        prefix = next(each for each in SOURCES if name.startswith(each))
        text, short = SOURCES[prefix].read_text(), name.removesuffix("_total")
        assert f'"{short.removeprefix(prefix)}"' in text or f'"{short}"' in text, f"nothing measures {name}"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule["alert"]))
def test_an_alert_says_how_bad_what_and_what_to_do(rule: dict[str, dict[str, str]]):
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert set(rule["annotations"]) == {"summary", "description"}


FIRES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "PlimsollGaps": ({"plimsoll_broker_gaps_detected_total": "0x5 3x20"}, {}),
    "PlimsollLawBroken": ({'plimsoll_session_law_violations_total{law="I5"}': "0x5 1x20"}, {"law": "I5"}),
    "PlimsollSessionOverdue": ({"plimsoll_sessions_overdue": "0x5 2x20"}, {}),
    "PlimsollMoveNotClean": (
        {'plimsoll_session_deliveries_total{kind="lost"}': "0x5 1x20"}, {"kind": "lost"},
    ),
    "PlimsollSessionDeliveryFaults": ({"plimsoll_sessions_with_delivery_faults_total": "0x5 1x20"}, {}),
    "PlimsollBrokerOverloaded": ({"plimsoll_broker_input_utilization": "0.5x2 1.2x20"}, {}),
    "PlimsollBrokerMemory": ({"plimsoll_broker_memory_ratio": "0.85x20"}, {}),
    "PlimsollStrangers": (
        {'plimsoll_broker_auth_failures_total{mechanism="CURVE"}': "0+3x20"}, {"mechanism": "CURVE"},
    ),
    "PlimsollWatchesDeaf": ({"plimsoll_watch_silence_seconds": "100x20"}, {}),
    "PlimsollReconcileFailing": (
        {'plimsoll_reconcile_total{controller="fleet", result="error"}': "0+0.3x20",
         'plimsoll_reconcile_total{controller="fleet", result="refused"}': "0+0.4x20",
         'plimsoll_reconcile_total{controller="fleet", result="fault"}': "0+0.3x20"},
        {"controller": "fleet"},
    ),
    "PlimsollSnapshotRefused": (
        {'plimsoll_telemetry_snapshot_usable{source="spark"}': "1x2 0x20",
         'plimsoll_telemetry_snapshots_refused_total{fault="Stale"}': "0x2 0+4x20"},
        {"source": "spark"},
    ),
    "PlimsollTelemetryBlind": (
        {'plimsoll_telemetry_brokers_seen_ratio{source="fold"}': "0.9x20"}, {"source": "fold"},
    ),
    "PlimsollTelemetryLost": ({"plimsoll_telemetry_rows_dropped_total": "0x5 40x20"}, {}),
    "PlimsollTelemetryNotWritten": ({"plimsoll_telemetry_write_failures_total": "0x5 1x20"}, {}),
    "PlimsollTelemetryRefused": (
        {'plimsoll_telemetry_rows_invalid_total{reason="schema"}': "0+5x20"}, {"reason": "schema"},
    ),
}  # fmt: skip
"""For each alert, values once a minute by which it fires after ten, and its labels beside those of the pod."""

CALM = {
    "plimsoll_broker_gaps_detected_total": "7x20",
    'plimsoll_session_law_violations_total{law="I5"}': "0x20",
    "plimsoll_sessions_overdue": "0x20",
    'plimsoll_session_deliveries_total{kind="lost"}': "0x20",
    'plimsoll_session_deliveries_total{kind="suppressed"}': "0+3x20",
    "plimsoll_sessions_with_delivery_faults_total": "0x20",
    "plimsoll_broker_input_utilization": "0.9x20",
    "plimsoll_broker_output_utilization": "1.2x3 0.5x20",
    "plimsoll_broker_memory_ratio": "0.7x20",
    'plimsoll_broker_auth_failures_total{mechanism="CURVE"}': "0+0.5x20",
    "plimsoll_watch_silence_seconds": "30x20",
    'plimsoll_reconcile_total{controller="fleet", result="success"}': "0+9x20",
    'plimsoll_telemetry_snapshot_usable{source="spark"}': "0x20",
    'plimsoll_telemetry_snapshots_refused_total{fault="Missing"}': "0+4x20",
    'plimsoll_telemetry_brokers_seen_ratio{source="fold"}': "1x20",
    "plimsoll_telemetry_rows_dropped_total": "0x20",
    "plimsoll_telemetry_write_failures_total": "0x20",
    'plimsoll_telemetry_rows_invalid_total{reason="schema"}': "3x20",
}
"""A healthy fleet, without Spark: nothing fires."""

POD = {"namespace": "ships", "pod": "p-0"}


def placed(series: str) -> str:
    """A series with the labels of its pod."""
    name, _, labels = series.partition("{")
    return f'{name}{{namespace="ships", pod="p-0"{", " + labels if labels else "}"}'


def expected(alert: str, more: dict[str, str]) -> dict[str, object]:
    """An alert as it fires, with its labels in its text."""
    rule = next(rule for rule in RULES if rule["alert"] == alert)
    labels = {**POD, **more}
    told = {
        key: re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda found: labels[found[1]], text)
        for key, text in rule["annotations"].items()
    }
    return {"exp_labels": {**labels, **rule["labels"]}, "exp_annotations": told}


def cases() -> dict[str, object]:
    """The test file for promtool."""
    firing = [
        (series, [{"alertname": alert, "eval_time": "10m", "exp_alerts": [expected(alert, more)]}])
        for alert, (series, more) in FIRES.items()
    ]
    silent = [{"alertname": alert, "eval_time": "15m", "exp_alerts": []} for alert in FIRES]
    return {
        "rule_files": [str(ALERTS)],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": placed(name), "values": values} for name, values in series.items()],
                "alert_rule_test": tried,
            }
            for series, tried in [*firing, (CALM, silent)]
        ],
    }


def test_every_alert_is_tried():
    assert list(FIRES) == [rule["alert"] for rule in RULES]


@pytest.fixture
def promtool() -> str:
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("promtool is not on PATH: the alert rules are not checked by it")
    return found


def test_promtool_reads_them(promtool: str):
    done = subprocess.run([promtool, "check", "rules", str(ALERTS)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_fires_when_it_should_and_not_otherwise(promtool: str, tmp_path: Path):
    file = tmp_path / "cases.yaml"
    file.write_text(yaml.safe_dump(cases()))
    done = subprocess.run([promtool, "test", "rules", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
