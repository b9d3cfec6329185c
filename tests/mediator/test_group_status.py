"""Consumer groups in the status of a cluster."""

from __future__ import annotations

from typing import Any

from plimsoll.core.policies.consumer_groups.reported import report_field
from plimsoll.mediator.group_status import group_status
from plimsoll.mediator.resource_status import ObservedBroker


def head(report: dict[str, Any]) -> ObservedBroker:
    return ObservedBroker("h", "head", "east", "p", "", "", "", report_age=1.0, report=report)


CONSUMER = {
    "slices": 3, "lag": 9, "backlog": 7, "items_per_second": 12.4, "seconds_per_item": 0.00125, "cpu": 0.5,
    "memory": 0.251,
}  # fmt: skip
FOUND = {
    "slices": 4, "without_consumer": 1, "members": 1, "lag": 11, "backlog": 7, "busy_consumers": 0.62,
    "items_per_second": 12.4,
}  # fmt: skip


def test_groups_and_their_consumers_by_name() -> None:
    report = report_field({"z": FOUND, "readings": {**FOUND, "consumers": {"worker-1": CONSUMER}}})
    readings, z = group_status(head(report))["consumerGroups"]
    assert (z["name"], z["consumers"]) == ("z", [])
    assert {name: each for name, each in readings.items() if name != "consumers"} == {
        "name": "readings", "slices": 4, "slicesWithoutConsumer": 1, "members": 1, "lag": 11, "backlog": 7,
        "busyPercent": 62, "itemsPerSecond": 12,
    }  # fmt: skip
    assert readings["consumers"] == [
        {"name": "worker-1", "slices": 3, "lag": 9, "backlog": 7, "itemsPerSecond": 12, "microsecondsPerItem": 1250,
         "cpuPercent": 50, "memoryPercent": 25},
    ]  # fmt: skip


def test_what_a_head_of_another_version_says_is_passed_over() -> None:
    assert group_status(head({})) == {}
    assert group_status(head({"consumer_groups": [1]})) == {}
    assert group_status(head(report_field({"b": {"slices": "x"}})))["consumerGroups"][0]["slices"] == 0


def test_a_figure_that_cannot_be_is_shown_as_nothing() -> None:
    for bad in (1e308, -1.0, 10**30):
        (group,) = group_status(head(report_field({"g": {**FOUND, "busy_consumers": bad}})))["consumerGroups"]
        assert (group["busyPercent"], group["lag"]) == (0, 11)
