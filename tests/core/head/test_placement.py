"""Placement: the least loaded edge, bursts spread out, exclusions heeded, reports checked."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from plimsoll.core.head.placement import Placement
from plimsoll.core.protocol.wire import WireError


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
