"""The figures of a run: percentiles, rates, and warnings where they are those of this process."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.cli.bench.measurement import BenchResult, BenchSettings
from plimsoll.cli.bench.report import delays_milliseconds, percentile, rates, report_lines, report_object, warnings

SETTINGS = BenchSettings(publishers=1, subscribers=2, rate=50, size=100, seconds=2.0)


def result(**given: Any) -> BenchResult:
    base: dict[str, Any] = {
        "accepted": 100, "not_accepted": 0, "delivered": 200, "expected": 200, "gaps": 0, "spent_seconds": 1.98,
        "late_seconds": 0.001, "cpu_share": 0.1, "delays_seconds": [number / 1000 for number in range(1, 201)],
    }  # fmt: skip
    return BenchResult(**{**base, **given})


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [([5.0], 50.0, 5.0), ([1.0, 2.0], 50.0, 1.0), ([1.0, 2.0, 3.0], 50.0, 2.0), ([1.0, 2.0, 3.0, 4.0], 99.9, 4.0)],
)
def test_a_percentile_is_the_nearest_rank(values: list[float], percent: float, expected: float):
    assert percentile(values, percent) == expected


def test_delays_and_rates():
    assert delays_milliseconds(result()) == {"p50": 100.0, "p90": 180.0, "p99": 198.0, "p99.9": 200.0, "max": 200.0}
    assert rates(SETTINGS, result()) == {"publications": 50.0, "deliveries": 100.0}
    assert rates(SETTINGS, result(spent_seconds=4.0)) == {"publications": 25.0, "deliveries": 50.0}
    assert delays_milliseconds(result(delivered=0, delays_seconds=[])) == {}


def test_a_run_that_was_not_the_fleet_s_says_so():
    assert list(warnings(SETTINGS, result())) == []
    assert "97% of a core" in next(warnings(SETTINGS, result(cpu_share=0.97)))
    assert "3.00 s late" in next(warnings(SETTINGS, result(late_seconds=3.0)))


def test_text_and_object_agree():
    found = result(delivered=199, delays_seconds=[0.1] * 199, cpu_share=0.9)
    text = "\n".join(report_lines(SETTINGS, found))
    assert "100 accepted, 0 not   50.0/s of 50/s" in text
    assert "199 of 200, 1 missing, 0 gaps" in text
    assert "p99 100.0 ms" in text
    whole = report_object(SETTINGS, found)
    assert (whole["deliveries"], whole["expectedDeliveries"], whole["deliveryDelayMilliseconds"]["p50"]) == (
        199,
        200,
        100.0,
    )
    assert len(whole["warnings"]) == 1
