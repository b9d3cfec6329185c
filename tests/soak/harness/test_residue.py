"""What a settled fleet must not have, each told in words."""

from typing import Any

import pytest

from plimsoll.soak.harness.residue import find_residue

HOMES = {"a": "e1", "b": "e2"}


class Broker:
    def __init__(self, role: str) -> None:
        self.role = role


class Ground:
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


def left(ground: Ground, listings: Listings, homes: dict[str, str] | None = None) -> list[str]:
    return list(find_residue(ground, listings, HOMES if homes is None else homes))  # type: ignore[arg-type]  # stand-ins


def test_a_settled_fleet_has_nothing_left_over() -> None:
    assert left(Ground(), Listings()) == []


@pytest.mark.parametrize(
    ("broker", "change", "told"),
    [
        ("head", {"sessions": 1}, "head has 1 sessions"),
        ("head", {"guests": 2}, "head has 2 guests"),
        ("head", {"waiting_for": ["e1"]}, "head waits for ['e1']"),
        ("head", {"subscribers": 3}, "head has 3 owner entries, and 2 subscribers are served there"),
        ("e1", {"slots": 1}, "e1 has 1 slots"),
        ("e1", {"subscribers": {"live": 1, "hold": 1}}, "e1 has 1 records that are hold"),
    ],
)
def test_what_a_broker_still_has_is_told(broker: str, change: dict[str, Any], told: str) -> None:
    ground = Ground()
    ground.statuses[broker] = {**ground.statuses[broker], **change}
    assert left(ground, Listings()) == [told]


def test_owners_are_compared_with_what_applications_were_told() -> None:
    listings = Listings()
    listings.complete = {"e1": ["a", "b"], "e2": []}
    assert left(Ground(), listings) == [
        "e1 owns b, whose application is at e2",
        "e2 does not own b, whose application is there",
    ]


def test_whoever_does_not_answer_or_is_not_served_is_told() -> None:
    ground, listings = Ground(), Listings()
    del ground.statuses["e2"], listings.complete["e2"]
    told = left(ground, listings, {"a": "e1", "b": ""})
    assert told[0] == "b is not served"
    assert {"e2 does not answer", "head does not say whom e2 serves"} <= set(told)
