"""Traffic made up from statuses: run in the model, it has the rates and deliveries that were measured."""

from __future__ import annotations

import pytest

from plimsoll.core.spec import SourceDocument, parse
from plimsoll.mediator.world.assumed_traffic import EdgeRates, assumed_traffic, measured_edge
from plimsoll.simulator.worlds.comparison import run
from plimsoll.simulator.worlds.world_spec import parse_world

FLEET = [
    {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "HardwareProfile", "metadata": {"name": "p"}, "spec": {}},
    {
        "apiVersion": "plimsoll.dev/v1alpha1", "kind": "BrokerCluster", "metadata": {"name": "c"},
        "spec": {
            "head": {"profile": "p"}, "edges": [{"name": "one", "profile": "p"}, {"name": "two", "profile": "p"}],
        },
    },
]  # fmt: skip


def test_the_model_runs_at_the_measured_rates():
    edges = [
        EdgeRates("one", "c", 20, 60, 40.0, 200.0, 90_000.0),
        EdgeRates("two", "c", 5, 5, 50.0, 250.0, 112_500.0),
    ]
    traffic = assumed_traffic({"c": 50.0}, edges)
    world = parse_world(
        {"duration": "61s", "publishers": traffic.publishers, "subscribers": traffic.subscribers},
    )
    row = run(parse([SourceDocument(each, "<test>") for each in FLEET]), world, "none", 1)
    for edge in edges:
        seen = row["first_minute"][edge.name]
        assert seen["input_rate"] == pytest.approx(edge.publications, rel=0.05), edge.name
        assert seen["output_rate"] == pytest.approx(edge.deliveries, rel=0.05), edge.name
    lists = [each["subscriptions"] for each in traffic.subscribers if each["edge"] == "one"]
    assert (len(lists), sum(map(len, lists))) == (20, 60)
    assert traffic.publishers[0]["payload"] == pytest.approx(450 - 150, abs=60)


def test_an_edge_without_subscribers_and_a_head_without_traffic():
    idle = EdgeRates("one", "c", 0, 0, 0.0, 0.0, 0.0)
    silent = EdgeRates("two", "c", 2, 2, 0.0, 0.0, 0.0)
    traffic = assumed_traffic({"c": 0.0}, [idle, silent])
    assert traffic.publishers == []
    assert [each["name"] for each in traffic.subscribers] == ["two-1", "two-2"]
    assert any("made up" in note for note in traffic.notes)


def test_an_edge_is_read_from_its_status(recorded):
    item = next(each for each in recorded if each["kind"] == "EdgeBroker" and each["metadata"]["name"] == "large")
    assert measured_edge(item) == EdgeRates("large", "quotes", 38, 38, 26.0, 617.0, 118330.0)
