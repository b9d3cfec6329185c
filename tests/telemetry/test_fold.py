"""The fold follows the definitions, by brute force, in any order of the rows; and it is quick."""

from __future__ import annotations

import dataclasses
import math
import random
import statistics
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.telemetry.rows import NOW_US, row

from plimsoll.telemetry.fold import ReportPoint, SnapshotHeader, aggregate_cluster, fold_reports, merge_folds
from plimsoll.telemetry.metric_statistics import NANO
from plimsoll.telemetry.schema import METRICS
from plimsoll.telemetry.snapshot import WINDOWS_SECONDS, ReportCounts

BROKERS = ("e1", "e2", "e3", "h")
ROWS = st.lists(
    st.tuples(
        st.sampled_from(BROKERS), st.integers(0, 320_000), st.floats(0, 3), st.floats(0, 2),
        st.sampled_from(("OK", "BUSY", "N/A", "STABILIZING")),
    ),
    max_size=40,
)  # fmt: skip


def drawn(found: list[tuple[str, int, float, float, str]]) -> list[dict[str, Any]]:
    return [
        row(
            broker, seq, NOW_US - age * 1000, role="head" if broker == "h" else "edge", input_utilization=given_in,
            output_utilization=given_out, state=state,
        )
        for seq, (broker, age, given_in, given_out, state) in enumerate(found, 1)
    ]  # fmt: skip


@given(ROWS)
def test_aggregates_agree_with_brute_force(found: list[tuple[str, int, float, float, str]]):
    rows = drawn(found)
    cluster = aggregate_cluster(map(ReportPoint.of, rows), BROKERS, NOW_US, WINDOWS_SECONDS, 60)
    recent = {each["broker"] for each in rows if each["at_us"] > NOW_US - 60_000_000}
    assert (cluster.seen, cluster.expected) == (len(recent), 4)
    assert cluster.missing == sorted(set(BROKERS) - recent)
    for seconds in WINDOWS_SECONDS:
        inside = [r for r in rows if r["at_us"] > NOW_US - seconds * 1_000_000 and r["role"] == "edge"]
        window = cluster.window(seconds)
        assert window.n == len(inside)
        assert window.brokers == len({r["broker"] for r in inside})
        assert set(window.metrics) == (set(METRICS) if inside else set())
        for name in METRICS if inside else ():
            values = sorted(round(r[name] * NANO) / NANO for r in inside)
            got = window.metrics[name]
            assert got.n == len(values)
            assert got.mean == pytest.approx(statistics.fmean(values), abs=1e-9)
            assert got.stddev == pytest.approx(statistics.pstdev(values), abs=1e-7)
            assert got.max == values[-1]
            assert got.p95 == values[math.ceil(len(values) * 95 / 100) - 1]
            means = [
                statistics.fmean(round(r[name] * NANO) / NANO for r in inside if r["broker"] == broker)
                for broker in sorted({r["broker"] for r in inside})
            ]
            wanted = max(means) / statistics.fmean(means) if statistics.fmean(means) > 1e-12 else 1.0
            assert got.skew == pytest.approx(wanted, rel=1e-6)


@given(ROWS, st.integers(0, 10**6))
def test_the_order_of_rows_changes_nothing(found: list[tuple[str, int, float, float, str]], seed: int):
    points = [ReportPoint.of(each) for each in drawn(found)]
    mixed = random.Random(seed).sample(points, len(points))
    once, again = (aggregate_cluster(each, BROKERS, NOW_US, WINDOWS_SECONDS, 60) for each in (points, mixed))
    assert once == again


def test_a_window_ends_with_its_end_and_begins_behind_its_begin():
    ages = (-1, 0, 9_999_999, 10_000_000)
    points = [ReportPoint.of(row("e1", seq, NOW_US - age)) for seq, age in enumerate(ages, 1)]
    assert aggregate_cluster(points, ("e1",), NOW_US, (10,), 10).window(10).n == 2
    outside = [ReportPoint.of(row("e1", 1, NOW_US - 10_000_000)), ReportPoint.of(row("e2", 1, NOW_US + 1))]
    assert aggregate_cluster(outside, ("e1",), NOW_US, (10,), 10).states == {}


def test_the_state_of_an_edge_is_that_of_its_newest_row():
    points = [
        ReportPoint.of(row("e1", 9, NOW_US - 3, epoch=7, state="N/A")),
        ReportPoint.of(row("e1", 1, NOW_US - 5, epoch=8, state="OK")),
        ReportPoint.of(row("h", 1, NOW_US, role="head", state="N/A")),
    ]
    assert aggregate_cluster(points, (), NOW_US, (10,), 10).states == {"e1": "OK"}


def test_candidates_are_the_extremes_and_ties_go_by_name():
    loads = {"e1": 0.9, "e2": 0.1, "e3": 0.5, "e4": 0.9, "e5": 0.2, "e6": 0.2, "e7": 0.3}
    points = [
        ReportPoint.of(row(name, input_utilization=load, output_utilization=load / 2)) for name, load in loads.items()
    ]
    window = aggregate_cluster(points, loads, NOW_US, (10,), 10).window(10)
    assert [(each.broker, each.load) for each in window.over[:3]] == [("e1", 0.9), ("e4", 0.9), ("e3", 0.5)]
    assert [each.broker for each in window.under] == ["e2", "e5", "e6", "e7", "e3"]


def header() -> SnapshotHeader:
    return SnapshotHeader(source="fold", fleet="f", run_us=1, batch=1, window_end_us=NOW_US, written_us=NOW_US)


def test_a_silent_cluster_is_reported_with_no_broker_seen():
    points = {"here": [ReportPoint.of(row("e1"))], "new": [ReportPoint.of(row("x"))]}
    found = fold_reports(points, {"here": ["e1"], "gone": ["e2", "e3"]}, header(), ReportCounts())
    assert {name: (each.seen, each.expected) for name, each in found.clusters.items()} == {
        "here": (1, 1), "gone": (0, 2), "new": (0, 0),
    }  # fmt: skip
    assert found.clusters["gone"].missing == ["e2", "e3"]
    assert (found.seen, found.expected) == (1, 3)


def test_old_reports_are_not_in_the_fold():
    points = {
        "c": [ReportPoint.of(row("e1", at_us=NOW_US - 5_000_000)), ReportPoint.of(row("e2", at_us=NOW_US - 4_999_999))]
    }
    found = fold_reports(points, {"c": ["e1", "e2"]}, header(), ReportCounts())
    assert found.clusters["c"].missing == ["e1"]
    assert found.windows_seconds == [5]


def test_folds_of_several_collectors_make_one():
    one = fold_reports(
        {"a": [ReportPoint.of(row("e1"))]}, {"a": ["e1"]}, header(), ReportCounts(rows_in=3, counted=1, late=2)
    )
    two = fold_reports(
        {"b": [ReportPoint.of(row("e2"))]}, {"b": ["e2", "e3"]}, header(), ReportCounts(rows_in=1, invalid=1)
    )
    both = merge_folds([one, two], header())
    points = {"a": [ReportPoint.of(row("e1"))], "b": [ReportPoint.of(row("e2"))]}
    counts = ReportCounts(rows_in=4, counted=1, late=2, invalid=1)
    assert both == fold_reports(points, {"a": ["e1"], "b": ["e2", "e3"]}, header(), counts)


def test_of_a_cluster_that_changes_hands_the_fuller_fold_counts():
    silent = fold_reports({}, {"a": ["e1"]}, header(), ReportCounts())
    heard = fold_reports({"a": [ReportPoint.of(row("e1"))]}, {"a": ["e1"]}, header(), ReportCounts())
    assert merge_folds([silent, heard], header()) == merge_folds([heard, silent], header()) == heard


def test_folds_that_do_not_belong_together_are_refused():
    one = fold_reports({}, {"a": ["e1"]}, header(), ReportCounts())
    longer = fold_reports({}, {"b": ["e1"]}, header(), ReportCounts(), fresh_seconds=9)
    with pytest.raises(ValueError, match=r"windows of \[9\]"):
        merge_folds([one, longer], header())
    with pytest.raises(ValueError, match="of fleet f among those of g"):
        merge_folds([one], dataclasses.replace(header(), fleet="g"))
