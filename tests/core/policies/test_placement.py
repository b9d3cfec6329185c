"""Where units go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.policies import LeastLoadedPlacer, PlacementTarget, PlacementUnit, Placer
from plimsoll.core.policies.placement import LOAD_PER_SUBSCRIBER, place_units

names = st.sampled_from("abcdef")
ports = st.lists(
    st.builds(
        PlacementTarget,
        name=names,
        utilization=st.floats(0, 1.5),
        subscribers=st.integers(0, 500),
        capacity=st.floats(0.1, 8.0),
    ),
    unique_by=lambda port: port.name,
    max_size=6,
)


def test_the_least_loaded_takes_it():
    fleet = [PlacementTarget("a", 0.5), PlacementTarget("b", 0.2), PlacementTarget("c", 0.4)]
    assert LeastLoadedPlacer().place(PlacementUnit(), fleet) == fleet[1]


def test_where_little_flows_subscribers_by_capacity_decide():
    fleet = [PlacementTarget("a", 0.1, 100, 4.0), PlacementTarget("b", 0.1, 30, 1.0)]
    assert LeastLoadedPlacer().place(PlacementUnit(), fleet) == fleet[0]


def test_of_equals_the_first_by_name():
    assert LeastLoadedPlacer().place(PlacementUnit(), [PlacementTarget("b"), PlacementTarget("a")]) == PlacementTarget(
        "a"
    )


def test_it_counts_what_the_unit_adds_there():
    fleet = [PlacementTarget("small", 0.1, 0, 1.0), PlacementTarget("large", 0.2, 0, 10.0)]
    assert LeastLoadedPlacer().place(PlacementUnit(1, 0.01), fleet) == fleet[0]
    assert LeastLoadedPlacer().place(PlacementUnit(1, 0.5), fleet) == fleet[1]


def test_none_is_brought_above_its_line_as_long_as_another_is_below():
    fleet = [PlacementTarget("a", 0.85, 0), PlacementTarget("b", 0.5, 1000)]
    assert LeastLoadedPlacer().place(PlacementUnit(1, 0.1), fleet) == fleet[1], "though it counts more in all"
    assert LeastLoadedPlacer(most_utilization=1.0).place(PlacementUnit(1, 0.1), fleet) == fleet[0]
    above = [PlacementTarget("a", 0.99), PlacementTarget("b", 0.95)]
    assert LeastLoadedPlacer().place(PlacementUnit(1, 0.1), above) == above[1], "rather above than nowhere"


def test_without_targets_no_unit_is_placed():
    assert LeastLoadedPlacer().place(PlacementUnit(), []) is None


@given(ports, st.integers(0, 40))
def test_spreading_puts_each_where_it_is_best_then(fleet: list[PlacementTarget], count: int):
    unit, placer = PlacementUnit(1, 0.01), LeastLoadedPlacer()
    chosen, after = place_units(placer, unit, count, fleet)
    assert len(chosen) == (count if fleet else 0)
    for port in fleet:
        placed = chosen.count(port.name)
        assert after[port.name].subscribers == port.subscribers + placed
        assert abs(after[port.name].utilization - port.utilization - placed * 0.01 / port.capacity) < 1e-9
    now = {port.name: port for port in fleet}
    for name in chosen:
        best = placer.place(unit, list(now.values()))
        assert best is not None
        assert best.name == name
        now[name] = now[name].after(unit)


@given(st.lists(st.integers(0, 50), min_size=2, max_size=5), st.integers(1, 200))
def test_equal_ports_end_up_equal(before: list[int], count: int):
    fleet = [PlacementTarget(f"p{index}", 0.0, subscribers) for index, subscribers in enumerate(before)]
    _, after = place_units(LeastLoadedPlacer(), PlacementUnit(), count, fleet)
    counts = [port.subscribers for port in after.values()]
    grown = [port.subscribers for port in after.values() if port.subscribers > before[int(port.name[1:])]]
    assert max(grown) - min(counts) <= 1


def test_thousands_are_placed_in_reasonable_time_and_as_evenly():
    class Counting(LeastLoadedPlacer):
        def place(self, unit: PlacementUnit, ports: Sequence[PlacementTarget]) -> PlacementTarget | None:
            asked.append(unit.subscribers)
            return super().place(unit, ports)

    asked: list[int] = []
    chosen, after = place_units(Counting(), PlacementUnit(1, 0.0001), 50_050, [PlacementTarget(name) for name in "abc"])
    assert len(chosen) == sum(asked) == sum(port.subscribers for port in after.values()) == 50_050
    assert len(asked) == 1001
    counts = Counter(chosen)
    assert max(counts.values()) - min(counts.values()) <= 50


def test_a_placer_may_refuse():
    class OnlyTwo:
        def place(self, unit: PlacementUnit, ports: Sequence[PlacementTarget]) -> PlacementTarget | None:
            free = [port for port in ports if port.subscribers < 2]
            return free[0] if free else None

    placer: Placer = OnlyTwo()
    chosen, _ = place_units(placer, PlacementUnit(), 10, [PlacementTarget("a"), PlacementTarget("b", subscribers=1)])
    assert Counter(chosen) == {"a": 2, "b": 1}


def test_after_and_without_are_opposites():
    port, unit = PlacementTarget("a", 0.3, 5, 2.0), PlacementUnit(2, 0.2)
    assert port.after(unit) == PlacementTarget("a", 0.4, 7, 2.0)
    assert port.after(unit).without(unit).subscribers == 5
    assert PlacementTarget("a", 0.05, 1).without(PlacementUnit(3, 0.2)) == PlacementTarget("a", 0.0, 0)
    assert PlacementTarget("a", 0.0, 10, 2.0).load == 10 * LOAD_PER_SUBSCRIBER / 2
