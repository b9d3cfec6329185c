"""Histories of real machines for guards that are seldom needed: each test fails when its guard is removed.

tests/simulator/mutants/scripted.py names them; docs/mutants.md names their rules.
"""

from __future__ import annotations

from unittest import mock

from tests.core.fleet import STOCK, Fleet, Publishing, one_cluster, resume, tree
from tests.core.head.handover.test_between_machines import Play

from plimsoll.core.protocol import messages as msg

EPOCH_ENDS_SECONDS = 3.0
"""After this time both ends of a link have noticed the loss of the other."""


def with_two_edges() -> Fleet:
    """Head `a` with edges `a1` and `a2`, beside head `b` with edge `b1`."""
    fleet = Fleet()
    fleet.cluster("a", ["a1", "a2"], ("b",))
    fleet.cluster("b", ["b1"], ("a",))
    fleet.start()
    fleet.run(2.0)
    return fleet


def test_what_a_neighbour_had_for_us_and_took_with_it_is_told():
    fleet = tree([("a", "b")])
    reader, writer = fleet.client("reader", "a1"), fleet.client("writer", "b")
    reader.tell("a1", resume(1, "x"))
    publisher = Publishing(writer, "b")
    fleet.run(0.5)
    publisher.publish(1)
    fleet.run(0.5)
    fleet.cut("a", "b")
    publisher.publish(3)
    fleet.run(0.5)
    assert publisher.accepted == 4
    fleet.crash("b")
    fleet.run(EPOCH_ENDS_SECONDS)
    fleet.start("b")
    fleet.mend("a", "b")
    fleet.run(EPOCH_ENDS_SECONDS)
    assert reader.numbers("a1", 1) == [1]
    assert reader.gaps("a1", 1), "2 to 4 were accepted, and are lost"


def test_nothing_is_acknowledged_while_it_is_not_known_who_else_there_is():
    """A restarted head waits for an edge; its neighbour is connected, and does not have its cover yet."""
    fleet = with_two_edges()
    reader = fleet.client("reader", "a1")
    fleet.crash("a2")
    fleet.crash("a")
    fleet.run(EPOCH_ENDS_SECONDS)
    fleet.start("a")
    fleet.run(1.0)
    assert fleet.head("a").startup.missing >= {"a2"}
    assert "b" in fleet.head("a").outboxes.by_key
    reader.tell("a1", resume(1, "x"))
    fleet.run(1.0)
    assert fleet.head("a").startup.missing >= {"a2"}
    assert len(reader.of("a1", msg.Resumed)) == 1
    assert reader.of("a1", msg.Suback) == [], "what is published at b does not come yet"
    fleet.start("a2")
    fleet.run(EPOCH_ENDS_SECONDS)
    assert reader.of("a1", msg.Suback) == [msg.Suback(1, 1, [])]


def test_what_was_said_to_a_head_that_has_gone_is_not_said_to_the_next():
    """The report has the present state. A RESUME of a subscriber that has left would make an owner of no subscriber."""
    fleet = one_cluster()
    client = fleet.client("apps", "e1")
    fleet.crash("h")
    fleet.run(EPOCH_ENDS_SECONDS)
    client.tell("e1", resume(1, "x"))
    fleet.run(0.1)
    assert set(fleet.edge("e1").attachments.by_subscriber) == {"x"}
    fleet.crash("apps")
    fleet.run(EPOCH_ENDS_SECONDS)
    fleet.start("h")
    fleet.run(20.0)
    assert fleet.edge("e1").attachments.by_subscriber == {}
    assert fleet.head().owners.entries == {}
    assert fleet.head().routes.match({"class": "STOCK"}) == set()


def test_of_two_edges_that_serve_a_subscriber_when_the_head_restarts_one_is_left():
    """It has attached again, at another edge, and the first edge did not learn of it before the head was killed."""
    fleet = one_cluster()
    before, after = fleet.client("before", "e1"), fleet.client("after", "e2")
    before.tell("e1", resume(1, "x", n=2))
    fleet.run(0.5)
    fleet.cut("e1", "h")
    after.tell("e2", msg.Resume(1, "x", (2, 2), 1, [msg.SubscriptionItem(1, STOCK)], msg.Policy(), None, []))
    fleet.run(0.2)
    assert len(after.of("e2", msg.Resumed)) == 1
    fleet.crash("h")
    fleet.run(0.2)
    assert {edge: fleet.edge(edge).attachments.by_subscriber["x"].state.value for edge in ("e1", "e2")} == {
        "e1": "live",
        "e2": "live",
    }
    fleet.start("h")
    fleet.mend("e1", "h")
    fleet.run(EPOCH_ENDS_SECONDS)
    (entry,) = fleet.head().owners.entries.values()
    assert (entry.key.partition("#")[0], entry.epoch) == ("e2", (2, 2))
    assert fleet.edge("e1").attachments.by_subscriber == {}
    assert [shut.code for shut in before.of("e1", msg.AttachmentClosed)] == ["released"]
    publisher = Publishing(fleet.client("writer", "h"), "h")
    publisher.publish(3)
    fleet.run(0.5)
    assert (before.numbers("e1", 1), after.numbers("e2", 1)) == ([], [1, 2, 3])


def test_the_end_of_a_lease_that_comes_late_does_not_end_what_has_begun_elsewhere():
    """Its first edge sends EXPIRE while nothing reaches the head; meanwhile it has come back at another edge."""
    fleet = one_cluster()
    client = fleet.client("apps", "e1", "e2")
    client.tell("e1", resume(1, "x", n=2))
    fleet.run(0.5)
    client.tell("e1", msg.Detach([1], False))
    fleet.run(4.5)
    fleet.cut("e1", "h")
    fleet.run(1.0)
    assert fleet.edge("e1").attachments.by_subscriber["x"].expiring
    client.tell("e2", resume(2, "x", n=4, token=("h", fleet.head().epoch, 0)))
    fleet.run(0.2)
    fleet.mend("e1", "h")
    fleet.run(EPOCH_ENDS_SECONDS)
    assert {x: (o.key.partition("#")[0], o.epoch) for x, o in fleet.head().owners.entries.items()} == {
        "x": ("e2", (1, 4))
    }
    assert fleet.edge("e1").attachments.by_subscriber == {}


def test_the_cut_does_not_pass_a_list_that_waits():
    """What the target has announced waits for its turn at the head; so does CUT_REQUEST, which comes behind it."""
    play = Play(one_cluster(), "e1", "e2", "x")
    play.command("prepare")
    head = play.fleet.head()
    source = head.owners.entries["x"].key
    with mock.patch.object(head.cover_turns, "tick"):
        head.cover_turns._left = 0
        play.follower.client.tell("e2", msg.Subs(1, 2, [msg.SubscriptionItem(2, "[n,>,0]")], []))
        play.run(0.1)
        assert [link.name for link in head.cover_turns.waiting] == ["e2"]
        play.command("cut")
        assert play.outcome().state == "cutting"
        assert head.owners.entries["x"].key == source
    play.run(0.5)
    assert play.outcome().state == "done"
    play.check()
