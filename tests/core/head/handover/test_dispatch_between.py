"""A real head whose neighbour takes part in a hand-over, as the head of the source or of the target."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.fleet import STOCK
from tests.core.head.handover.scripted import Broker, Cluster, items

from plimsoll.core.protocol import messages as msg

# -- the head of the target: a neighbour `g` decides


def with_guest(*members: str, **limits: Any) -> tuple[Cluster, Broker, Broker]:
    """Prepared, with the cut asked for: the cluster, the neighbour that decides and the target."""
    cluster = Cluster("a", "b", "c", neighbors=("g",), **limits)
    g, b = cluster.neighbors["g"], cluster.edges["b"]
    g.route(msg.Prepare("3.1", list(members), 4.0, False), "b")
    cluster.run()
    b.tell(msg.Slot("3.1", list(members), "mem://b", "key"), msg.TargetAttached("3.1", list(members)))
    cluster.run()
    g.route(msg.Install("3.1", list(members)), "b")
    cluster.run()
    return cluster, g, b


def test_the_marker_follows_the_cover_on_the_link():
    cluster, g, b = with_guest("x")
    b.request("3.1", "x")
    cluster.run()
    assert b.kinds() == ["Prepare", "Install", "Installed"]
    assert [(to, edge, type(record).__name__) for to, edge, record in g.routed()] == [
        ("g", "", "Slot"), ("g", "", "TargetAttached"), ("g", "", "Marker"),
    ]  # fmt: skip
    said = [record for record in g.heard if isinstance(record, msg.Cover | msg.Route | msg.NeighborReport)]
    assert [type(record).__name__ for record in said] == ["NeighborReport", "Route", "Route", "Cover", "Route"]
    assert g.of(msg.Cover)[0].adds[0].text == STOCK
    assert g.routed()[-1][2] == msg.Marker("3.1", ["x"], ("h", cluster.head.epoch, 0))


def test_the_end_of_a_guest_is_told_to_who_decides():
    cluster, g, b = with_guest("x", "y", "z")
    b.request("3.1", "x", "y", "z")
    b.tell(msg.Done("3.1", ["x"]))
    cluster.run()
    cluster.edges["c"].resume("y", (1, 7), "3.1", ("h", cluster.head.epoch, 0))
    cluster.edges["c"].resume("z", (1, 7))
    cluster.run()
    assert [record for _, _, record in g.routed() if isinstance(record, msg.Done)] == [msg.Done("3.1", ["x"])]
    naks = [record for _, _, record in g.routed() if isinstance(record, msg.HandoverRejected)]
    assert [nak.members for nak in naks] == [["y"]], "it has left its source, and is not at its target"
    assert b.of(msg.Release) == [msg.Release("y", (1, 7)), msg.Release("z", (1, 7))]
    assert len(cluster.head.remote_members) == 0


def test_done_that_was_lost_is_said_again_at_part():
    cluster, g, b = with_guest("x")
    b.request("3.1", "x")
    cluster.run()
    cluster.fleet.crash("g")
    b.tell(msg.Done("3.1", ["x"]))
    cluster.run(1.0)
    g = Broker(cluster.fleet, "g", "h", "head")
    cluster.run(1.0)
    assert g.routed() == []
    g.route(msg.ForceDetach("3.1", items("x")), "b")
    cluster.run()
    assert b.of(msg.ForceDetach) == [msg.ForceDetach("3.1", items("x"))]
    b.tell(msg.Done("3.1", ["x"]))
    cluster.run()
    assert g.routed() == [("g", "", msg.Done("3.1", ["x"]))]


def test_a_guest_is_busy_here():
    cluster, _, _ = with_guest("x")
    cluster.serve("a", "x")
    cluster.serve("a", "x", epoch=(1, 2))
    assert "x" not in cluster.head.remote_members, "a RESUME ends it"
    cluster.neighbors["g"].route(msg.Prepare("3.2", ["x"], 4.0, False), "b")
    cluster.run()
    assert dict(cluster.command("prepare", "3.3", plan=cluster.plan("x")).members) == {"x": "aborting"}
    assert cluster.states("3.3") == {"x": "stayed"}


def test_an_abort_takes_the_owner_entry_back_even_if_the_target_is_down():
    cluster, g, b = with_guest("x", "y")
    b.request("3.1", "x", "y")
    cluster.run()
    g.route(msg.Abort("3.1", items("x")), "b")
    cluster.run()
    assert cluster.served("b") == ["y"]
    assert b.of(msg.Abort) == [msg.Abort("3.1", items("x"))]
    cluster.fleet.crash("b")
    cluster.run(3.0)
    assert set(cluster.head.owners.entries) == {"y"}
    g.route(msg.Abort("3.1", items("y")), "b")
    cluster.run(0.5)
    assert cluster.head.owners.entries == {}
    assert cluster.head.membership.ghosts == {}, "no subscriber will come back for its cover"
    assert len(cluster.head.remote_members) == 0


@pytest.mark.parametrize("record", [msg.Prepare("3.1", ["x"], 4.0, False), msg.Install("3.1", ["x"])])
def test_what_is_for_an_edge_that_is_not_there_is_answered_with_nak(record: Any):
    cluster = Cluster("a", "b", neighbors=("g",))
    g = cluster.neighbors["g"]
    g.route(record, "nowhere")
    cluster.run()
    assert g.routed() == [("g", "", msg.HandoverRejected("3.1", ["x"], "nowhere is not an edge of h, or is down"))]
    assert len(cluster.head.remote_members) == 0


def test_the_nak_of_a_target_goes_home():
    cluster, g, b = with_guest("x", "y")
    b.tell(msg.HandoverRejected("3.1", ["y", "stranger"], "has left"))
    cluster.run()
    assert g.routed()[-1] == ("g", "", msg.HandoverRejected("3.1", ["y"], "has left"))
    assert "x" in cluster.head.remote_members
    assert "y" not in cluster.head.remote_members


def test_when_the_target_is_lost_who_decides_is_told():
    cluster, g, _ = with_guest("x", "y")
    cluster.fleet.crash("b")
    cluster.run(3.0)
    assert g.routed()[-1] == ("g", "", msg.HandoverRejected("3.1", ["x", "y"], "b was lost"))


def test_when_who_decides_is_lost_the_guests_are_orphans():
    cluster, _, b = with_guest("x", "y")
    cluster.fleet.crash("g")
    cluster.run(3.0)
    assert b.of(msg.Orphan) == [msg.Orphan("3.1", ["x", "y"])]
    assert len(cluster.head.remote_members) == 0


def test_when_the_deciding_head_restarts_its_remote_members_are_orphans():
    cluster, _, b = with_guest("x")
    cluster.fleet.crash("g")
    Broker(cluster.fleet, "g", "h", "head")
    cluster.run(1.0)
    assert b.of(msg.Orphan) == [msg.Orphan("3.1", ["x"])]


def test_guests_expire():
    cluster, _, b = with_guest("x")
    cluster.run(65.0)
    assert len(cluster.head.remote_members) == 0
    b.request("3.1", "x")
    cluster.run()
    assert b.of(msg.Abort) == [msg.Abort("3.1", items("x"))]


# -- the head of the source: the target is an edge of the neighbour


def across(*members: str, **changed: Any) -> tuple[Cluster, Broker, Broker]:
    """As far as INSTALL: the cluster, the neighbour and the source."""
    cluster = Cluster("a", "b", "c", neighbors=("f", "g"))
    cluster.serve("a", *members)
    cluster.prepare(*members, target="g1", target_head="g", **changed)
    g = cluster.neighbors["g"]
    g.route(msg.Slot("3.1", list(members), "mem://g1", "key"))
    cluster.run()
    g.route(msg.TargetAttached("3.1", list(members)))
    cluster.run()
    cluster.command("cut")
    return cluster, g, cluster.edges["a"]


def test_a_session_across_is_decided_at_the_marker_and_ends_with_release():
    cluster, g, a = across("x", "y")
    assert [(to, edge, type(record).__name__) for to, edge, record in g.routed()] == [
        ("g", "g1", "Prepare"), ("g", "g1", "Install"),
    ]  # fmt: skip
    assert cluster.neighbors["f"].routed() == [], "a neighbour is told directly"
    assert a.of(msg.StartMove) == [msg.StartMove("3.1", items("x", "y"), "g1", "mem://g1", "key")]
    g.route(msg.Marker("3.1", ["x", "y"], ("g", 44, 17)))
    cluster.run()
    assert a.of(msg.Cut) == [msg.Cut("3.1", items("x", "y"), ("g", 44, 17), True)]
    assert cluster.served("a") == ["x", "y"], "until it is done"
    g.route(msg.Done("3.1", ["x"]))
    cluster.run()
    assert a.of(msg.Release) == [msg.Release("x", (1, 5))]
    assert cluster.served("a") == ["y"]
    assert cluster.states() == {"x": "moved", "y": "cut"}


def test_a_batch_across_ends_with_its_drain_time_and_is_kept_until_the_lease_has_ended():
    cluster, g, a = across("x", "y", drain_seconds=2.0)
    g.route(msg.Marker("3.1", ["x", "y"], ("g", 44, 17)))
    cluster.run(2.5)
    assert cluster.states() == {"x": "detached", "y": "detached"}
    assert a.of(msg.ForceDetach) == [msg.ForceDetach("3.1", items("x", "y"))]
    assert g.routed()[-1] == ("g", "g1", msg.ForceDetach("3.1", items("x", "y")))
    assert cluster.command("ask").state == "done"
    assert cluster.command("prepare", "3.2", plan=cluster.plan("x")).state == "aborted", "it is busy"
    a.tell(msg.Expire("x", (1, 4)))
    cluster.run()
    assert a.of(msg.Release) == [msg.Release("x", (1, 5))]
    assert not cluster.head.coordinator.table.is_busy("x")
    assert cluster.head.coordinator.table.is_busy("y")
    cluster.edges["c"].resume("y", (1, 6))
    cluster.run()
    assert g.routed()[-1] == ("g", "g1", msg.Abort("3.1", items("y")))
    assert cluster.head.coordinator.sessions == {}


@pytest.mark.parametrize("lost", ["f", "g"])
def test_when_the_way_to_the_target_is_lost_what_is_open_aborts(lost: str):
    cluster, _, a = across("x")
    cluster.fleet.crash(lost)
    cluster.run(2.8)
    if lost == "g":
        assert cluster.states() == {"x": "stayed"}
        assert a.of(msg.Abort) == [msg.Abort("3.1", items("x"), ask=True)]
    else:
        assert cluster.states() == {"x": "cutting"}


def test_behind_the_marker_the_loss_of_the_target_undoes_nothing():
    cluster, g, a = across("x", drain_seconds=20.0)
    g.route(msg.Marker("3.1", ["x"], ("g", 44, 17)))
    cluster.run()
    cluster.fleet.crash("g")
    cluster.run(3.0)
    assert cluster.states() == {"x": "cut"}
    assert a.of(msg.Abort) == []


def test_what_is_for_other_heads_is_passed_on_and_teaches_the_way():
    cluster = Cluster("a", neighbors=("f", "g"))
    f, g = cluster.neighbors["f"], cluster.neighbors["g"]
    f.route(msg.HandoverRejected("3.1", ["x"], "first"), to="far", source="beyond")
    cluster.run()
    assert g.routed() == [("far", "", msg.HandoverRejected("3.1", ["x"], "first"))]
    assert f.routed() == []
    g.route(msg.HandoverRejected("3.1", ["x"], "back"), to="beyond", source="far")
    cluster.run()
    assert f.routed() == [("beyond", "", msg.HandoverRejected("3.1", ["x"], "back"))]
    assert cluster.head.router.hops == {"beyond": "f", "far": "g"}


def test_a_record_that_no_head_is_sent_is_refused():
    cluster = Cluster("a", neighbors=("g",))
    cluster.neighbors["g"].route(msg.Stay(1, "3.1"))
    cluster.run()
    assert cluster.head.counters["records_refused_malformed"] == 1
