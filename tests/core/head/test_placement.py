"""Placement: the least loaded edge, bursts spread out, exclusions heeded, reports checked."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from plimsoll.core.head.placement import Placement, policy_of, reported_location
from plimsoll.core.policies import LeastLoadedPlacer
from plimsoll.core.policies.bad.placers import NearestPlacer, RandomPlacer, RoundRobinPlacer
from plimsoll.core.policies.placement import Placer
from plimsoll.core.policies.registry import placer_of_spec
from plimsoll.core.protocol.wire import WireError


def placer_of(policy: dict[str, Any] | None) -> Placer:
    return placer_of_spec(policy_of(policy))


def seats_of(**utilizations: float) -> Placement:
    seats = Placement()
    for name, utilization in utilizations.items():
        seats.add(name, f"tcp://{name}", "key")
        seats.update_load(report(name, utilization))
    return seats


def report(name: str, utilization: float, **more: Any) -> dict[str, Any]:
    return {
        "broker": name, "input_utilization": utilization, "output_utilization": 0.0, "subscribers": 0, "capacity": 1.0,
        **more,
    }  # fmt: skip


def placed(seats: Placement, count: int, **how: Any) -> Counter[str]:
    found: Counter[str] = Counter()
    for _ in range(count):
        seat = seats.place(how.get("exclude", ()), how.get("prefer", ""))
        found[seat.name if seat else ""] += 1
    return found


def test_the_least_loaded_edge_is_chosen_by_its_busier_side():
    seats = seats_of(a=0.5, b=0.2)
    assert placed(seats, 1) == {"b": 1}
    seats.update_load({**report("b", 0.2), "output_utilization": 0.9})
    assert placed(seats, 1) == {"a": 1}


def test_a_burst_between_two_reports_is_spread_by_capacity():
    seats = seats_of(a=0.0, b=0.0)
    seats.update_load(report("b", 0.0, capacity=3.0))
    counts = placed(seats, 400)
    assert counts["b"] / counts["a"] == pytest.approx(3.0, rel=0.05)


def test_a_report_takes_the_place_of_what_was_guessed():
    seats = seats_of(a=0.0, b=0.0)
    placed(seats, 100)
    seats.update_load(report("a", 0.0, subscribers=0))
    assert placed(seats, 40) == {"a": 40}


def test_exclusion_preference_and_cordon():
    seats = seats_of(a=0.0, b=0.9, c=0.9)
    assert placed(seats, 1, exclude=["a", "b"]) == {"c": 1}
    assert placed(seats, 1, exclude=["a", "b", "c"]) == {"a": 1}, "rather an excluded one than none"
    assert placed(seats, 1, prefer="b") == {"b": 1}
    assert placed(seats, 1, prefer="b", exclude=["b"]) == {"a": 1}
    seats.cordoned = frozenset({"a"})
    assert placed(seats, 1) != {"a": 1}
    seats.remove("b")
    seats.remove("c")
    assert placed(seats, 1) == {"": 1}


@pytest.mark.parametrize(
    "wrong",
    [
        {"input_utilization": "x"}, {"input_utilization": float("nan")}, {"output_utilization": float("inf")},
        {"subscribers": -1}, {"subscribers": None}, {"capacity": 0.0}, {"capacity": [1]},
    ],
)  # fmt: skip
def test_a_report_that_cannot_be_right_changes_nothing(wrong: dict[str, Any]):
    seats = seats_of(a=0.5, b=0.6)
    with pytest.raises(WireError, match="load report of b") as caught:
        seats.update_load({**report("b", 0.1), **wrong})
    assert caught.value.code == "report"
    assert placed(seats, 1) == {"a": 1}


def test_a_report_of_a_stranger_is_of_no_concern():
    seats = seats_of(a=0.5)
    seats.update_load({"broker": "zzz"})
    seats.update_load({})
    assert placed(seats, 1) == {"a": 1}


def test_a_policy_chooses_the_placer():
    assert isinstance(placer_of(None), LeastLoadedPlacer)
    assert isinstance(placer_of({"type": "Padres"}), LeastLoadedPlacer)
    assert placer_of({"type": "Bad"}) == RoundRobinPlacer()
    assert placer_of({"type": "Bad", "bad": {"placement": "Nearest"}}) == NearestPlacer()
    assert placer_of({"type": "Bad", "bad": {"placement": "Random", "seed": 7}}) == RandomPlacer(7)


def test_newcomers_go_in_turn_whatever_the_loads_are():
    seats = seats_of(a=0.9, b=0.0, c=0.0)
    seats.placer = RoundRobinPlacer()
    assert placed(seats, 9) == {"a": 3, "b": 3, "c": 3}


def test_one_that_goes_where_it_prefers_takes_no_turn_of_others():
    seats = seats_of(a=0.0, b=0.0)
    seats.placer = RoundRobinPlacer()
    assert placed(seats, 1) == {"a": 1}
    assert placed(seats, 3, prefer="a") == {"a": 3}
    assert placed(seats, 1) == {"b": 1}


def test_the_nearest_edge_is_taken_by_the_locations_in_reports():
    seats = seats_of(a=0.0, b=0.0)
    seats.placer = NearestPlacer()
    seats.update_load(report("a", 0.9, location_x=0.0, location_y=0.0))
    seats.update_load(report("b", 0.0, location_x=10.0, location_y=0.0))

    def at(location: tuple[float, float] | None) -> str:
        seat = seats.place((), "", location)
        return seat.name if seat else ""

    assert [at((1.0, 1.0)) for _ in range(3)] == ["a", "a", "a"]
    assert at((9.0, 0.0)) == "b"
    assert {at(None), at((float("nan"), 0.0))} == {"a", "b"}, "without a usable location they go in turn"


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"location_x": 1, "location_y": -2.5}, (1.0, -2.5)),
        ({"location_x": 1}, None),
        ({"location_x": "1", "location_y": 2}, None),
        ({"location_x": True, "location_y": 2}, None),
        ({"location_x": float("inf"), "location_y": 2}, None),
    ],
)
def test_a_location_in_a_report_has_two_finite_numbers(more: dict[str, Any], expected: tuple[float, float] | None):
    assert reported_location(report("a", 0.0, **more)) == expected
