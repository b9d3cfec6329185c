"""LeastLongTermMessageRate: Pulsar 2023, section 1."""

from __future__ import annotations

from collections import Counter

from plimsoll.core.policies.placement import PlacementTarget, PlacementUnit
from plimsoll.core.policies.pulsar.placer import LeastLongTermMessageRate


def placed(ports: list[PlacementTarget], count: int, rate: float = 0.0) -> Counter[str]:
    """Bundles by the edge that takes them, one after another."""
    now, found = {port.name: port for port in ports}, Counter[str]()
    for number in range(count):
        unit = PlacementUnit(number=number, message_rate=rate)
        port = LeastLongTermMessageRate().place(unit, list(now.values()))
        assert port is not None
        now[port.name] = port.after(unit)
        found[port.name] += 1
    return found


def test_equal_edges_are_drawn_alike():
    found = placed([PlacementTarget(f"e-{number}") for number in range(4)], 1000)
    assert all(200 <= found[f"e-{number}"] <= 300 for number in range(4)), found


def test_an_overloaded_edge_takes_none():
    ports = [PlacementTarget(f"e-{number}") for number in range(3)] + [PlacementTarget("e-3", usage=0.86)]
    assert set(placed(ports, 200)) == {"e-0", "e-1", "e-2"}
    assert set(placed([PlacementTarget("a", usage=0.85), PlacementTarget("b", message_rate=1.0)], 9)) == {"a"}


def test_where_all_are_overloaded_one_is_drawn():
    assert set(placed([PlacementTarget("a", usage=0.9), PlacementTarget("b", usage=0.99)], 60)) == {"a", "b"}


def test_the_least_message_rate_wins_and_counts_what_it_was_given():
    ports = [PlacementTarget("a", message_rate=100.0), PlacementTarget("b", message_rate=40.0)]
    assert placed(ports, 3) == {"b": 3}
    assert placed(ports, 9, rate=20.0) == Counter(b=6, a=3)


def test_no_edges_take_none():
    assert LeastLongTermMessageRate().place(PlacementUnit(), []) is None
