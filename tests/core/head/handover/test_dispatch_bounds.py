"""What a real head refuses before any edge learns of it: sessions above a bound, or without a member to move."""

from __future__ import annotations

import pytest
from tests.core.head.handover.scripted import Cluster

from plimsoll.core.head.handover import remote_members
from plimsoll.core.protocol import messages as msg


def test_remote_members_beyond_the_bound_are_refused_and_their_edge_is_sent_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(remote_members, "REMOTE_MEMBERS_AT_MOST", 1)
    cluster = Cluster("a", "b", neighbors=("g",))
    g, b = cluster.neighbors["g"], cluster.edges["b"]
    g.route(msg.Prepare("3.1", ["x", "y"], 4.0, False), "b")
    cluster.run()
    assert [(nak.members, "as many remote members" in nak.reason) for _, _, nak in g.routed()] == [(["x", "y"], True)]
    assert b.of(msg.Prepare) == []


def test_who_was_served_by_an_edge_that_is_lost_stays_out_of_the_sessions_of_others():
    cluster = Cluster("a", "b", "c")
    cluster.serve("c", "x")
    cluster.serve("a", "y")
    cluster.fleet.crash("c")
    cluster.run(2.8)
    cluster.prepare("x", "y")
    assert cluster.states() == {"x": "gone", "y": "attached"}
