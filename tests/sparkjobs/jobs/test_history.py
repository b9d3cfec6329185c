"""Baselines, trends and forecasts, and the errors of forecasts."""

from __future__ import annotations

import json
import math
import random
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.sparkjobs import needs  # noqa: F401  # skips this module by name where Spark cannot run
from tests.sparkjobs.traces import FLEET
from tests.telemetry.rows import row, write_rows

from plimsoll.sparkjobs import telemetry_source
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


def test_the_hour_of_a_time_is_exact_to_the_microsecond(spark: SparkSession):
    hour = history.HOUR_US
    times = [at for number in (0, 1, 490_000, 2_500_000) for at in (number * hour, (number + 1) * hour - 1)]
    frame = spark.createDataFrame([(at,) for at in times], "at BIGINT")
    found = frame.select("at", history.hour_of("at").alias("hour")).collect()
    assert {each["at"]: each["hour"] for each in found} == {at: at // hour for at in times}


@pytest.mark.sweep
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


@pytest.mark.sweep
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


def mean_by_hour(rows: list[dict[str, Any]]) -> dict[int, float]:
    """Of the first copies of edges, in plain Python."""
    first: dict[tuple[str, int], dict[str, Any]] = {}
    for one in sorted(rows, key=lambda each: (each["received_us"], each["collector"])):
        first.setdefault((one["broker"], one["seq"]), one)
    values: dict[int, list[float]] = {}
    for one in first.values():
        if one["role"] == "edge":
            values.setdefault(one["at_us"] // history.HOUR_US, []).append(one["input_utilization"])
    return {hour: sum(of) / len(of) for hour, of in values.items()}


@pytest.mark.sweep
@pytest.mark.timeout(1200)
def test_only_hours_with_new_files_are_read_and_the_means_are_those_of_all_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """With copies of reports in one file, in two files of an hour, and on both sides of an hour's end."""
    draw = random.Random(4)
    hours: dict[int, list[dict[str, Any]]] = {}
    for number in range(40):
        at_us = MONDAY_HOURS * history.HOUR_US + number * history.HOUR_US // 8 + 1_000_000
        one = row(f"e{number % 3}", number + 1, at_us, input_utilization=round(draw.random(), 6))
        hours.setdefault(at_us // history.HOUR_US, []).append(one)
    third = hours[MONDAY_HOURS + 2]
    third.append(third[0] | {"collector": "c1", "received_us": third[0]["received_us"] + 5})
    third.append(third[1] | {"role": "head", "broker": "h"})
    # Received by two collectors around the end of an hour: the second one, in the next hour, does not count.
    edge_us = (MONDAY_HOURS + 3) * history.HOUR_US
    early = row("e9", 1, edge_us - 1_000_000, input_utilization=0.5, received_us=edge_us - 1_000_000)
    hours[MONDAY_HOURS + 2].append(early)
    hours[MONDAY_HOURS + 3].append(early | {"at_us": edge_us + 1, "received_us": edge_us + 1, "collector": "c1"})
    every = [one for rows in hours.values() for one in rows]

    read: list[list[str]] = []
    reads = telemetry_source.read_files

    def watched(spark: SparkSession, files: list[Path], schema: Any) -> Any:
        read.append(sorted(path.parent.name for path in files))
        return reads(spark, files, schema)

    monkeypatch.setattr(telemetry_source, "read_files", watched)

    def stored() -> dict[int, float]:
        found = history.update_hours(spark, tmp_path, FLEET).collect()
        return {one["hour"]: one["input_utilization"] for one in found}

    def put(hour: int, name: str, rows: list[dict[str, Any]]) -> None:
        folder = tmp_path / HOURLY_FOLDER / f"dt=1970-01-05/hr={hour - MONDAY_HOURS:02}"
        folder.mkdir(parents=True, exist_ok=True)
        write_rows(folder / f"{name}.parquet", LOADS, rows)

    last = MONDAY_HOURS + 4
    for hour, rows in hours.items():
        if hour != last:
            put(hour, "a", rows)
    known = [one for one in every if one["at_us"] // history.HOUR_US != last]
    assert stored() == pytest.approx(mean_by_hour(known))
    assert len(read[-1]) == 4
    put(last, "a", hours[last])
    assert stored() == pytest.approx(mean_by_hour(every))
    assert read[-1] == ["hr=02", "hr=03", "hr=04"]
    count = len(read)
    assert stored() == pytest.approx(mean_by_hour(every))
    assert len(read) == count, "nothing has changed, so nothing is read"
    late = third[0] | {"collector": "c2", "received_us": third[0]["received_us"] - 9, "input_utilization": 0.9}
    put(MONDAY_HOURS + 2, "b", [late])
    assert stored() == pytest.approx(mean_by_hour([*every, late]))
    shutil.rmtree(tmp_path / HOURLY_FOLDER / "dt=1970-01-05" / "hr=00")
    assert MONDAY_HOURS not in stored()
