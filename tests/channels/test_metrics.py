"""The metrics of a driver: what comes in is what is used, late and invalid."""

from __future__ import annotations

from plimsoll.channels.config import ChannelFigures
from plimsoll.channels.metrics import channel_metrics

FIGURES = ChannelFigures(
    "ChannelRunning", "m", subscriptions=3, batch=4, batch_us=2_500_000, rows_in=12, rows_used=7, late_rows=4,
    invalid_rows=1, results=5, accepted_results=5, failures=2, delay_milliseconds=1500, late_milliseconds=40,
    periods_kept=8, periods_late=2, periods_missed=1,
)  # fmt: skip


def test_each_channel_has_its_values() -> None:
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in channel_metrics({"fires": FIGURES, "idle": ChannelFigures("QueryInvalid", "m")})
        for sample in family.samples
    }
    rows = sum(found["plimsoll_channel_rows_total", "fires", outcome] for outcome in ("used", "late", "invalid"))
    assert rows == found["plimsoll_channel_rows_in_total", "fires"] == 12
    assert found["plimsoll_channel_results_total", "fires", "accepted"] == 5
    assert found["plimsoll_channel_batch_failures_total", "fires"] == 2
    assert found["plimsoll_channel_delay_seconds", "fires"] == 1.5
    assert found["plimsoll_channel_lateness_seconds", "fires"] == 0.04
    kept = [found["plimsoll_channel_periods_total", "fires", outcome] for outcome in ("kept", "late", "missed")]
    assert kept == [8, 2, 1]
    assert (found["plimsoll_channel_running", "fires"], found["plimsoll_channel_running", "idle"]) == (1, 0)
