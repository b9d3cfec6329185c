"""The health of a live job, and the times of its restarts."""

from __future__ import annotations

import msgspec
import pytest

from plimsoll.sparkjobs.launch.live_job_health import DEAD_SECONDS, START_SECONDS, assess_live_job, next_restart
from plimsoll.telemetry.snapshot import MAX_AGE_SECONDS, ReportCounts, TelemetrySnapshot

S = 1_000_000
NOW = 1_800_000_000 * S
ONE = TelemetrySnapshot(
    source="spark", fleet="f", run_us=5, batch=7, window_end_us=NOW - 10 * S, written_us=NOW, windows_seconds=[10],
    seen_seconds=60, seen=20, expected=20, counts=ReportCounts(), clusters={},
)  # fmt: skip


@pytest.mark.parametrize(
    ("age", "seen", "up", "state"),
    [
        (10, 20, 1000, "Fresh"),
        (10, 19, 1000, "Fresh"),
        (10, 18, 1000, "Incomplete"),
        (MAX_AGE_SECONDS, 20, 1000, "Fresh"),
        (MAX_AGE_SECONDS + 0.1, 20, 1000, "Late"),
        (DEAD_SECONDS + 0.1, 20, 1000, "Dead"),
        (DEAD_SECONDS + 0.1, 20, START_SECONDS, "Starting"),  # the snapshot is that of the previous driver
    ],
)
def test_health_is_the_age_and_coverage_of_the_snapshot(age: float, seen: int, up: float, state: str):
    snapshot = msgspec.structs.replace(ONE, window_end_us=NOW - round(age * S), seen=seen)
    found = assess_live_job(NOW, snapshot, NOW - round(up * S))
    assert found.state == state
    assert found.age_seconds == pytest.approx(age)
    assert found.wants_restart is (state == "Dead")
    assert f"{seen} of 20 brokers" in found.message


def test_a_driver_without_a_snapshot_is_dead_after_the_time_for_its_start():
    assert assess_live_job(NOW, None, NOW - round(START_SECONDS * S)).state == "Starting"
    late = assess_live_job(NOW, None, NOW - round((START_SECONDS + 1) * S))
    assert (late.state, late.age_seconds) == ("Dead", None)
    assert "never written" in late.message


def test_restarts_back_off_and_are_at_most_three_an_hour():
    assert next_restart([], 1000.0) == 1000.0
    assert next_restart([990.0], 1000.0) == 1020.0
    assert next_restart([900.0], 1000.0) == 1000.0
    assert next_restart([900.0, 990.0], 1000.0) == 1050.0
    assert next_restart([100.0, 900.0, 990.0], 1000.0) == 3700.0
    assert next_restart([100.0, 900.0, 990.0], 3701.0) == 3701.0
    assert next_restart([-3000.0], 1000.0) == 1000.0
