"""An edge between its head and its subscribers: going on from a token, and links that come and go."""

from __future__ import annotations

from tests.core.edge.served_client import BIG, start, token
from tests.core.fleet import STOCK, Publishing, one_cluster, resume, tree

from plimsoll.core.protocol import messages as msg
from plimsoll.core.transport import link_handshake

# -- moving by token


def test_a_subscriber_that_comes_to_another_edge_goes_on_where_it_was():
    fleet = one_cluster()
    client, publisher = start(fleet, resume(1, "s"))
    publisher.publish(5)
    fleet.run(0.3)
    client.tell("e1", msg.Detach([1], False))
    fleet.run(0.1)
    publisher.publish(5)
    other = fleet.client("d", "e2")
    other.tell("e2", resume(7, "s", n=3, token=token(fleet, 5)))
    publisher.publish(5)
    fleet.run(0.5)
    assert other.numbers("e2", 7) == list(range(6, 16))
    assert other.gaps("e2", 7) == []
    (resumed,) = other.of("e2", msg.Resumed)
    assert (resumed.position, resumed.gap, resumed.lapsed) == (5, None, False)
    assert fleet.edge("e1").attachments.by_subscriber == {}, "the old edge was told to release it"
    assert fleet.head().owners.entries["s"].key.startswith("e2#")


def test_taking_a_subscriber_over_shuts_it_at_the_old_edge_without_loss_or_repetition():
    fleet = one_cluster()
    client, publisher = start(fleet, resume(1, "s"))
    publisher.publish(5)
    fleet.run(0.3)
    other = fleet.client("d", "e2")
    other.tell("e2", resume(1, "s", n=3, token=token(fleet, 3)))
    publisher.publish(2)
    fleet.run(0.3)
    publisher.publish(2)
    fleet.run(0.3)
    assert [(s.attachment, s.code) for s in client.of("e1", msg.AttachmentClosed)] == [(1, "released")]
    assert other.numbers("e2", 1) == list(range(4, 10))


def test_what_the_log_has_evicted_is_a_gap_and_the_rest_is_replayed():
    fleet = one_cluster(log_bytes=20 * 400)
    client, publisher = start(fleet, resume(1, "s"))
    client.tell("e1", msg.Detach([1], False))
    fleet.run(0.1)
    publisher.publish(100)
    fleet.run(0.3)
    first = fleet.head().log.first
    assert first > 50
    client.tell("e1", resume(2, "s", n=3, token=token(fleet, 10)))
    fleet.run(0.3)
    gap = client.of("e1", msg.Resumed)[-1].gap
    assert gap is not None
    assert (gap.low, gap.high, gap.reason) == (11, first - 1, "log")
    assert gap.last == [("h", fleet.head().epoch, first - 1)]
    assert client.numbers("e1", 2) == list(range(first, 101))


def test_a_token_of_an_older_epoch_is_a_gap_across_the_restart():
    fleet = one_cluster(edges=1)
    client, publisher = start(fleet, resume(1, "s"))
    publisher.publish(5)
    fleet.run(0.3)
    old = token(fleet, 5)
    client.tell("e1", msg.Detach([1], False))
    fleet.run(0.2)
    fleet.crash("h")
    fleet.run(0.2)
    fleet.start("h")
    fleet.run(4.0)
    client.tell("e1", resume(2, "s", n=3, token=old))
    fleet.run(0.5)
    (resumed,) = [x for x in client.of("e1", msg.Resumed) if x.attachment == 2]
    assert resumed.gap is not None
    assert (resumed.gap.low_epoch, resumed.gap.low, resumed.gap.epoch) == (old[1], 6, fleet.head().epoch)
    assert resumed.gap.reason == "restart"


def test_a_token_of_another_head_is_a_gap_and_its_past_is_not_replayed_without_a_cover():
    fleet = tree([("a", "b")])
    client = fleet.client("x", "a", "b1")
    publisher = Publishing(client, "a")
    fleet.run(0.3)
    publisher.publish(5)
    client.tell("b1", resume(1, "s", token=("a", fleet.head("a").epoch, 5)))
    fleet.run(0.5)
    (resumed,) = client.of("b1", msg.Resumed)
    assert resumed.gap is not None
    assert resumed.gap.reason == "elsewhere"
    assert resumed.lapsed
    assert client.numbers("b1", 1) == []


def test_a_token_older_than_the_cover_has_lapsed_and_says_so():
    fleet = one_cluster(lease_seconds=1.0)
    client, publisher = start(fleet, resume(1, "s"))
    client.tell("e1", msg.Detach([1], False))
    publisher.publish(3)
    fleet.run(3.0)
    assert fleet.head().owners.entries == {}
    publisher.publish(3)
    fleet.run(0.3)
    client.tell("e1", resume(2, "s", n=3, token=token(fleet, 0)))
    fleet.run(0.3)
    (resumed,) = [x for x in client.of("e1", msg.Resumed) if x.attachment == 2]
    assert resumed.lapsed
    assert resumed.gap is not None
    assert (resumed.gap.low, resumed.gap.high) == (1, 6)
    publisher.publish(1)
    fleet.run(0.3)
    assert client.numbers("e1", 2) == [7]


def test_a_token_ahead_of_the_log_is_brought_down_to_it():
    fleet = one_cluster()
    client, publisher = start(fleet, resume(1, "s", token=("h", 11, 900)))
    assert client.of("e1", msg.Resumed)[0].position == 0
    publisher.publish(2)
    fleet.run(0.3)
    assert client.numbers("e1", 1) == [1, 2]


def test_many_that_catch_up_at_once_each_get_exactly_their_rest():
    fleet = one_cluster()
    client, publisher = start(fleet)
    for _ in range(2):
        publisher.publish(100)
        fleet.run(0.15)
    items = [resume(i, f"s{i}", STOCK, n=1, token=token(fleet, 5 * i)) for i in range(1, 41)]
    head = fleet.head()
    client.tell("e1", *[resume(i, f"s{i}", n=1) for i in range(1, 41)])
    fleet.run(0.3)
    client.tell("e1", *[msg.Detach([i], False) for i in range(1, 41)])
    for _ in range(2):
        publisher.publish(100)
        fleet.run(0.15)
    assert head.log.last == 400
    client.tell("e1", *[resume(i, f"s{i}", n=3, token=token(fleet, 200 + 5 * i)) for i in range(1, 41)])
    publisher.publish(10)
    fleet.run(0.5)
    for i in range(1, 41):
        assert client.numbers("e1", i)[-(210 - 5 * i) :] == list(range(201 + 5 * i, 411))
    assert len(items) == 40


def test_nothing_is_replayed_twice_to_one_that_blocks_right_after_catching_up():
    """Its queue has the replay and a part of the stream; the rest is fetched from where the queue ends."""
    fleet = one_cluster(queue_bytes=3000, link_buffer_bytes=2000, window_bytes=4000)
    client, publisher = start(fleet, resume(1, "s", "[class,=,'NONE']"))
    publisher.publish(10)
    fleet.run(0.3)
    client.tell("e1", resume(2, "s", STOCK, n=3, token=token(fleet, 0)), msg.Pause(2))
    fleet.run(0.3)
    publisher.publish(10, payload=BIG)
    fleet.run(0.3)
    client.tell("e1", msg.Continue(2))
    fleet.run(2.0)
    assert client.numbers("e1", 2) == list(range(1, 21))


# -- the link to the head


def test_a_head_link_that_comes_back_in_time_disturbs_no_subscriber():
    fleet = one_cluster(edges=1)
    client, publisher = start(fleet, resume(1, "s"))
    publisher.publish(3)
    fleet.run(0.2)
    fleet.cut("e1", "h")
    publisher.publish(3)
    client.tell("e1", msg.Subs(1, 2, [msg.SubscriptionItem(2, "[n,>,100]")], []))
    fleet.run(1.0)
    fleet.mend("e1", "h")
    fleet.run(2.0)
    assert client.numbers("e1", 1) == [1, 2, 3, 4, 5, 6]
    assert client.of("e1", msg.AttachmentClosed) == []
    assert client.of("e1", msg.Suback)[-1].version == 2


def test_an_edge_that_was_away_too_long_sends_its_subscribers_to_resume():
    fleet = one_cluster(edges=1)
    client, publisher = start(fleet, resume(1, "s"))
    publisher.publish(3)
    fleet.run(0.3)
    fleet.cut("e1", "h")
    fleet.run(3.0)
    publisher.publish(3)
    fleet.mend("e1", "h")
    fleet.run(2.0)
    assert [(s.attachment, s.code) for s in client.of("e1", msg.AttachmentClosed)] == [(1, "head")]
    client.tell("e1", resume(2, "s", n=3, token=token(fleet, 3)))
    fleet.run(0.5)
    assert client.numbers("e1", 2) == [4, 5, 6]
    assert client.of("e1", msg.Resumed)[-1].gap is None
    assert fleet.head().membership.ghosts == {}


def test_the_cover_of_a_dead_edge_stays_for_its_lease_and_then_goes():
    fleet = one_cluster(edges=2, lease_seconds=3.0)
    start(fleet, resume(1, "s"))
    fleet.crash("e1")
    fleet.run(3.5)
    head = fleet.head()
    assert "s" in head.owners.entries
    fleet.run(4.0)
    assert head.owners.entries == {}
    assert head.membership.ghosts == {}
    assert [key for key in head.routes._covers if key.startswith("e1#")] == []


def test_a_withdrawal_while_the_head_does_not_answer_is_not_forgotten():
    fleet = one_cluster(edges=1)
    client, publisher = start(fleet, resume(1, "s"), resume(2, "t", "[class,=,'BOND']"))
    edge = fleet.edge("e1")
    client.tell("e1", msg.Detach([1], True))
    fleet.round()
    hello = link_handshake.ask_resync(edge.head, fleet.now)
    assert hello is not None
    edge._out.append((edge.head.peer, hello))
    fleet.run(1.0)
    assert sum(fleet.head().routes.size(key) for key in fleet.head().outboxes.by_key) == 1
    client.tell("e1", resume(3, "u"))
    fleet.run(0.3)
    publisher.publish(1)
    fleet.run(0.3)
    assert client.numbers("e1", 3) == [1]
    assert fleet.head().counters["records_refused_cover"] == 0
