"""Alerts use existing metrics, with labels that these have, and promtool can read them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml
from tests.helm.exported import selectors, unknown
from tests.helm.prometheus import promtool_program
from tests.helm.test_dashboards import QUERIES

ROOT = Path(__file__).resolve().parents[2]
ALERTS = ROOT / "helm" / "plimsoll" / "files" / "alerts.yaml"
RULES = [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]
PAGE = ROOT / "docs" / "alerts.md"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule["alert"]))
def test_an_alert_asks_for_what_is_measured(rule: dict[str, str]):
    assert list(selectors(rule["expr"]))
    assert unknown(rule["expr"]) == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule["alert"]))
def test_an_alert_says_how_bad_what_and_what_to_do(rule: dict[str, dict[str, str]]):
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert set(rule["annotations"]) == {"summary", "description"}


def test_the_page_says_of_each_what_to_do():
    headings = re.findall(r"^### (Plimsoll\w+)$", PAGE.read_text(), re.MULTILINE)
    assert headings == [rule["alert"] for rule in RULES]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule["alert"]))
def test_an_alert_is_counted_on_one_dashboard(rule: dict[str, str]):
    counted = [
        title
        for title, expression in QUERIES.items()
        for pattern in re.findall(r'alertname=~"([^"]+)"', expression)
        if re.fullmatch(pattern, rule["alert"])
    ]
    assert len(counted) == 1, counted


FIRES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "PlimsollGaps": ({"plimsoll_broker_gaps_detected_total": "0x5 3x20"}, {}),
    "PlimsollLogOvertaken": ({"plimsoll_broker_gaps_sent_total": "0x5 1x20"}, {}),
    "PlimsollSlowSubscribers": (
        {'plimsoll_broker_messages_dropped_total{reason="slow-subscriber"}': "0 1+9x30"}, {"reason": "slow-subscriber"},
    ),
    "PlimsollLawBroken": ({'plimsoll_session_law_violations_total{law="I5"}': "0x5 1x20"}, {"law": "I5"}),
    "PlimsollSessionOverdue": ({"plimsoll_sessions_overdue": "0x5 2x20"}, {}),
    "PlimsollSessionsFailing": (
        {'plimsoll_sessions_ended_total{result="Failed", reason="TimedOut"}': "0+1x20",
         'plimsoll_sessions_ended_total{result="Failed", reason="Refused"}': "0x20",
         'plimsoll_sessions_ended_total{result="Rejected", reason="NotFound"}': "0+9x20"},
        {"reason": "TimedOut", "pod": ""},
    ),
    "PlimsollForecastWrong": (
        {"plimsoll_session_prediction_error_ratio_sum": "0+0.5x20",
         "plimsoll_session_prediction_error_ratio_count": "0+2x20"}, {"pod": ""},
    ),
    "PlimsollMoveNotClean": (
        {'plimsoll_session_deliveries_total{kind="lost"}': "0x5 1x20"}, {"kind": "lost"},
    ),
    "PlimsollBrokerOverloaded": ({"plimsoll_broker_input_utilization": "0.5x2 1.2x20"}, {}),
    "PlimsollClusterOverloaded": (
        {"plimsoll_broker_input_utilization": "0.5x2 0.97x20", "plimsoll_broker_output_utilization": "0.1x20",
         'plimsoll_broker_info{role="edge", cluster="east", broker="edge-0"}': "1x20"},
        {"cluster": "east", "pod": ""},
    ),
    "PlimsollEdgeUnavailable": (
        {'plimsoll_broker_state{state="N/A"}': "1x30",
         'plimsoll_broker_info{role="edge", cluster="east", broker="edge-0"}': "1x30"},
        {"cluster": "east", "broker": "edge-0"},
    ),
    "PlimsollLogFull": ({"plimsoll_broker_log_disk_full": "0x2 1x20"}, {}),
    "PlimsollLogSlow": (
        {"plimsoll_broker_log_sync_seconds_total": "0+48x30", "plimsoll_broker_log_syncs_total": "0+60x30"}, {},
    ),
    "PlimsollHeadAlone": ({"plimsoll_broker_standby_in_sync": "1x2 0x20"}, {}),
    "PlimsollLogDamaged": ({"plimsoll_broker_log_damages_total": "0x2 1x20"}, {}),
    "PlimsollBundleTooLarge": (
        {'plimsoll_broker_bundle_messages_per_second{bundle="0x00000000_0x80000000", direction="out"}': "400x20",
         'plimsoll_broker_bundle_messages_per_second{bundle="0x80000000_0xffffffff", direction="out"}': "100x20",
         "plimsoll_broker_output_utilization": "0.5x2 0.99x20"},
        {"bundle": "0x00000000_0x80000000"},
    ),
    "PlimsollDeadlineInDanger": (
        {'plimsoll_broker_topic_time_left_seconds{topic="buoys"}': "0.6x2 0.05x20",
         'plimsoll_broker_topic_required_latency_seconds{topic="buoys"}': "1x22"},
        {"topic": "buoys"},
    ),
    "PlimsollDeadlineMissed": (
        {'plimsoll_broker_topic_late_deliveries_total{topic="*"}': "0x5 0+4x20"}, {"topic": "*"},
    ),
    "PlimsollBrokerNotReady": ({"plimsoll_broker_ready": "1x2 0x20"}, {}),
    "PlimsollBrokerDown": ({'up{plimsoll_dev_broker="edge-0"}': "1x2 0x20"}, {"plimsoll_dev_broker": "edge-0"}),
    "PlimsollBrokerLate": ({"plimsoll_broker_loop_lag_seconds": "0.1x2 1.5x20"}, {}),
    "PlimsollBrokerMemory": ({"plimsoll_broker_memory_ratio": "0.85x20"}, {}),
    "PlimsollStrangers": (
        {'plimsoll_broker_auth_failures_total{mechanism="CURVE"}': "0+3x20"}, {"mechanism": "CURVE"},
    ),
    "PlimsollKeysUnreadable": ({"plimsoll_broker_keys_fault": "0x2 1x20"}, {}),
    "PlimsollOperatorDown": ({"plimsoll_fleets": "1x2 stale"}, {"namespace": "", "pod": ""}),
    "PlimsollWatchesDeaf": ({"plimsoll_watch_silence_seconds": "100x20"}, {}),
    "PlimsollOperatorLate": ({"plimsoll_event_loop_lag_seconds": "0.1x2 6x20"}, {}),
    "PlimsollApiFailing": (
        {'plimsoll_api_requests_total{code="200"}': "0+8x30", 'plimsoll_api_requests_total{code="503"}': "0+2x30"},
        {"pod": ""},
    ),
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
    "PlimsollTelemetryLate": (
        {'plimsoll_telemetry_rows_total{outcome="late"}': "0+2x20",
         'plimsoll_telemetry_rows_total{outcome="counted"}': "0+9x20"}, {},
    ),
    "PlimsollTelemetryLost": ({"plimsoll_telemetry_rows_dropped_total": "0x5 40x20"}, {}),
    "PlimsollTelemetryNotWritten": ({"plimsoll_telemetry_write_failures_total": "0x5 1x20"}, {}),
    "PlimsollTelemetryRefused": (
        {'plimsoll_telemetry_rows_invalid_total{reason="schema"}': "0+5x20"}, {"reason": "schema"},
    ),
    "PlimsollDatasetPodDown": ({'up{plimsoll_dev_dataset_pod="r"}': "1x2 0x20"}, {"plimsoll_dev_dataset_pod": "r"}),
    "PlimsollFeedGaps": ({'plimsoll_feed_gaps_total{feed="f"}': "0x5 1x20"}, {"feed": "f"}),
    "PlimsollFeedDeadLetters": (
        {'plimsoll_feed_publications_total{feed="f", outcome="recorded"}': "0+98x20",
         'plimsoll_feed_publications_total{feed="f", outcome="dead_letter"}': "0+2x20"}, {"feed": "f"},
    ),
    "PlimsollFeedBehind": ({'plimsoll_feed_lag_seconds{feed="f"}': "0.1x2 40x20"}, {"feed": "f"}),
    "PlimsollChannelStopped": ({'plimsoll_channel_running{channel="c"}': "1x2 0x20"}, {"channel": "c"}),
    "PlimsollChannelFailing": (
        {'plimsoll_channel_batch_failures_total{channel="c"}': "0x5 1x20"}, {"channel": "c"},
    ),
    "PlimsollChannelLate": (
        {'plimsoll_channel_lateness_seconds{channel="c"}': "0.1x2 2x20",
         'plimsoll_channel_period_seconds{channel="c"}': "10x22"}, {"channel": "c"},
    ),
    "PlimsollChannelRowsGone": (
        {'plimsoll_channel_rows_total{channel="c", outcome="late"}': "0x5 3x20"},
        {"channel": "c", "outcome": "late"},
    ),
    "PlimsollChannelResultsLost": (
        {'plimsoll_channel_results_total{channel="c", outcome="unknown"}': "0x5 3x20"}, {"channel": "c"},
    ),
}  # fmt: skip
"""For each alert, values once a minute by which it fires at its `eval_time`, and its labels beside those of the pod.

An empty label is one that the alert does not have.
"""

CALM = {
    "plimsoll_broker_gaps_sent_total": "7x40",
    'plimsoll_broker_messages_dropped_total{reason="slow-subscriber"}': "0x5 8x40",
    'plimsoll_sessions_ended_total{result="RolledBack", reason="Refused"}': "0x5 2x40",
    'plimsoll_sessions_ended_total{result="Rejected", reason="NotFound"}': "0+9x40",
    "plimsoll_session_prediction_error_ratio_sum": "0+0.1x40",
    "plimsoll_session_prediction_error_ratio_count": "0+2x40",
    'plimsoll_broker_info{role="edge", cluster="east", broker="edge-0"}': "1x40",
    'plimsoll_broker_state{state="N/A"}': "1x13 0x2 1x13 0x9",
    "plimsoll_broker_ready": "0x3 1x40",
    'up{plimsoll_dev_broker="edge-0"}': "1x5 0 1x40",
    "plimsoll_broker_loop_lag_seconds": "0.2x40",
    "plimsoll_broker_keys_fault": "0x40",
    "plimsoll_fleets": "1x9 _x3 1x40",
    "plimsoll_event_loop_lag_seconds": "6x3 0.1x40",
    'plimsoll_api_requests_total{code="200"}': "0+9x40",
    'plimsoll_api_requests_total{code="409"}': "0+9x40",
    'plimsoll_telemetry_rows_total{outcome="late"}': "0+1x40",
    'plimsoll_telemetry_rows_total{outcome="counted"}': "0+19x40",
    "plimsoll_broker_gaps_detected_total": "7x20",
    'plimsoll_session_law_violations_total{law="I5"}': "0x20",
    "plimsoll_sessions_overdue": "0x20",
    'plimsoll_session_deliveries_total{kind="lost"}': "0x20",
    'plimsoll_session_deliveries_total{kind="suppressed"}': "0+3x20",
    "plimsoll_sessions_with_delivery_faults_total": "0x20",
    "plimsoll_broker_input_utilization": "0.93x20",  # below the load line of its policy
    'plimsoll_broker_load_threshold_ratio{resource="input", bound="lower"}': "0.94x40",
    'plimsoll_broker_load_threshold_ratio{resource="output", bound="lower"}': "0.99x40",
    'plimsoll_broker_load_threshold_ratio{resource="cpu", bound="lower"}': "0.5x40",
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
    'up{plimsoll_dev_dataset_pod="r"}': "1x5 0x3 1x40",
    'plimsoll_feed_gaps_total{feed="f"}': "2x20",
    'plimsoll_feed_publications_total{feed="f", outcome="recorded"}': "0+999x20",
    'plimsoll_feed_publications_total{feed="f", outcome="dead_letter"}': "0+1x20",
    'plimsoll_feed_lag_seconds{feed="f"}': "60x3 0.1x20",
    'plimsoll_channel_running{channel="c"}': "0x3 1x20",
    'plimsoll_channel_batch_failures_total{channel="c"}': "1x20",
    'plimsoll_channel_lateness_seconds{channel="c"}': "0.5x20",
    'plimsoll_channel_period_seconds{channel="c"}': "10x20",
    'plimsoll_channel_lateness_seconds{channel="continuous"}': "0x20",
    'plimsoll_channel_period_seconds{channel="continuous"}': "0x20",
    'plimsoll_channel_rows_total{channel="c", outcome="late"}': "4x20",
    'plimsoll_channel_results_total{channel="c", outcome="accepted"}': "0+9x20",
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
    labels = {name: value for name, value in {**POD, **more}.items() if value}
    told = {
        key: re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda found: labels[found[1]], text)
        for key, text in rule["annotations"].items()
    }
    return {"exp_labels": {**labels, **rule["labels"]}, "exp_annotations": told}


def eval_time(alert: str) -> str:
    """When an alert fires, with values of `FIRES`."""
    rule = next(rule for rule in RULES if rule["alert"] == alert)
    return "20m" if rule.get("for") in ("10m", "15m") else "10m"


def cases() -> dict[str, object]:
    """The test file for promtool."""
    firing = [
        (series, [{"alertname": alert, "eval_time": eval_time(alert), "exp_alerts": [expected(alert, more)]}])
        for alert, (series, more) in FIRES.items()
    ]
    times = ("5m", "10m", "15m", "20m")
    silent = [{"alertname": alert, "eval_time": at, "exp_alerts": []} for alert in FIRES for at in times]
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
    return promtool_program()


def test_promtool_reads_them(promtool: str):
    done = subprocess.run([promtool, "check", "rules", str(ALERTS)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_fires_when_it_should_and_not_otherwise(promtool: str, tmp_path: Path):
    file = tmp_path / "cases.yaml"
    file.write_text(yaml.safe_dump(cases()))
    done = subprocess.run([promtool, "test", "rules", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
