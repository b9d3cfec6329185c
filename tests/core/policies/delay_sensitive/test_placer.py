"""New topics go where least is used."""

from plimsoll.core.policies.delay_sensitive.placer import LeastUsedPlacer
from plimsoll.core.policies.placement import PlacementTarget, PlacementUnit

PLACER = LeastUsedPlacer()


def placed(*ports: PlacementTarget) -> str:
    found = PLACER.place(PlacementUnit(), ports)
    return "" if found is None else found.name


def test_the_busiest_resource_counts():
    assert placed(PlacementTarget("a", 0.1, usage=0.5), PlacementTarget("b", 0.3, usage=0.3)) == "b"
    assert placed(PlacementTarget("b", 0.1, usage=0.1), PlacementTarget("a", 0.1, usage=0.1)) == "a"


def test_a_full_edge_takes_none_unless_all_are_full():
    full, fuller = PlacementTarget("a", 0.91, usage=0.91), PlacementTarget("b", 0.95, usage=0.95)
    assert placed(full, PlacementTarget("c", 0.9, 0, 1.0, usage=0.89)) in ("c", "a")
    assert placed(full, PlacementTarget("c", 0.5, usage=0.5)) == "c"
    assert placed(fuller, full) == "a"
    assert placed() == ""
