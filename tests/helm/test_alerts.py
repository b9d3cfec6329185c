"""Alerts speak of metrics that are there, with labels that they have, and promtool can read them."""

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
    "plimsoll_broker_": ROOT / "broker-image/src/plimsoll/broker/metrics.py",
    "plimsoll_telemetry_": ROOT / "telemetry/src/plimsoll/telemetry/metrics.py",
    "plimsoll_session_": ROOT / "operator/src/plimsoll/operator/session_metrics.py",
    "plimsoll_": ROOT / "operator/src/plimsoll/operator/metrics.py",
}


def named(expression: str) -> set[str]:
    """Metrics that an expression asks for; a pattern of alternatives stands for each."""
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


def test_promtool_reads_them():
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not on PATH: the alert rules are not checked by it")
    done = subprocess.run([promtool, "check", "rules", str(ALERTS)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
