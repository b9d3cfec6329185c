"""Places that edges keep until the edge of the new owner would report it: when they are released, and that all are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.core.head.handover.scripted import Cluster

from plimsoll.core.head.held_places import epoch_above
from plimsoll.core.head.ownership import OwnerEntry
from plimsoll.core.protocol import messages as msg


def in_tree(*edges: str) -> Cluster:
    """A head that has a neighbour, and a log that outlasts it, as far as places are concerned."""
    cluster = Cluster(*edges)
    head = cluster.head
    alike: Any = SimpleNamespace(
        journal=object(), routes=SimpleNamespace(neighbors={"g": None}), outboxes=head.outboxes, owners=head.owners
    )
    head.held_places.host = alike
    return cluster


def resumed(cluster: Cluster, edge: str, n: int) -> msg.ResumedDown:
    cluster.edges[edge].resume("x", (1, n), None, ("h", cluster.head.epoch, 0))
    cluster.run()
    return cluster.edges[edge].of(msg.ResumedDown)[-1]


def take(cluster: Cluster, edge: str, n: int) -> None:
    cluster.edges[edge].tell(msg.PlaceTaken("x", (1, n)))
    cluster.run()


def released(cluster: Cluster, edge: str) -> list[tuple[int, int]]:
    return [each.epoch for each in cluster.edges[edge].of(msg.Release)]


def test_a_place_is_released_once_another_edge_has_taken_it():
    cluster = in_tree("a", "b")
    assert not resumed(cluster, "a", 2).is_awaited
    assert resumed(cluster, "b", 4).is_awaited
    take(cluster, "a", 2)
    take(cluster, "b", 2)
    assert released(cluster, "a") == [], "only the owner has taken it, and only in its present epoch"
    take(cluster, "b", 4)
    assert released(cluster, "a") == [(1, 4)]
    assert "x" not in cluster.head.held_places


def test_without_a_tree_it_is_released_at_once():
    cluster = Cluster("a", "b")
    resumed(cluster, "a", 2)
    assert not resumed(cluster, "b", 4).is_awaited
    assert released(cluster, "a") == [(1, 4)]


def test_an_edge_that_becomes_the_owner_again_is_not_released():
    cluster = in_tree("a", "b")
    for edge, n in (("a", 2), ("b", 4), ("a", 6)):
        resumed(cluster, edge, n)
    take(cluster, "a", 6)
    assert (released(cluster, "a"), released(cluster, "b")) == ([], [(1, 6)])


def test_an_older_resume_of_an_edge_that_keeps_the_place_waits_as_well():
    cluster = in_tree("a", "b")
    resumed(cluster, "a", 2)
    resumed(cluster, "b", 6)
    cluster.edges["a"].resume("x", (1, 4))
    cluster.run()
    assert released(cluster, "a") == []
    take(cluster, "b", 6)
    assert released(cluster, "a") == [(1, 6)]


def test_a_cut_leaves_the_place_at_the_source_until_the_member_is_there():
    cluster = in_tree("a", "b")
    cluster.serve("a", "x")
    cluster.cut("x")
    (cut,) = cluster.edges["a"].of(msg.Cut)
    assert (cut.across, cut.keeps_place, released(cluster, "a")) == (False, True, [])
    cluster.edges["b"].tell(msg.Done("3.1", ["x"]))
    cluster.run()
    assert released(cluster, "a") == [(1, 5)]
    assert cluster.states() == {"x": "moved"}


def test_a_cut_without_a_tree_leaves_nothing():
    cluster = Cluster("a", "b")
    cluster.serve("a", "x")
    cluster.cut("x")
    assert not cluster.edges["a"].of(msg.Cut)[0].keeps_place
    assert "x" not in cluster.head.held_places


def test_what_is_kept_goes_with_its_link_and_with_its_subscriber():
    cluster = in_tree("a", "b", "c")
    for edge, n in (("a", 2), ("b", 4), ("c", 6)):
        resumed(cluster, edge, n)
    held = cluster.head.held_places
    held.broker_lost(cluster.head.edges["a"])
    keys = {edge: cluster.head.edges[edge].key for edge in ("a", "b")}
    assert [held.holds(keys[edge], "x") for edge in ("a", "b")] == [False, True]
    cluster.edges["c"].tell(msg.Forget("x", (1, 6)))
    cluster.run(2.0)
    assert released(cluster, "b") == [(1, 5)]
    assert "x" not in held


@pytest.mark.parametrize(
    ("owner", "above"),
    [
        (None, (1, 5)),
        (OwnerEntry("b#1", (1, 6), (1, 0), identity="i"), (1, 6)),
        (OwnerEntry("b#1", (1, 2), (1, 0), identity="other"), (1, 5)),
        (OwnerEntry("b#1", (3, 2), (1, 0), identity="other"), (3, 2)),
    ],
)
def test_a_release_is_above_the_epoch_that_it_ends(owner: OwnerEntry | None, above: tuple[int, int]):
    assert epoch_above(owner, OwnerEntry("a#1", (1, 4), (1, 0), identity="i")) == above
