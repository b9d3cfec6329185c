"""Which edge serves which subscriber of a cluster: RESUME, leases, and the covers of lost edges."""

from __future__ import annotations

import pytest
from tests.core.fleet import STOCK
from tests.core.head.handover.scripted import Broker, Cluster

from plimsoll.core.predicates import Attributes
from plimsoll.core.protocol import messages as msg


def needs(cluster: Cluster) -> set[str]:
    attributes: Attributes = {"class": "STOCK"}
    return {key.partition("#")[0] for key in cluster.head.routes.match(attributes)}


def owners(cluster: Cluster) -> dict[str, tuple[str, tuple[int, int]]]:
    return {x: (o.key.partition("#")[0], o.epoch) for x, o in cluster.head.owners.entries.items()}


def test_a_resume_owns_covers_and_says_where_the_subscriber_goes_on():
    cluster = Cluster("a", "b")
    publish = cluster.publish(3)
    next(publish)
    a, epoch = cluster.edges["a"], cluster.head.epoch
    a.resume("x", (1, 2), None, None)
    cluster.run()
    (resumed,) = a.of(msg.ResumedDown)
    assert (resumed.position, resumed.start, resumed.since, resumed.gap) == (3, 3, (epoch, 3), None)
    next(publish)
    cluster.edges["b"].resume("x", (1, 4), None, ("h", epoch, 4))
    cluster.run()
    (resumed,) = cluster.edges["b"].of(msg.ResumedDown)
    assert (resumed.position, resumed.start, resumed.since) == (6, 4, (epoch, 3))
    assert a.of(msg.Release) == [msg.Release("x", (1, 4))]
    assert owners(cluster) == {"x": ("b", (1, 4))}
    said = [type(record).__name__ for record in cluster.edges["b"].heard if not isinstance(record, msg.Progress)]
    assert said[-2:] == ["ResumedDown", "CoverAck"], "no acknowledgement before RESUMED"


def test_an_older_resume_is_released_even_behind_an_owner_that_has_gone():
    cluster = Cluster("a", "b")
    cluster.serve("a", "x", epoch=(2, 6))
    b = cluster.edges["b"]
    b.resume("x", (2, 6))
    b.resume("x", (1, 90))
    cluster.run()
    assert b.of(msg.ResumedDown) == []
    assert b.of(msg.Release) == [msg.Release("x", (2, 7)), msg.Release("x", (2, 7))]
    cluster.edges["a"].tell(msg.Forget("x", (2, 6)))
    cluster.run()
    b.resume("x", (2, 4))
    cluster.run()
    assert b.of(msg.Release)[-1] == msg.Release("x", (2, 7))
    assert owners(cluster) == {}


@pytest.mark.parametrize("again", [False, True])
def test_who_was_away_for_longer_than_its_lease_has_lapsed_though_nothing_was_logged_here(again: bool):
    """What was published elsewhere meanwhile has not come this way: there was no cover."""
    cluster = Cluster("a", "b")
    next(cluster.publish(3))
    a, b, token = cluster.edges["a"], cluster.edges["b"], ("h", cluster.head.epoch, 3)
    a.resume("x", (1, 2), None, None)
    a.resume("x", (1, 4), None, token)
    cluster.run()
    assert [resumed.lapsed for resumed in a.of(msg.ResumedDown)] == [False, False]
    a.tell(msg.Expire("x", (1, 4)))
    cluster.run()
    assert owners(cluster) == {}
    b.resume("x", (1, 6), None, token)
    cluster.run()
    if again:  # RESUMED has not reached it
        b.resume("x", (1, 8), None, token)
        cluster.run()
    resumed = b.of(msg.ResumedDown)[-1]
    assert (resumed.start, resumed.gap, resumed.lapsed) == (3, None, True)


def test_expire_and_forget_are_a_compare_and_swap():
    cluster = Cluster("a", "b")
    a, b = cluster.edges["a"], cluster.edges["b"]
    cluster.serve("a", "x", "y")
    b.tell(msg.Expire("x", (1, 4)), msg.Forget("y", (1, 4)))
    a.tell(msg.Expire("x", (1, 2)), msg.Forget("y", (1, 2)))
    cluster.run()
    assert owners(cluster) == {"x": ("a", (1, 4)), "y": ("a", (1, 4))}
    assert b.of(msg.Release) == [msg.Release("x", (1, 5))], "it is not the owner"
    assert a.of(msg.Release) == [], "it has a newer record of its own"
    a.tell(msg.Expire("x", (1, 4)), msg.Forget("y", (1, 4)))
    cluster.run()
    assert owners(cluster) == {}
    assert a.of(msg.Release) == [msg.Release("x", (1, 5))]


def test_an_expiry_that_crosses_a_cut_releases_the_source_and_leaves_the_target():
    cluster = Cluster("a", "b")
    a = cluster.edges["a"]
    cluster.serve("a", "x")
    cluster.cut("x")
    a.tell(msg.Expire("x", (1, 4)), msg.Forget("x", (1, 4)))
    cluster.run()
    assert owners(cluster) == {"x": ("b", (1, 5))}
    assert a.of(msg.Release) == [msg.Release("x", (1, 5))]
    cluster.edges["b"].tell(msg.Done("3.1", ["x"]))
    cluster.run()
    assert cluster.states() == {"x": "moved"}


def test_the_cover_of_a_dead_edge_stays_for_its_last_subscriber():
    cluster = Cluster("a", "b")
    cluster.serve("a", "x", "y")
    cluster.fleet.crash("a")
    cluster.run(3.0)
    b, epoch = cluster.edges["b"], cluster.head.epoch
    b.resume("x", (1, 6), None, ("h", epoch, 0))
    cluster.run()
    assert needs(cluster) == {"a", "b"}
    b.resume("y", (1, 6), None, ("h", epoch, 0))
    cluster.run()
    assert needs(cluster) == {"b"}
    assert cluster.head.membership.ghosts == {}


def test_the_entries_of_a_dead_edge_expire_at_the_head():
    cluster = Cluster("a", "b", lease_seconds=3.0)
    cluster.serve("a", "x")
    cluster.fleet.crash("a")
    cluster.run(4.0)
    assert needs(cluster) == {"a"}
    cluster.run(2.5)
    assert (needs(cluster), owners(cluster)) == (set(), {})
    assert cluster.head.owners.newest("x") == (1, 4)


def test_an_edge_without_subscribers_leaves_no_ghost():
    cluster = Cluster("a", "b")
    cluster.edges["a"].tell(cluster.edges["a"].cover(STOCK))
    cluster.run()
    assert needs(cluster) == {"a"}
    cluster.fleet.crash("a")
    cluster.run(2.8)
    assert needs(cluster) == set()


def test_of_two_reports_the_higher_epoch_owns_and_the_other_is_released():
    cluster = Cluster("a", "b")
    item = msg.OwnedItem("x", (1, 5), (9, 40))
    cluster.fleet.crash("h")
    cluster.edges["a"].owned = [msg.OwnedItem("x", (1, 4), (9, 30)), msg.OwnedItem("y", (1, 2), (9, 1))]
    cluster.edges["b"].owned = [item]
    cluster.fleet.start("h")
    cluster.run(3.0)
    assert owners(cluster) == {"x": ("b", (1, 5)), "y": ("a", (1, 2))}
    assert cluster.head.owners.entries["x"].since == (9, 40)
    assert cluster.edges["a"].of(msg.Release) == [msg.Release("x", (1, 5))]
    assert cluster.edges["b"].of(msg.Release) == []


def test_a_report_in_parts_counts_as_one():
    cluster = Cluster("a", "b")
    cluster.fleet.crash("a")
    again = Broker(cluster.fleet, "a", "h")
    again.reports = False
    cluster.run(2.8)
    seats = cluster.head.placement
    assert seats.place({"b"}) is not None
    again.tell(msg.EdgeReport("mem://a", "", msg.Cover(1, [], []), [msg.OwnedItem("x", (1, 2), (5, 0))], True))
    cluster.run()
    assert "a" not in cluster.head.edges
    assert owners(cluster) == {}
    again.tell(msg.EdgeReport("mem://a", "", msg.Cover(1, [], []), [msg.OwnedItem("y", (1, 2), (5, 0))]))
    cluster.run()
    assert "a" in cluster.head.edges
    assert set(owners(cluster)) == {"x", "y"}


@pytest.mark.parametrize("cut_first", [False, True])
def test_an_edge_that_comes_back_by_another_link_has_its_old_cover_only_for_who_may_return(cut_first: bool):
    cluster = Cluster("a", "b", lease_seconds=3.0)
    cluster.serve("a", "x")
    if cut_first:
        cluster.cut("x", drain_seconds=60.0)
    cluster.fleet.crash("a")
    again = Broker(cluster.fleet, "a", "h")
    cluster.run(1.0)
    assert again.of(msg.Welcome) != []
    assert len(cluster.head.membership.ghosts) == (0 if cut_first else 1)
    assert needs(cluster) == ({"b"} if cut_first else {"a"})
    cluster.run(4.0)
    assert cluster.head.membership.ghosts == {}
    assert owners(cluster) == ({"x": ("b", (1, 5))} if cut_first else {})


def test_a_storm_of_resumes_does_not_look_at_all_owners(monkeypatch: pytest.MonkeyPatch):
    cluster = Cluster("a", "b")
    names = [f"s{i}" for i in range(50)]
    cluster.serve("a", *names)
    cluster.fleet.crash("a")
    cluster.run(3.0)

    class NotWalked(dict[str, object]):
        def __iter__(self) -> object:  # type: ignore[override]  # it is not to be called
            raise AssertionError("each RESUME looks at all that are owned")

        items = values = keys = __iter__  # type: ignore[assignment]  # none of them is to be called

    entries = cluster.head.owners.entries
    monkeypatch.setattr(cluster.head.owners, "entries", NotWalked(entries))
    for x in names:
        cluster.edges["b"].resume(x, (1, 6))
    cluster.run()
    monkeypatch.undo()
    assert needs(cluster) == {"b"}
