"""Bundles in the status of a cluster."""

from __future__ import annotations

from typing import Any

from plimsoll.core.config import Role
from plimsoll.core.policies.model.bundle_load import BundleLoad, report_fields
from plimsoll.core.policies.model.hash_ranges import Partition
from plimsoll.mediator.bundle_status import bundle_status
from plimsoll.mediator.resource_status import ObservedBroker

LOW, HIGH = Partition.of_count(2).ranges


def broker(name: str, role: Role, report: dict[str, Any]) -> ObservedBroker:
    return ObservedBroker(name, role, "east", "p", "", "", "", report_age=1.0, report=report)


def test_each_bundle_has_its_edge_and_what_all_edges_measure_of_it():
    head = broker("h", "head", {"bundle_owners": {LOW.name: "a", "of a later version": "b"}})
    edges = [
        broker("a", "edge", report_fields([BundleLoad(LOW, 2, 5, 9, 10.4, 50.0, 1e3, 5e3)])),
        broker("b", "edge", report_fields([BundleLoad(LOW, 1, 1, 0, 10.0, 2.0, 1e3, 2e2), BundleLoad(HIGH, 1, 1)])),
        broker("c", "edge", {}),
    ]
    assert bundle_status(head, edges) == {
        "bundles": [
            {"name": LOW.name, "edge": "a", "topics": 2, "sessions": 6, "publicationsPerSecond": 10,
             "deliveriesPerSecond": 52, "bytesPerSecond": 7200},
            {"name": HIGH.name, "topics": 1, "sessions": 1, "publicationsPerSecond": 0, "deliveriesPerSecond": 0,
             "bytesPerSecond": 0},
        ]
    }  # fmt: skip


def test_without_bundles_the_status_says_nothing_of_them():
    assert bundle_status(broker("h", "head", {}), [broker("a", "edge", {})]) == {}


def test_bundles_that_no_subscriber_has_asked_for_are_listed_too():
    memory = {"policy": "Pulsar", "memory": {"boundaries": list(Partition.of_count(2).boundaries)}}
    head = broker("h", "head", {"bundle_owners": {LOW.name: "a"}})
    names = [(row["name"], row.get("edge")) for row in bundle_status(head, [], memory)["bundles"]]
    assert names == [(LOW.name, "a"), (HIGH.name, None)]
    for unknown in (None, 3, {"memory": 4}, {"memory": {"boundaries": "x"}}):
        assert [row["name"] for row in bundle_status(head, [], unknown)["bundles"]] == [LOW.name]


def test_while_brokers_hear_of_a_split_the_ranges_are_those_of_the_store():
    partition = Partition.of_count(2).split(LOW, 0x40000000)
    memory = {"memory": {"boundaries": list(partition.boundaries)}}
    head = broker("h", "head", {"bundle_owners": {LOW.name: "a", HIGH.name: "b"}})
    edge = broker("a", "edge", report_fields([BundleLoad(partition.ranges[0], 1, 1), BundleLoad(LOW, 1, 1)]))
    rows = bundle_status(head, [edge], memory)["bundles"]
    assert [(row["name"], row["edge"], row["topics"]) for row in rows] == [
        (partition.ranges[0].name, "a", 1), (partition.ranges[1].name, "a", 0), (HIGH.name, "b", 0),
    ]  # fmt: skip
