"""Placement of BAD: nearest by coordinates, random with a seed, in turn."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from plimsoll.core.policies.bad.placers import NearestPlacer, RandomPlacer, RoundRobinPlacer
from plimsoll.core.policies.placement import PlacementTarget, PlacementUnit, Placer

PORTS = [PlacementTarget(name, 0.5 * number, 10 * number) for number, name in enumerate("abc")]
PLACED = [replace(port, location=at) for port, at in zip(PORTS, [(0.0, 0.0), (10.0, 0.0), (0.0, 10.0)], strict=True)]


def names(placer: Placer, count: int, ports: list[PlacementTarget] = PORTS) -> list[str]:
    found = [placer.place(PlacementUnit(number=number), ports) for number in range(count)]
    return [port.name for port in found if port is not None]


def test_nearest_goes_by_coordinates_and_not_by_load():
    def at(x: float, y: float) -> str:
        port = NearestPlacer().place(PlacementUnit(location=(x, y)), PLACED)
        assert port is not None
        return port.name

    assert [at(1, 1), at(9, 2), at(-3, 30), at(5, 0)] == ["a", "b", "c", "a"]


def test_nearest_goes_in_turn_where_no_location_is_known():
    assert names(NearestPlacer(), 4, PLACED) == ["a", "b", "c", "a"]
    port = NearestPlacer().place(PlacementUnit(location=(1.0, 1.0), number=2), PORTS)
    assert port is not None
    assert port.name == "c"


def test_nearest_leaves_out_edges_without_a_location():
    port = NearestPlacer().place(PlacementUnit(location=(9.0, 0.0)), [PORTS[1], PLACED[2]])
    assert port is not None
    assert port.name == "c"


def test_round_robin_goes_through_all_in_the_order_of_names():
    assert names(RoundRobinPlacer(), 5, PORTS[::-1]) == ["a", "b", "c", "a", "b"]


def test_random_depends_on_the_seed_and_takes_all_alike():
    assert names(RandomPlacer(7), 50) == names(RandomPlacer(7), 50, PORTS[::-1]) != names(RandomPlacer(8), 50)
    assert all(900 <= count <= 1100 for count in Counter(names(RandomPlacer(7), 3000)).values())


def test_without_edges_there_is_no_place():
    assert [placer.place(PlacementUnit(), []) for placer in (NearestPlacer(), RandomPlacer(), RoundRobinPlacer())] == [
        None, None, None,
    ]  # fmt: skip
