"""A prediction beside what was measured: which stretch of a run, and which reports and deliveries are of it."""

from __future__ import annotations

import pytest

from plimsoll.demo.analysis.delays import DeliveryDelays
from plimsoll.demo.analysis.load_series import LoadSeries
from plimsoll.demo.analysis.prediction import prediction, stretch_of
from plimsoll.demo.options import BALANCING_SCENARIO, PLACEMENT_SCENARIO
from plimsoll.demo.workload import DemoScenario

ROW = {
    "type": "Padres", "delay_p50_seconds": 0.002, "delay_p99_seconds": 0.005,
    "first_minute": {"b1": {"input_utilization": 0.5, "output_utilization": 0.2, "output_rate": 100.0}},
}  # fmt: skip


def test_a_stretch_has_no_newcomers_and_no_change_of_rates():
    stretch = stretch_of(BALANCING_SCENARIO)
    assert stretch is not None
    assert stretch.begin > BALANCING_SCENARIO.join_to * BALANCING_SCENARIO.seconds
    assert stretch.end < BALANCING_SCENARIO.step_seconds
    assert stretch.end - stretch.begin == pytest.approx(21.0)
    placed = stretch_of(PLACEMENT_SCENARIO)
    assert placed is not None
    assert placed.end == 59.5


def test_a_short_run_has_none():
    assert stretch_of(DemoScenario(seconds=30.0)) is None
    assert stretch_of(DemoScenario(seconds=60.0, join_to=0.9)) is None


def test_reports_and_deliveries_of_the_stretch_count():
    series, delays = LoadSeries(), DeliveryDelays(0.0)
    for seq, value in enumerate((0.9, 0.8, 0.4, 0.6, 0.1), 1):  # at 1 to 5 s
        report = {"broker": "b1", "epoch": 1, "seq": seq, "state": "OK", "input_utilization": value}
        series.take({**report, "output_rate": 100 * value}, seq)
    for at, delay in ((0.5, 9.0), (1.2, 0.004), (2.5, 0.006), (3.1, 0.008), (4.5, 9.0)):
        delays.take("b1", at, delay)
    found = prediction(ROW, series, delays, ["b1", "b2"], 1.0, 4.0)
    # the report at 2 s is in part about the time before 1 s
    assert found["edges"]["b1"]["input_utilization"] == {"predicted": 0.5, "measured": pytest.approx(0.5)}
    assert found["edges"]["b1"]["output_rate"]["measured"] == pytest.approx(50.0)
    assert found["edges"]["b2"]["output_rate"] == {"predicted": None, "measured": None}
    assert found["delay_seconds"] == {
        "p50": {"predicted": 0.002, "measured": 0.006}, "p99": {"predicted": 0.005, "measured": 0.008},
    }  # fmt: skip
    assert (found["begin_seconds"], found["end_seconds"], found["policy"]) == (1.0, 4.0, "Padres")
