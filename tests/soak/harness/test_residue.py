"""Each kind of residue is reported as text."""

from typing import Any

import pytest

from plimsoll.soak.harness.residue import find_residue

HOMES = {"a": "e1", "b": "e2"}


class Broker:
    def __init__(self, role: str) -> None:
        self.role = role


class Harness:
    """One head with two edges that answer."""

    def __init__(self) -> None:
        self.brokers = {"head": Broker("head"), "e1": Broker("edge"), "e2": Broker("edge")}
        edge = {"slots": 0, "subscribers": {"live": 1, "dark": 0}}
        self.statuses: dict[str, dict[str, Any]] = {
            "head": {"sessions": 0, "guests": 0, "waiting_for": [], "subscribers": 2},
            "e1": edge,
            "e2": {**edge},
        }

    def edges(self, head: str | None = None) -> list[str]:
        return ["e1", "e2"]

    def head_of(self, edge: str) -> str:
        return "head"


class Listings:
    def __init__(self) -> None:
        self.complete = {"e1": ["a"], "e2": ["b"]}


def residue_of(harness: Harness, listings: Listings, homes: dict[str, str] | None = None) -> list[str]:
    return list(find_residue(harness, listings, HOMES if homes is None else homes))  # type: ignore[arg-type]  # stand-ins


def test_a_fleet_at_rest_has_no_residue() -> None:
    assert residue_of(Harness(), Listings()) == []


@pytest.mark.parametrize(
    ("broker", "change", "residue"),
    [
        ("head", {"sessions": 1}, "head has 1 open sessions"),
        ("head", {"guests": 2}, "head has 2 remote members"),
        ("head", {"waiting_for": ["e1"]}, "head waits for ['e1']"),
        ("head", {"subscribers": 3}, "head has 3 owner entries for 2 subscribers served there"),
        ("e1", {"slots": 1}, "e1 has 1 slots"),
        ("e1", {"subscribers": {"live": 1, "hold": 1}}, "e1 has 1 attachments that are hold"),
    ],
)
def test_state_left_in_a_broker_is_reported(broker: str, change: dict[str, Any], residue: str) -> None:
    harness = Harness()
    harness.statuses[broker] = {**harness.statuses[broker], **change}
    assert residue_of(harness, Listings()) == [residue]


def test_owners_are_compared_with_the_edges_that_applications_know() -> None:
    listings = Listings()
    listings.complete = {"e1": ["a", "b"], "e2": []}
    assert residue_of(Harness(), listings) == [
        "e1 owns b, whose application is at e2",
        "e2 does not own b, whose application is there",
    ]


def test_silent_brokers_and_subscribers_that_are_not_served_are_reported() -> None:
    harness, listings = Harness(), Listings()
    del harness.statuses["e2"], listings.complete["e2"]
    found = residue_of(harness, listings, {"a": "e1", "b": ""})
    assert found[0] == "b is not served"
    assert {"e2 does not answer", "head has not listed the subscribers of e2"} <= set(found)
