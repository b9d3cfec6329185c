"""Baselines, trends and forecasts, and the errors of forecasts."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.sparkjobs import needs  # noqa: F401  # skips this module by name where Spark cannot run
from tests.sparkjobs.traces import FLEET
from tests.telemetry.rows import row, write_rows

from plimsoll.sparkjobs.jobs import history
from plimsoll.sparkjobs.jobs.compact import HOURLY_FOLDER
from plimsoll.sparkjobs.tables import JobTableError
from plimsoll.telemetry.schema import LOADS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MONDAY_HOURS = 24 * 4  # 1970-01-05 00:00
SERIES = "cluster STRING, metric STRING, hour BIGINT, value DOUBLE"


def daily(hour: int, trend: float = 0.001) -> float:
    return 0.5 + 0.3 * math.sin(2 * math.pi * hour / 24) + trend * hour


def series(days: int, noise: float = 0.0) -> list[tuple[str, str, int, float]]:
    draw = random.Random(1)
    return [
        ("c", "input_utilization", MONDAY_HOURS + hour, daily(hour) + draw.gauss(0, noise)) for hour in range(24 * days)
    ]


def test_a_daily_rhythm_with_a_trend_is_forecast_better_than_naively(spark: SparkSession):
    frame = spark.createDataFrame(series(8, noise=0.01), SERIES)
    (error,) = history.forecast_errors(frame).collect()
    assert error["n"] == 24
    assert error["error"] < 0.05 < 0.15 < error["naive_error"]
    lines, seasons = history.fit_trends(frame)
    (line,) = lines.collect()
    assert line["slope"] == pytest.approx(0.001, rel=0.1)
    ahead = {each["hour"]: each["forecast"] for each in history.forecast(lines, seasons).collect()}
    assert sorted(ahead) == list(range(MONDAY_HOURS + 192, MONDAY_HOURS + 216))
    for hour, value in ahead.items():
        assert value == pytest.approx(daily(hour - MONDAY_HOURS), abs=0.05)


def test_two_weeks_of_history_have_weekly_seasons(spark: SparkSession):
    weekly = [("c", "m", MONDAY_HOURS + hour, 1.0 if hour // 24 % 7 < 5 else 0.2) for hour in range(24 * 21)]
    frame = spark.createDataFrame(weekly, SERIES)
    lines, seasons = history.fit_trends(frame)
    ahead = history.forecast(lines, seasons, 24 * 7).orderBy("hour").collect()
    assert [round(each["forecast"], 1) for each in ahead[::24]] == [1.0] * 5 + [0.2] * 2
    usual = {(each["weekday"], each["hour"]): each for each in history.baselines(frame).collect()}
    assert len(usual) == 168
    assert (usual[1, 0]["mean"], usual[7, 5]["n"]) == (1.0, 3)
    assert usual[7, 5]["mean"] == pytest.approx(0.2)


@pytest.mark.slow
def test_the_model_of_a_fleet_is_written_from_compacted_hours(spark: SparkSession, tmp_path: Path):
    with pytest.raises(JobTableError, match="run `compact` first"):
        history.run(spark, tmp_path, FLEET, "2026-01-01")
    rows = []
    for hour in range(30):
        for edge, share in (("e1", 1.0), ("e2", 3.0)):
            at = (MONDAY_HOURS + hour) * 3_600_000_000 + 60_000_000
            rows.append(row(edge, hour + 1, at, input_utilization=share * (1 + hour % 24) / 100))
    rows.append(row("h", 1, rows[0]["at_us"], role="head", input_utilization=9.0))
    rows.append(rows[0])
    (tmp_path / HOURLY_FOLDER).mkdir(parents=True)
    write_rows(tmp_path / HOURLY_FOLDER / "a.parquet", LOADS, rows)
    history.run(spark, tmp_path, FLEET, "2026-01-01")
    found = json.loads((tmp_path / "model/v1/2026-01-01.json").read_text())
    one = found["clusters"]["c"]["input_utilization"]
    assert (one["hours"], len(one["forecast"])) == (30, 24)
    assert one["baselines"][0] == {
        "weekday": 1, "hour": 0, "n": 1, "mean": pytest.approx(0.02), "deviation": 0.0, "p50": pytest.approx(0.02),
        "p95": pytest.approx(0.02),
    }  # fmt: skip
    assert one["naiveError"] is not None
