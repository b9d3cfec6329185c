"""Subscribers that are away in the status of a cluster."""

from __future__ import annotations

from typing import Any

from plimsoll.mediator.away_status import away_status
from plimsoll.mediator.resource_status import ObservedBroker

AWAY = {
    "name": "s", "identity": "app", "away_seconds": 127.9, "lease_seconds": 3600.0, "behind": 7, "held_bytes": 900,
    "missed": 2, "subscriptions": 1,
}  # fmt: skip


def head(report: dict[str, Any]) -> ObservedBroker:
    return ObservedBroker("h", "head", "east", "p", "", "", "", report_age=1.0, report=report)


def test_those_that_are_away_by_name():
    first, second = away_status(head({"away": [AWAY, {**AWAY, "name": "a"}]}))["awaySubscribers"]
    assert first["name"] == "a"
    assert second == {
        "name": "s", "identity": "app", "awaySeconds": 120, "leaseSeconds": 3600, "behind": 7, "heldBytes": 900,
        "missed": 2, "subscriptions": 1,
    }  # fmt: skip


def test_what_a_head_of_another_version_says_is_passed_over():
    assert away_status(head({})) == {}
    assert away_status(head({"away": "none"})) == {}
    assert away_status(head({"away": [1]})) == {}
    assert away_status(head({"away": [{"behind": "x"}]}))["awaySubscribers"][0]["behind"] == 0
