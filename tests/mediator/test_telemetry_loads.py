"""Loads of clusters from telemetry: recent, complete, and with their source."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from plimsoll.mediator.telemetry_loads import RECENT_SECONDS, telemetry_loads
from plimsoll.telemetry.client.snapshot_choice import ChosenSnapshot
from plimsoll.telemetry.client.snapshot_poller import PollResult
from plimsoll.telemetry.metric_statistics import MetricStatistics
from plimsoll.telemetry.snapshot import ClusterSnapshot, LoadWindow, ReportCounts, TelemetrySnapshot

NOW = 1_000_000.0


def figures(mean: float) -> MetricStatistics:
    return MetricStatistics(n=4, mean=mean, stddev=0.0, max=mean, p50=mean, p95=mean, p99=mean, skew=1.0)


def cluster(mean: float, missing: tuple[str, ...] = (), seconds: str = "10") -> ClusterSnapshot:
    metrics = {"input_utilization": figures(mean), "input_queue_delay_seconds": figures(9.0)}
    window = LoadWindow(n=4, brokers=2, metrics=metrics, over=[], under=[])
    return ClusterSnapshot(seen=2, expected=2, missing=list(missing), states={}, windows={seconds: window})


def known(reason: str = "", at: float = NOW, **clusters: ClusterSnapshot) -> PollResult:
    snapshot = TelemetrySnapshot(
        source="fold" if reason else "spark", fleet="f", run_us=1, batch=1, window_end_us=int(at * 1e6),
        written_us=int(at * 1e6), windows_seconds=[10], seen_seconds=10, seen=2, expected=2, counts=ReportCounts(),
        clusters=clusters,
    )  # fmt: skip
    return PollResult(int(at * 1e6), ChosenSnapshot(snapshot, reason), 0)


def test_averages_are_those_of_the_short_window_with_whose_they_are():
    found = telemetry_loads(known(east=cluster(0.5), west=cluster(0.25)), NOW)
    assert found is not None
    assert found.source == "Spark"
    assert found.clusters == {"east": {"input_utilization": 0.5}, "west": {"input_utilization": 0.25}}
    fallen_back = telemetry_loads(known("Stale: it is old", east=cluster(0.5)), NOW)
    assert fallen_back is not None
    assert fallen_back.source == "the fold"


@pytest.mark.parametrize(
    "said",
    [None, PollResult(int(NOW * 1e6), None, 2), known(at=NOW - RECENT_SECONDS - 1, east=cluster(0.5)), known(),
     known(east=cluster(0.5, missing=("e-1",)))],
)  # fmt: skip
def test_without_anything_recent_and_complete_heads_own_averages_count(said: Any):
    assert telemetry_loads(said, NOW) is None


@pytest.mark.parametrize("seconds", ["5", "12", "75"])
def test_the_fold_counts_however_long_its_one_window_is(seconds: str):
    """It is two and a half intervals of reports long."""
    found = telemetry_loads(known("Missing: Spark has written none", east=cluster(0.5, seconds=seconds)), NOW)
    assert found is not None
    assert found.clusters == {"east": {"input_utilization": 0.5}}


def test_of_several_windows_the_shortest_counts():
    short, long = cluster(0.5), cluster(0.25, seconds="60")
    both = msgspec.structs.replace(short, windows={**long.windows, **short.windows})
    found = telemetry_loads(known(east=both), NOW)
    assert found is not None
    assert found.clusters == {"east": {"input_utilization": 0.5}}
    empty = msgspec.structs.replace(short, windows={})
    assert telemetry_loads(known(east=empty), NOW) is None


def test_a_cluster_with_an_edge_that_is_missing_is_left_out():
    found = telemetry_loads(known(east=cluster(0.5), west=cluster(0.25, missing=("w",))), NOW)
    assert found is not None
    assert set(found.clusters) == {"east"}
