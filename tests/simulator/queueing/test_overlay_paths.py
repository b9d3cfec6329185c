"""Paths in a tree of heads, and what lies behind a neighbour."""

from plimsoll.simulator.queueing.overlay_paths import OverlayPaths

TREE = {"a": ["b"], "b": ["a", "c", "d"], "c": ["b"], "d": ["b"], "alone": []}


def test_hops_and_reach():
    paths = OverlayPaths(TREE, lambda head: ())
    assert [paths.hops("a", other) for other in "abcd"] == [0, 1, 2, 2]
    assert paths.reaches("c", "d")
    assert not paths.reaches("a", "alone")


def test_what_lies_behind_a_neighbour_follows_covers():
    routed = {"a": [1], "b": [2], "c": [4, 8], "d": [16], "alone": [32]}
    paths = OverlayPaths(TREE, lambda head: routed[head])
    assert paths.behind("a", "b") == 2 | 4 | 8 | 16
    assert paths.behind("b", "c") == 4 | 8
    routed["c"] = [4]
    assert paths.behind("b", "c") == 4 | 8, "until a change is told"
    paths.changed()
    assert paths.behind("b", "c") == 4
