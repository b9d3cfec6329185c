"""A real head, and all messages about sessions that it receives from mediators, edges and other heads."""

from __future__ import annotations

import pytest
from tests.core.fleet import STOCK
from tests.core.head.handover.scripted import Broker, Cluster, items

from plimsoll.core.predicates import Attributes
from plimsoll.core.protocol import messages as msg


def needs(cluster: Cluster) -> set[str]:
    """The edges and neighbours that the head sends a publication to, ghosts by their last name."""
    attributes: Attributes = {"class": "STOCK"}
    return {key.partition("#")[0] for key in cluster.head.routes.match(attributes)}


# -- a session of one cluster


def test_a_batch_by_drain_with_an_outcome_for_each():
    cluster = Cluster("a", "b", "c")
    a, b = cluster.edges["a"], cluster.edges["b"]
    cluster.serve("a", "x", "y", "z", "full")
    cluster.serve("c", "w")
    names = ["x", "y", "z", "full", "w"]
    assert cluster.command("prepare", plan=cluster.plan(*names)).members == [
        ("x", "preparing"), ("y", "preparing"), ("z", "preparing"), ("full", "preparing"), ("w", "gone"),
    ]  # fmt: skip
    assert b.of(msg.Prepare) == [msg.Prepare("3.1", ["x", "y", "z", "full"], 4.0, False)]
    b.tell(msg.Slot("3.1", ["x", "y", "z"], "mem://b", "key"), msg.HandoverRejected("3.1", ["full"], "no room"))
    cluster.run()
    assert a.of(msg.StartMove) == [msg.StartMove("3.1", items("x", "y", "z"), "b", "mem://b", "key")]
    b.tell(msg.TargetAttached("3.1", ["x", "y"]))
    cluster.run()
    assert cluster.command("cut").state == "cutting"
    assert b.of(msg.Install) == [msg.Install("3.1", ["x", "y"])]
    b.request("3.1", "x", "y")
    cluster.run()
    assert b.of(msg.Installed) == [msg.Installed("3.1", ["x", "y"], 0, [(cluster.head.epoch, 0)] * 2)]
    assert a.of(msg.Cut) == [msg.Cut("3.1", items("x", "y"), ("h", cluster.head.epoch, 0), False)]
    b.tell(msg.Done("3.1", ["x"]))
    cluster.edges["c"].resume("y", (1, 7), None, ("h", cluster.head.epoch, 0))
    cluster.run()
    outcome = cluster.command("ask")
    assert outcome.state == "done"
    assert dict(outcome.members) == {
        "x": "moved", "y": "returned", "z": "stayed", "full": "stayed", "w": "gone",
    }  # fmt: skip
    assert cluster.outcomes()[-1] == outcome
    status = cluster.head.status()
    assert (status["sessions"], status["guests"], status["mediator"]) == (0, 0, 3)
    assert status["outcomes"] == {"moved": 1, "returned": 1, "stayed": 2, "gone": 1}


def test_the_cut_is_one_point_in_the_streams_of_both_edges():
    cluster = Cluster("a", "b")
    a, b = cluster.edges["a"], cluster.edges["b"]
    cluster.serve("a", "x")
    publish = cluster.publish()
    next(publish)
    cluster.prepare("x")
    next(publish)
    cluster.command("cut")
    next(publish)
    b.request("3.1", "x")
    cluster.run()
    next(publish)
    assert a.kinds() == ["ResumedDown", "PubOpen", "MediatorEpoch", "StartMove", "PubOpen", "PubOpen", "Cut", "PubOpen"]
    assert b.kinds() == ["MediatorEpoch", "Prepare", "Install", "Installed", "PubOpen"]
    (installed,) = b.of(msg.Installed)
    (cut,) = a.of(msg.Cut)
    assert installed.position == cut.token[2] == 3
    assert [pub.position for pub in b.of(msg.PubOpen)] == [4]


def test_a_failed_compare_and_swap_aborts_that_member_at_the_target_only():
    cluster = Cluster("a", "b", "c")
    cluster.serve("a", "x", "y")
    cluster.prepare("x", "y")
    cluster.command("cut")
    cluster.edges["c"].resume("y", (1, 6))
    cluster.run()
    b = cluster.edges["b"]
    b.request("3.1", "x", "y")
    cluster.run()
    assert [abort.members for abort in b.of(msg.Abort)] == [items("y"), items("y")]
    assert b.of(msg.Installed)[0].members == ["x"]
    assert cluster.states() == {"x": "cut", "y": "returned"}
    assert cluster.served("a") == []
    assert cluster.served("b") == ["x"]
    assert cluster.served("c") == ["y"]


def test_the_cut_request_of_an_unknown_session_is_aborted_but_its_cover_counts():
    cluster = Cluster("a", "b")
    cluster.serve("a", "x")
    b = cluster.edges["b"]
    b.request("9.9", "x", epoch=(1, 0))
    b.request("9.9", "x")
    cluster.run()
    assert b.of(msg.Abort) == [msg.Abort("9.9", items("x", epoch=(1, 0))), msg.Abort("9.9", items("x"))]
    assert b.of(msg.Installed) == []
    assert [ack.seq for ack in b.of(msg.CoverAck)] == [1, 3]  # the last answers for what came in its round
    assert cluster.served("a") == ["x"]


def test_a_cover_in_parts_counts_with_the_cut_request_that_ends_it():
    cluster = Cluster("a", "b")
    cluster.serve("a", "x")
    cluster.prepare("x")
    cluster.command("cut")
    b = cluster.edges["b"]
    b.seq += 1
    b.tell(msg.Cover(b.seq, [msg.CoverItem(7, STOCK)], [], True))
    cluster.run()
    assert needs(cluster) == {"a"}
    b.tell(
        msg.CutRequest("3.1", msg.Cover(b.seq, [msg.CoverItem(8, "[class,=,'BOND']")], []), items("x", epoch=(1, 5)))
    )
    cluster.run()
    assert needs(cluster) == {"a", "b"}
    assert cluster.states() == {"x": "cut"}


def test_a_cut_request_whose_cover_does_not_fit_decides_nothing():
    cluster = Cluster("a", "b")
    cluster.serve("a", "x")
    cluster.prepare("x")
    cluster.command("cut")
    b = cluster.edges["b"]
    b.tell(msg.CutRequest("3.1", msg.Cover(9, [], [4711]), items("x", epoch=(1, 5))))
    cluster.run()
    assert cluster.states() == {"x": "cutting"}
    cluster.run(5.0)
    assert cluster.states() == {"x": "stayed"}
    assert cluster.served("a") == ["x"]


# -- replay


def test_by_replay_revoke_goes_by_the_control_socket_until_the_subscriber_has_resumed():
    cluster = Cluster("a", "b")
    a, b = cluster.edges["a"], cluster.edges["b"]
    cluster.serve("a", "x")
    cluster.prepare("x", replay=True)
    assert cluster.command("cut").state == "cut"
    cluster.run(0.35)
    revokes = [record for record in a.control_heard if isinstance(record, msg.Revoke)]
    assert len(revokes) >= 4, "every progress_seconds"
    assert set(map(repr, revokes)) == {repr(msg.Revoke("3.1", cluster.head.epoch, items("x"), "b", "mem://b", ""))}
    assert cluster.served("a") == ["x"], "the owner changes when it resumes"
    b.resume("x", (1, 6), "3.1", ("h", cluster.head.epoch, 0))
    cluster.run()
    assert cluster.states() == {"x": "moved"}
    assert cluster.served("b") == ["x"]
    assert a.of(msg.Release) == [msg.Release("x", (1, 6))]
    assert b.of(msg.Abort) == [msg.Abort("3.1", items("x"))], "frees its slot"
    count = len(a.control_heard)
    cluster.run(1.0)
    assert len(a.control_heard) == count


def test_replay_across_clusters_is_refused():
    cluster = Cluster("a", "b", neighbors=("g",))
    cluster.serve("a", "x")
    outcome = cluster.command("prepare", plan=cluster.plan("x", target="g1", target_head="g", replay=True))
    assert (outcome.state, outcome.reason.partition(":")[0]) == ("failed", "replay")


# -- who may command


def test_a_mediator_epoch_reaches_all_edges_and_neighbors_and_outlives_the_head():
    cluster = Cluster("a", "b", neighbors=("g",))
    cluster.command("ask", mediator=8)
    for broker in (*cluster.edges.values(), *cluster.neighbors.values()):
        assert broker.of(msg.MediatorEpoch) == [msg.MediatorEpoch(8)]
        broker.mediator_epoch = 8
    outcome = cluster.command("abort", mediator=7)
    assert (outcome.state, outcome.reason.partition(":")[0], outcome.mediator) == ("failed", "mediator-epoch", 8)
    cluster.fleet.crash("h")
    cluster.fleet.start("h")
    cluster.fleet.run(3.0)
    assert cluster.head.mediator_fence.epoch == 8, "an edge has told it"
    cluster.mediator.dial_control("h", "ctl://h")
    assert cluster.command("abort", mediator=7).state == "failed"


@pytest.mark.parametrize("teller", ["a", "g"])
def test_a_mediator_epoch_is_heard_from_an_edge_and_from_a_neighbor(teller: str):
    cluster = Cluster("a", "b", neighbors=("g",))
    if teller == "g":
        cluster.neighbors["g"].tell(msg.MediatorEpoch(6))
    else:
        cluster.fleet.crash("a")
        again = Broker(cluster.fleet, "a", "h")
        again.mediator_epoch = 6
    cluster.run(3.0)
    assert cluster.head.mediator_fence.epoch == 6
    assert cluster.edges["b"].of(msg.MediatorEpoch) == [msg.MediatorEpoch(6)]
    assert cluster.command("cut", mediator=5).reason.startswith("mediator-epoch")


def test_a_starting_head_obeys_no_mediator():
    cluster = Cluster("a", "b")
    cluster.fleet.crash("h")
    for edge in cluster.edges.values():
        edge.reports = False
    cluster.fleet.start("h")
    cluster.fleet.run(2.0)
    assert not cluster.head.status()["ready"]
    cluster.mediator.dial_control("h", "ctl://h")
    assert cluster.command("prepare", plan=cluster.plan("x")).reason.startswith("starting")
    cluster.fleet.run(5.0)
    assert cluster.head.status()["ready"], "their lease has passed"
    assert cluster.command("ask").state == "unknown"


def test_a_starting_head_says_nothing_to_a_neighbor_ahead_of_its_report():
    cluster = Cluster("a", neighbors=("g",))
    cluster.fleet.crash("h")
    a, g = cluster.edges["a"], cluster.neighbors["g"]
    a.reports = False
    g.heard.clear()
    cluster.fleet.start("h")
    cluster.fleet.run(2.0)
    cluster.mediator.dial_control("h", "ctl://h")
    cluster.command("ask", mediator=9)
    assert g.heard == []
    a.report()
    cluster.run(1.0)
    assert [type(record) for record in g.heard] == [msg.NeighborReport, msg.CoverAck]
    assert g.of(msg.NeighborReport)[0].mediator == 9


def test_a_command_of_another_epoch_of_the_head_is_refused():
    cluster = Cluster("a", "b")
    cluster.serve("a", "x")
    command = msg.Command(3, cluster.head.epoch - 1, "3.1", "prepare", cluster.plan("x"))
    cluster.mediator.say_control("h", msg.Identify("mediator", "mediator", 3), command)
    cluster.run()
    (outcome,) = cluster.outcomes()
    assert (outcome.state, outcome.reason.partition(":")[0]) == ("failed", "head-epoch")
    assert outcome.head_epoch == cluster.head.epoch
    assert cluster.edges["b"].of(msg.Prepare) == []


def test_only_who_is_identified_as_a_mediator_may_command():
    cluster = Cluster("a", "b")
    cluster.serve("a", "x")
    a = cluster.edges["a"]
    a.say_control("h", msg.Command(3, cluster.head.epoch, "3.1", "prepare", cluster.plan("x")))
    cluster.run()
    assert cluster.edges["b"].of(msg.Prepare) == []


def test_outcomes_are_throttled():
    cluster = Cluster("a", "b")
    names = [f"s{i:03}" for i in range(200)]
    cluster.serve("a", *names)
    cluster.prepare(*names)
    cluster.command("cut")
    b = cluster.edges["b"]
    b.request("3.1", *names)
    cluster.run()
    before = len(cluster.outcomes())
    for x in names:
        b.tell(msg.Done("3.1", [x]))
        cluster.run(0.002)
    told = cluster.outcomes()[before:]
    assert len(told) <= 12, "0.4 s"
    assert told[-1].state == "done"
    assert {state for _, state in told[-1].members} == {"moved"}


# -- deadlines and losses


def test_a_deadline_wakes_the_head():
    cluster = Cluster("a", "b", progress_seconds=100.0, report_seconds=100.0)
    cluster.serve("a", "x")
    began = cluster.fleet.now
    cluster.prepare("x", prepare_seconds=1.7)
    assert began + 1.7 <= cluster.head.wake_at() <= began + 1.71
    cluster.run(began + 1.75 - cluster.fleet.now)
    assert cluster.states() == {"x": "stayed"}


def test_who_leaves_for_good_before_the_cut_is_undone_at_once():
    cluster = Cluster("a", "b")
    cluster.serve("a", "x", "y")
    cluster.prepare("x", "y")
    cluster.edges["a"].tell(msg.Forget("x", (1, 4)))
    cluster.run()
    assert cluster.states() == {"x": "gone", "y": "attached"}


@pytest.mark.parametrize("lost", ["a", "b"])
def test_an_edge_that_is_lost_aborts_what_is_open(lost: str):
    cluster = Cluster("a", "b", "c")
    cluster.serve("a", "x")
    cluster.prepare("x")
    cluster.fleet.crash(lost)
    cluster.run(2.8)
    assert cluster.states() == {"x": "away" if lost == "a" else "stayed"}
    other = cluster.edges["b" if lost == "a" else "a"]
    assert other.of(msg.Abort) == [msg.Abort("3.1", items("x"), ask=lost == "b")]


def test_when_the_source_dies_behind_the_cut_its_cover_goes_and_the_target_is_served():
    cluster = Cluster("a", "b", "c")
    cluster.serve("a", "x")
    cluster.cut("x", drain_seconds=60.0)
    cluster.fleet.crash("a")
    cluster.run(3.0)
    assert needs(cluster) == {"b"}
    assert cluster.states() == {"x": "cut"}
    cluster.edges["c"].resume("x", (1, 7), None, ("h", cluster.head.epoch, 0))
    cluster.run()
    assert cluster.states() == {"x": "returned"}
    assert cluster.edges["b"].of(msg.Release) == [msg.Release("x", (1, 7))]


def test_when_the_target_dies_behind_the_cut_its_cover_stays_for_who_resumes():
    cluster = Cluster("a", "b", "c")
    cluster.serve("a", "x")
    cluster.cut("x", drain_seconds=60.0)
    cluster.fleet.crash("b")
    cluster.run(3.0)
    assert "b" in needs(cluster)
    assert cluster.states() == {"x": "cut"}
    cluster.edges["c"].resume("x", (1, 7), "3.1", ("h", cluster.head.epoch, 0))
    cluster.run()
    assert cluster.states() == {"x": "returned"}, "it names the session, but is not at the target"
    assert needs(cluster) == {"a", "c"}
    (resumed,) = cluster.edges["c"].of(msg.ResumedDown)
    assert not resumed.lapsed


def test_when_the_target_dies_after_the_cut_and_no_member_comes_its_entries_expire():
    cluster = Cluster("a", "b", "c", lease_seconds=3.0)
    cluster.serve("a", "x")
    cluster.cut("x", drain_seconds=2.0)
    cluster.fleet.crash("b")
    cluster.run(8.0)
    assert cluster.states() == {"x": "detached"}
    assert cluster.head.owners.entries == {}
    assert cluster.head.membership.ghosts == {}
    assert not cluster.head.coordinator.table.is_busy("x")
