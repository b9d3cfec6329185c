"""An edge whose subscribers, link or head do not keep up: queues, policies, progress, lag, leaving, slow hardware."""

from __future__ import annotations

import pytest
from tests.core.edge.served_client import BIG, no_holes, start, token
from tests.core.fleet import Publishing, one_cluster, resume

from plimsoll.core.config import BrokerHardware, HardwareEmulation
from plimsoll.core.protocol import messages as msg

# -- falling behind


@pytest.mark.parametrize("policy", ["block", "drop-oldest"])
def test_a_paused_subscriber_loses_nothing_while_its_queue_holds(policy: str):
    fleet = one_cluster()
    client, publisher = start(fleet, resume(1, "s", slow=policy), resume(2, "other"))
    client.tell("e1", msg.Pause(1))
    fleet.run(0.1)
    publisher.publish(20)
    fleet.run(0.3)
    assert client.numbers("e1", 1) == []
    assert client.numbers("e1", 2) == list(range(1, 21))
    client.tell("e1", msg.Continue(1))
    publisher.publish(5)
    fleet.run(0.3)
    assert client.numbers("e1", 1) == list(range(1, 26))


def test_block_stops_the_queue_and_fetches_the_rest_from_the_log():
    fleet = one_cluster(block_seconds=60.0)
    client, publisher = start(fleet, resume(1, "s", slow="block", queue_bytes=5000), resume(2, "other"))
    client.tell("e1", msg.Pause(1))
    fleet.run(0.1)
    for _ in range(10):
        publisher.publish(10, payload=BIG)
        fleet.run(0.1)
    attachment = fleet.edge("e1").attachments.by_subscriber["s"]
    assert attachment.state.value == "blocked"
    assert attachment.count_queue() < 5000 + 12 * 1200
    assert client.numbers("e1", 2) == list(range(1, 101)), "no other subscriber waits"
    client.tell("e1", msg.Continue(1))
    fleet.run(2.0)
    assert client.numbers("e1", 1) == list(range(1, 101))
    assert client.gaps("e1", 1) == []
    assert attachment.state.value == "live"


def test_what_the_log_lost_while_a_subscriber_was_blocked_is_a_gap_in_its_place():
    fleet = one_cluster(block_seconds=60.0, log_bytes=30_000)
    client, publisher = start(
        fleet, resume(1, "s", slow="block", queue_bytes=3000), resume(2, "t", slow="block", queue_bytes=9000)
    )
    client.tell("e1", msg.Pause(1), msg.Pause(2))
    fleet.run(0.1)
    for _ in range(20):
        publisher.publish(5, payload=BIG)
        fleet.run(0.05)
    client.tell("e1", msg.Continue(1), msg.Continue(2))
    fleet.run(2.0)
    publisher.publish(1)
    fleet.run(0.3)
    first = fleet.head().log.first
    for attachment in (1, 2):
        (gap,) = client.gaps("e1", attachment)
        numbers = client.numbers("e1", attachment)
        assert gap.reason == "log"
        assert set(range(gap.low, gap.high + 1)) == set(range(1, 102)) - set(numbers), "its own, not the other's"
        assert gap.high <= first
        assert no_holes(client.items("e1", attachment))


def test_block_ends_with_a_gap_behind_what_the_queue_holds():
    fleet = one_cluster(block_seconds=1.0)
    client, publisher = start(fleet, resume(1, "s", slow="block", queue_bytes=3000))
    client.tell("e1", msg.Pause(1))
    fleet.run(0.1)
    publisher.publish(20, payload=BIG)
    fleet.run(0.1)
    publisher.publish(20, payload=BIG)
    fleet.run(5.0)
    attachment = fleet.edge("e1").attachments.by_subscriber["s"]
    assert len(attachment.queue) < 30, "one gap, however long it lasts"
    client.tell("e1", msg.Continue(1))
    fleet.run(1.0)
    publisher.publish(5)
    fleet.run(0.5)
    items = client.items("e1", 1)
    (gap,) = client.gaps("e1", 1)
    assert gap.reason == "blocked"
    numbers = client.numbers("e1", 1)
    assert numbers[-5:] == [41, 42, 43, 44, 45]
    assert gap.high == 40
    assert set(range(gap.low, gap.high + 1)) == set(range(1, 46)) - set(numbers)
    assert no_holes(items)


def test_drop_oldest_reports_a_gap_before_the_kept_records():
    fleet = one_cluster()
    client, publisher = start(fleet, resume(1, "s", slow="drop-oldest", queue_bytes=5000))
    publisher.publish(2)
    fleet.run(0.2)
    client.tell("e1", msg.Pause(1))
    fleet.run(0.1)
    for _ in range(5):
        publisher.publish(10, payload=BIG)
        fleet.run(0.1)
    client.tell("e1", msg.Continue(1))
    fleet.run(0.5)
    publisher.publish(1)
    fleet.run(0.2)
    (gap,) = client.gaps("e1", 1)
    numbers = client.numbers("e1", 1)
    assert (gap.reason, gap.low, gap.low_epoch) == ("queue", 3, fleet.head().epoch)
    assert gap.last == [("h", fleet.head().epoch, gap.high)]
    assert set(range(3, gap.high + 1)) == set(range(1, 54)) - set(numbers)
    assert no_holes(client.items("e1", 1))
    assert fleet.edge("e1").counters["deliveries_dropped"] == gap.high - gap.low + 1


def test_drop_oldest_across_a_restart_of_the_head_keeps_its_epochs_apart():
    fleet = one_cluster(edges=1)
    client, publisher = start(fleet, resume(1, "s", slow="drop-oldest", queue_bytes=4000))
    client.tell("e1", msg.Pause(1))
    fleet.run(0.1)
    publisher.publish(3, payload=BIG)
    fleet.run(0.3)
    old = fleet.head().epoch
    fleet.crash("h")
    fleet.run(0.2)
    fleet.start("h")
    fleet.run(4.0)
    again = Publishing(fleet.client("pub2", "h"), "h", "q")
    again.publish(20, payload=BIG)
    fleet.run(0.5)
    client.tell("e1", msg.Continue(1))
    fleet.run(0.5)
    (gap,) = client.gaps("e1", 1)
    assert (gap.low_epoch, gap.low, gap.epoch) == (old, 1, fleet.head().epoch)
    assert gap.high + 1 == client.numbers("e1", 1)[0]
    assert [head for head, _, _ in gap.last] == ["h", "h"]


def test_disconnect_is_final_and_says_so_ahead_of_the_rest():
    fleet = one_cluster()
    client, publisher = start(fleet, resume(1, "s", slow="disconnect", queue_bytes=3000), resume(2, "other"))
    client.tell("e1", msg.Pause(1))
    fleet.run(0.1)
    publisher.publish(20, payload=BIG)
    fleet.run(0.5)
    assert [(s.attachment, s.code) for s in client.of("e1", msg.AttachmentClosed)] == [(1, "slow")]
    assert client.numbers("e1", 1) == []
    assert "s" not in fleet.head().owners.entries
    assert set(fleet.edge("e1").attachments.by_subscriber) == {"other"}
    assert client.numbers("e1", 2) == list(range(1, 21))


def test_who_is_shut_while_its_connection_is_away_is_told_when_it_is_back():
    fleet = one_cluster()
    client, publisher = start(fleet, resume(1, "s", slow="disconnect", queue_bytes=3000))
    client.tell("e1", msg.Pause(1))
    fleet.run(0.1)
    edge = fleet.edge("e1")
    (link,) = edge.attachments.by_link
    edge.gone(link.peer, fleet.now)
    publisher.publish(20, payload=BIG)
    fleet.settle()
    assert "s" not in edge.attachments.by_subscriber
    fleet.run(5.0)
    assert [shut.code for shut in client.of("e1", msg.AttachmentClosed)] == ["slow"]


@pytest.mark.parametrize("policy", ["block", "drop-oldest", "disconnect"])
def test_a_frozen_client_costs_bounded_memory_and_delays_no_other(policy: str):
    fleet = one_cluster(queue_bytes=20_000, link_buffer_bytes=20_000, window_bytes=50_000, dead_seconds=60.0)
    client, publisher = start(fleet, resume(1, "s", slow=policy), dead_seconds=60.0)
    good = fleet.client("good", "e1", dead_seconds=60.0)
    good.tell("e1", resume(1, "g"))
    fleet.run(0.3)
    fleet.freeze("c")
    for _ in range(40):
        publisher.publish(10, payload=BIG)
        fleet.run(0.05)
    assert good.numbers("e1", 1) == list(range(1, 401))
    edge = fleet.edge("e1")
    port = next(port for port in edge.attachments.by_link.values() if port.link.name == "c")
    held = sum(map(len, port.link.buffer)) + sum(a.count_queue() for a in edge.attachments.by_subscriber.values())
    assert held < 20_000 + 20_000 + 50_000 + 30_000
    assert port.link.inflight_bytes < 50_000 + 70_000
    fleet.thaw("c")
    fleet.run(3.0)
    publisher.publish(1)
    fleet.run(0.5)
    if policy == "disconnect":
        assert [s.code for s in client.of("e1", msg.AttachmentClosed)] == ["slow"]
    else:
        assert no_holes(client.items("e1", 1))
        assert client.numbers("e1", 1)[-1] == 401


def test_members_that_close_during_a_slice_disturb_no_other():
    fleet = one_cluster(edges=1)
    client, publisher = start(fleet, *[resume(i, f"s{i}") for i in range(1, 7)])
    client.tell("e1", *[msg.Detach([i], False) for i in range(1, 7)])
    fleet.run(0.2)
    publisher.publish(100)
    fleet.run(0.3)
    client.tell("e1", *[resume(i, f"s{i}", n=3, token=token(fleet, 0)) for i in range(1, 7)])
    for i in range(1, 6):
        fleet.round()
        client.tell("e1", msg.Detach([i], i % 2 == 0))
    fleet.run(1.0)
    assert client.numbers("e1", 6) == list(range(1, 101))
    edge = fleet.edge("e1")
    assert edge.attachments.by_subscriber["s6"].state.value == "live"
    assert len(edge.cursor) == 0


# -- progress


def test_idle_subscribers_hear_how_far_the_log_is_even_on_a_busy_link():
    fleet = one_cluster()
    client, publisher = start(fleet, resume(1, "busy"), resume(2, "idle", "[class,=,'NONE']"))
    for _ in range(40):
        publisher.publish(3)
        fleet.run(0.02)
    told = [p.position for p in client.of("e1", msg.Progress)]
    assert len(told) >= 5
    assert told == sorted(set(told))
    fleet.run(0.5)
    assert client.of("e1", msg.Progress)[-1] == msg.Progress(120, [])


def test_progress_names_the_attachments_that_it_does_not_cover():
    fleet = one_cluster()
    client, publisher = start(fleet, resume(1, "s"), resume(2, "t"))
    client.tell("e1", msg.Pause(1))
    fleet.run(0.1)
    publisher.publish(3)
    fleet.run(0.5)
    assert client.of("e1", msg.Progress)[-1] == msg.Progress(3, [1])


# -- the stream of the head


def test_an_edge_that_falls_behind_loses_only_publications_and_is_lagging():
    fleet = one_cluster(edges=2, log_bytes=30_000, window_bytes=20_000, dead_seconds=60.0, lease_seconds=60.0)
    client, publisher = start(fleet, resume(1, "s"), dead_seconds=60.0)
    other = fleet.client("d", "e2", dead_seconds=60.0)
    other.tell("e2", resume(1, "t"))
    fleet.run(0.3)
    fleet.freeze("e1")
    for i in range(30):
        publisher.publish(10, payload=BIG)
        fleet.run(0.02)
        if i == 15:
            client.tell("e1", msg.Subs(1, 2, [msg.SubscriptionItem(2, "[n,>,100]")], []))
    fleet.thaw("e1")
    fleet.run(0.5)
    assert fleet.edge("e1").reporter.last["state"] == "N/A" or fleet.edge("e1").head_messages.lagging
    fleet.run(3.0)
    publisher.publish(1)
    fleet.run(0.5)
    assert other.numbers("e2", 1) == list(range(1, 302))
    assert client.of("e1", msg.Suback)[-1].version == 2
    gaps = client.gaps("e1", 1)
    assert gaps
    assert all(gap.reason == "log" and gap.last for gap in gaps)
    assert no_holes(client.items("e1", 1))
    lost = set(range(1, 302)) - set(client.numbers("e1", 1))
    assert lost <= {n for gap in gaps for n in range(gap.low, gap.high + 1)}


def test_a_restart_gap_is_kept_for_the_one_that_is_paused():
    fleet = one_cluster(edges=1)
    client, publisher = start(fleet, resume(1, "s"))
    client.tell("e1", msg.Pause(1))
    publisher.publish(3)
    fleet.run(0.3)
    fleet.crash("h")
    fleet.run(0.1)
    fleet.start("h")
    fleet.run(4.0)
    client.tell("e1", msg.Continue(1))
    fleet.run(0.5)
    assert [type(x).__name__ for x in client.heard["e1"] if isinstance(x, msg.Deliver | msg.Epoch)] == [
        "Deliver", "Deliver", "Deliver", "Epoch",
    ]  # fmt: skip


def test_a_head_that_restarts_twice_while_an_edge_is_behind_leaves_one_gap_from_where_the_edge_is():
    """The edge learns of the second life before it has handled the first message of the one before."""
    slow = BrokerHardware(emulation=HardwareEmulation(base_seconds=0.05))
    fleet = one_cluster(edges=1, hardware={"e1": slow})
    client, publisher = start(fleet, resume(1, "s"))
    publisher.publish(100)
    fleet.run(1.0)
    old, edge = fleet.head().epoch, fleet.edge("e1")
    for _ in range(2):
        before = fleet.head().epoch
        fleet.crash("h")
        fleet.run(0.1)
        fleet.start("h")
        while edge.head_epoch == before:
            fleet.run(0.01)
    assert edge.position < 100
    fleet.run(8.0)
    gaps = [said.gap for said in client.heard["e1"] if isinstance(said, msg.Epoch)]
    assert [gap.low_epoch for gap in gaps] == [old]
    assert gaps[0].low == client.numbers("e1", 1)[-1] + 1
    assert gaps[0].epoch == fleet.head().epoch > old


# -- leaving


def test_leaving_sends_all_elsewhere_and_is_done_when_they_have_arrived():
    fleet = one_cluster()
    client, publisher = start(fleet, resume(1, "s"))
    edge = fleet.edge("e1")
    publisher.publish(3)
    fleet.run(0.3)
    edge.leave(fleet.now)
    fleet.run(0.3)
    assert client.of("e1", msg.Moved) == [msg.Moved([1], "", "", "")]
    assert not edge.done()
    client.tell("e1", resume(2, "s", n=3, token=token(fleet, 3)))
    fleet.run(0.2)
    assert [(s.attachment, s.code) for s in client.of("e1", msg.AttachmentClosed)] == [(2, "leaving")]
    asker = fleet.client("asker", "h")
    asker.tell("h", msg.Join("s"), msg.Join("s", [], "e1"))
    publisher.publish(2)
    fleet.run(0.2)
    assert [p.edge for p in asker.of("h", msg.Placed)] == ["e2", "e2"]
    other = fleet.client("d", "e2")
    other.tell("e2", resume(1, "s", n=5, token=token(fleet, 3)))
    fleet.run(0.3)
    assert other.numbers("e2", 1) == [4, 5]
    assert edge.done()


def test_leaving_does_not_wait_for_ever():
    fleet = one_cluster(edges=1, lease_seconds=60.0)
    start(fleet, resume(1, "s"))
    edge = fleet.edge("e1")
    edge.leave(fleet.now)
    fleet.run(9.0)
    assert not edge.done()
    fleet.run(2.0)
    assert edge.done()


# -- emulated hardware


def test_emulated_hardware_serves_the_stream_in_order():
    slow = BrokerHardware(emulation=HardwareEmulation(base_seconds=0.02))
    fleet = one_cluster(edges=1, hardware={"e1": slow})
    client, publisher = start(fleet, resume(1, "s"))
    publisher.publish(20)
    fleet.run(0.1)
    assert 1 <= len(client.numbers("e1", 1)) < 10
    client.tell("e1", msg.Subs(1, 2, [msg.SubscriptionItem(2, "[n,>,100]")], []))
    fleet.run(1.0)
    assert client.numbers("e1", 1) == list(range(1, 21))
    assert client.of("e1", msg.Suback)[-1].version == 2
    fleet.run(0.5)
    assert client.of("e1", msg.Progress)[-1] == msg.Progress(20, [])


def test_an_overloaded_edge_sees_all_that_comes_for_it():
    """20 ms for each of 100 publications a second: twice what it can do, though it has room for four frames only."""
    slow = BrokerHardware(emulation=HardwareEmulation(base_seconds=0.02))
    fleet = one_cluster(edges=1, hardware={"e1": slow}, window_frames=4)
    _, publisher = start(fleet, resume(1, "s"))
    seen = []
    for _ in range(300):
        publisher.publish()
        fleet.run(0.01)
        seen.append(fleet.edge("e1").reporter.last.get("input_utilization", 0.0))
    assert seen[-1] == pytest.approx(2.0, rel=0.1)
    assert len(fleet.edge("e1").server.queue) > 100


def test_what_waits_for_an_overloaded_edge_is_bounded_by_its_inbox():
    slow = BrokerHardware(emulation=HardwareEmulation(base_seconds=1.0))
    fleet = one_cluster(edges=1, hardware={"e1": slow}, inbox_bytes=20_000, window_frames=4)
    client, publisher = start(fleet, resume(1, "s"))
    for _ in range(100):
        publisher.publish(payload=BIG)
        fleet.run(0.01)
    waiting = fleet.edge("e1").server.waiting_bytes
    assert 20_000 < waiting < 40_000
    fleet.run(110.0)
    assert client.numbers("e1", 1) == list(range(1, 101))


def test_output_bandwidth_is_kept_to():
    narrow = BrokerHardware(output_bytes_per_second=50_000)
    fleet = one_cluster(edges=1, hardware={"e1": narrow})
    client, publisher = start(fleet, resume(1, "s"))
    for _ in range(2):
        publisher.publish(100, payload=BIG)
        fleet.run(0.5)
    assert 30 <= len(client.numbers("e1", 1)) <= 120
    fleet.run(6.0)
    assert client.numbers("e1", 1) == list(range(1, 201))
