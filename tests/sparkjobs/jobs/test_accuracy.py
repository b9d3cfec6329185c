"""Forecasts of sessions compared with measurement."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.sparkjobs import needs  # noqa: F401  # skips this module by name where Spark cannot run
from tests.telemetry.rows import write_rows

from plimsoll.sparkjobs.jobs import accuracy
from plimsoll.telemetry.schema import OUTCOMES, SESSIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def session(uid: str, edges: list[dict[str, Any]], **other: Any) -> dict[str, Any]:
    found: dict[str, Any] = {field.name: None for field in OUTCOMES.fields}
    text = {field.name: "" for field in OUTCOMES.fields if field.type == "string"}
    numbers = {field.name: 0 for field in OUTCOMES.fields if field.type == "int64" and not field.nullable}
    about = {
        "schema": 1, "uid": uid, "fleet": "f", "mode": "Execute", "phase": "Succeeded", "metric": "input",
        "estimator": "Press", "received_us": 5, "edges": edges,
    }  # fmt: skip
    return found | text | numbers | about | other


def edge(predicted: float, measured: float | None, **other: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "broker": "e", "utilization_before": 0.9, "utilization_predicted": predicted, "utilization_measured": measured,
    }  # fmt: skip
    rest = ("input_predicted", "input_measured", "output_predicted", "output_measured", "match_predicted_seconds",
            "match_measured_seconds")  # fmt: skip
    return {**found, **dict.fromkeys(rest), **other}


@pytest.mark.sweep
def test_errors_are_grouped_by_metric_and_estimator(spark: SparkSession, tmp_path: Path):
    rows = [
        session("a", [edge(0.5, 0.4), edge(0.2, 0.25)], drain_predicted_seconds=2.0, drain_measured_seconds=3.0),
        session("a", [edge(0.5, 0.9)], received_us=4, collector="c9"),  # an older row of the same session
        session("b", [edge(0.3, 0.3, match_predicted_seconds=2e-5, match_measured_seconds=1e-5)], estimator="Ring"),
        session("c", [edge(0.3, 0.001)], estimator="Ring"),  # close to 0: no accuracy
        session("d", [edge(0.9, None)]),
        session("e", [edge(0.1, 0.9)], phase="Failed"),
        session("f", [edge(0.1, 0.9)], mode="DryRun"),
        session("g", [edge(0.1, 0.9)], fleet="other"),
    ]
    (tmp_path / SESSIONS).mkdir(parents=True)
    write_rows(tmp_path / SESSIONS / "a.parquet", OUTCOMES, rows)
    accuracy.run(spark, tmp_path, "f", tmp_path / "accuracy.json")
    rows_of_table = json.loads((tmp_path / "accuracy.json").read_text())["rows"]
    found = {(row["estimator"], row["quantity"]): row for row in rows_of_table}
    assert set(found) == {
        ("Press", "utilization"), ("Press", "drainSeconds"), ("Ring", "utilization"), ("Ring", "matchSeconds")
    }  # fmt: skip
    press = found["Press", "utilization"]
    assert (press["sessions"], press["n"], press["metric"]) == (1, 2, "input")
    assert press["error"] == pytest.approx(0.075)
    assert press["bias"] == pytest.approx(0.025)
    assert press["accuracy"] == pytest.approx((0.75 + 0.8) / 2)
    ring = found["Ring", "utilization"]
    assert (ring["n"], ring["accuracy"]) == (2, pytest.approx(1.0))
    assert found["Ring", "matchSeconds"]["accuracy"] == pytest.approx(0.0)
    assert found["Press", "drainSeconds"]["error"] == pytest.approx(1.0)
