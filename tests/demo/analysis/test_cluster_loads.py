"""Loads of clusters over time, from load reports, and the faults at the end."""

from __future__ import annotations

import pytest

from plimsoll.demo.analysis.cluster_loads import ClusterLoadSeries
from plimsoll.demo.analysis.load_series import LoadSeries


def report(broker: str, seq: int, load: float, subscribers: int = 10) -> dict[str, object]:
    return {
        "broker": broker, "epoch": 1, "seq": seq, "state": "OK", "input_utilization": load,
        "output_utilization": load / 2, "match_delay_seconds": load / 100, "subscribers": subscribers,
    }  # fmt: skip


@pytest.fixture
def series() -> LoadSeries:
    found = LoadSeries(100.0)
    for seq, at in enumerate(range(101, 121), 1):
        for edge, load in (("a1", 0.6), ("a2", 0.4), ("b1", 0.3), ("b2", 0.1)):
            found.take(report(edge, seq, load), float(at))
    return found


EDGES = {"a": ["a1", "a2"], "b": ["b1", "b2"]}


def test_a_cluster_carries_what_its_edges_do_on_average(series: LoadSeries):
    clusters = ClusterLoadSeries(EDGES, series)
    assert clusters.at("a", "input_utilization", 0.5) is None, "not all have reported"
    assert clusters.at("a", "input_utilization", 1.0) == pytest.approx(0.5)
    assert clusters.last("b", "match_delay_seconds", 20.0) == pytest.approx(0.002)
    assert clusters.subscribers("a", 20.0) == 20
    assert len(clusters.over_time("a", "input_utilization", 20.0)) == 21
    assert clusters.plain(20.0)["b"]["last"]["output_utilization"] == pytest.approx(0.1)


def test_loads_fall_along_the_chain(series: LoadSeries):
    assert ClusterLoadSeries(EDGES, series).unmet_claims(20.0) == []
    [problem] = ClusterLoadSeries(dict(reversed(EDGES.items())), series).unmet_claims(20.0)
    assert problem == "a carries 50%, and b, which is nearer to where all came, 20%"


def test_an_edge_that_is_overloaded_in_the_end_is_told(series: LoadSeries):
    series.take(report("b2", 99, 0.97), 120.5)
    assert [each for each in ClusterLoadSeries(EDGES, series).unmet_claims(20.6) if "b2" in each] == [
        "b2 of b is overloaded in the end: input_utilization 97%"
    ]


def test_a_line_for_each_cluster(series: LoadSeries):
    [first, _] = ClusterLoadSeries(EDGES, series).lines(20.0)
    assert first == "a:    20 subscribers   input  50%   output  25%   5.00 ms"
