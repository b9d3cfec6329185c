"""Times of profiles that emulate nothing: calibrated ones first, then match delays, and nothing where there is none."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.core.spec.quantities import Duration
from plimsoll.mediator.world.measured_times import with_measured_times

LOADS = [
    {"publicationsPerSecond": 40, "deliveriesPerSecond": 800, "subscriptions": 50, "matchDelayMicroseconds": 300},
    {"publicationsPerSecond": 60, "deliveriesPerSecond": 600, "subscriptions": 30, "matchDelayMicroseconds": 100},
]
FIT = {"publicationNanoseconds": 30_000, "matchNanoseconds": 4_000}


def profile(calibrated: dict[str, int] | None = None, **spec: Any) -> dict[str, Any]:
    status = {} if calibrated is None else {"calibrated": calibrated}
    return {"kind": "HardwareProfile", "metadata": {"name": "p"}, "spec": {"cpu": "2", **spec}, "status": status}


def seconds(spec: Any) -> tuple[Any, Any]:
    found = spec["emulation"]
    return Duration.parse(found["base"]).seconds, Duration.parse(found["perSubscription"]).seconds


def test_an_emulation_of_its_own_stays():
    notes: list[str] = []
    own = profile(FIT, emulation={"base": "1ms"})
    assert with_measured_times(own, LOADS, [], notes) == own["spec"]
    assert notes == []


def test_calibrated_times_give_the_match_delay_that_they_were_fitted_to():
    notes: list[str] = []
    spec = with_measured_times(profile(FIT), LOADS, [], notes)
    base, each = seconds(spec)
    assert base == pytest.approx(30e-6)
    # 14 matches for a publication on average, at 40 subscriptions for a broker on average
    assert base + each * 40 == pytest.approx(30e-6 + 14 * 4e-6, rel=1e-3)
    assert spec["cpu"] == "2"
    assert notes[0].startswith("measured: p emulates nothing; its brokers are calibrated to 30.0 us")


def test_without_calibration_match_delays_count():
    notes: list[str] = []
    assert seconds(with_measured_times(profile(), LOADS, [], notes)) == (pytest.approx(200e-6), 0.0)
    assert [note.split(":")[0] for note in notes] == ["measured", "assumed"]


def test_calibration_without_traffic_says_nothing():
    notes: list[str] = []
    idle = [{"publicationsPerSecond": 0, "subscriptions": 3, "matchDelayMicroseconds": 0}]
    assert "emulation" not in with_measured_times(profile(FIT), idle, [], notes)
    assert notes == ["assumed: p emulates nothing and has measured nothing; a publication takes no time there"]


def test_heads_count_where_no_edge_has_the_profile():
    head = [{"publicationsPerSecond": 90, "matchDelayMicroseconds": 50}]
    assert seconds(with_measured_times(profile(), [], head, [])) == (pytest.approx(50e-6), 0.0)
