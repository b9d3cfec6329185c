"""New topics go where no correlated one is, and then where least is used."""

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


def test_an_edge_without_a_correlated_topic_comes_first_unless_it_is_full():
    with_one, free = PlacementTarget("a", 0.1, usage=0.1, beside=1), PlacementTarget("b", 0.6, usage=0.6)
    assert placed(with_one, free) == "b"
    assert placed(with_one, PlacementTarget("c", 0.1, usage=0.1, beside=2)) == "a"
    assert placed(with_one, PlacementTarget("b", 0.95, usage=0.95)) == "a", "no edge is made too full for it"
