"""Heads in a tree: routing, covers, confirmation, and what a broken link or a restart costs."""

from __future__ import annotations

import pytest
from tests.core.fleet import Publishing, resume, tree

from plimsoll.core.config import BrokerHardware, HardwareEmulation
from plimsoll.core.protocol import messages as msg


@pytest.mark.parametrize(
    "links",
    [
        pytest.param([("a", "b"), ("b", "c"), ("c", "d")], id="chain"),
        pytest.param([("m", "a"), ("m", "b"), ("m", "c")], id="star"),
    ],
)
def test_publications_reach_every_cluster_of_a_tree_once_and_in_order(links: list[tuple[str, str]]):
    fleet = tree(links)
    heads = sorted({name for link in links for name in link})
    clients = {head: fleet.client(f"c-{head}", head, f"{head}1") for head in heads}
    for head, client in clients.items():
        client.tell(f"{head}1", resume(1, f"s-{head}"))
    fleet.run(1.0)
    assert all(client.of(f"{head}1", msg.Suback) for head, client in clients.items())
    publishers = {head: Publishing(clients[head], head, f"p-{head}") for head in heads}
    for _ in range(5):
        for publisher in publishers.values():
            publisher.publish(2)
        fleet.run(0.05)
    fleet.run(0.5)
    for head, client in clients.items():
        items = [item for item in client.items(f"{head}1", 1) if isinstance(item, msg.PubOpen)]
        for origin in heads:
            assert [item.seq for item in items if item.head == origin] == list(range(1, 11))


def test_only_clusters_that_need_a_publication_get_it():
    fleet = tree([("a", "b"), ("b", "c")])
    client = fleet.client("x", "a", "c1")
    client.tell("c1", resume(1, "s", "[class,=,'STOCK'],[n,>,5]"))
    publisher = Publishing(client, "a")
    fleet.run(1.0)
    publisher.publish(10)
    fleet.run(0.5)
    assert client.numbers("c1", 1) == [6, 7, 8, 9, 10]
    assert [len(fleet.head(name).log) for name in "abc"] == [10, 5, 5]


def test_confirm_edges_waits_for_the_neighbours_edges():
    fleet = tree([("a", "b"), ("b", "c")])
    client = fleet.client("x", "a", "c1")
    client.tell("c1", resume(1, "s"))
    publisher = Publishing(client, "a")
    fleet.run(1.0)
    publisher.publish(1, confirm=True)
    fleet.run(0.5)
    assert publisher.accepted == 1
    assert client.of("a", msg.Unconfirmed) == []
    fleet.freeze("c1")
    publisher.publish(1, confirm=True)
    fleet.run(0.5)
    assert publisher.accepted == 1
    fleet.run(1.5)
    assert publisher.accepted == 2
    assert client.of("a", msg.Unconfirmed)[0].seq == 2


def test_a_suback_waits_for_the_whole_tree():
    fleet = tree([("a", "b"), ("b", "c")])
    client = fleet.client("x", "a1")
    fleet.freeze("c")
    client.tell("a1", resume(1, "s"))
    fleet.run(0.5)
    assert len(client.of("a1", msg.Resumed)) == 1
    assert client.of("a1", msg.Suback) == []
    fleet.thaw("c")
    fleet.run(0.5)
    assert client.of("a1", msg.Suback) == [msg.Suback(1, 1, [])]


def test_a_covered_subscription_is_acknowledged_only_with_its_coverer():
    fleet = tree([("a", "b"), ("b", "c")])
    client = fleet.client("x", "a1")
    fleet.freeze("c")
    client.tell("a1", resume(1, "wide"))
    fleet.run(0.3)
    client.tell("a1", resume(2, "narrow", "[class,=,'STOCK'],[n,>,5]"))
    fleet.run(0.3)
    assert client.of("a1", msg.Suback) == []
    fleet.thaw("c")
    fleet.run(0.5)
    assert sorted(s.attachment for s in client.of("a1", msg.Suback)) == [1, 2]


@pytest.mark.parametrize("down", ["b", "c"])
def test_a_head_that_is_down_is_named_as_unreached_however_far_it_is_and_again_when_it_is_back(down: str):
    fleet = tree([("a", "b"), ("b", "c")], lease_seconds=1.0)
    fleet.crash(down)
    fleet.run(4.0)
    client = fleet.client("x", "a", "a1")
    client.tell("a1", resume(1, "s"))
    fleet.run(1.0)
    assert client.of("a1", msg.Suback) == [msg.Suback(1, 1, [down])]
    fleet.start(down)
    fleet.run(6.0)
    assert client.of("a1", msg.Suback) == [msg.Suback(1, 1, [down]), msg.Suback(1, 1, [])]
    far = fleet.client("y", down)
    Publishing(far, down).publish(3)
    fleet.run(1.0)
    assert client.numbers("a1", 1) == [1, 2, 3]


def test_updates_while_a_neighbour_is_down_do_not_pile_up():
    fleet = tree([("a", "b")], lease_seconds=1.0)
    fleet.crash("b")
    fleet.run(4.0)
    client = fleet.client("x", "a1")
    client.tell("a1", resume(1, "s"))
    fleet.run(0.3)
    for version in range(2, 40):
        item = msg.SubscriptionItem(version, f"[n,=,{version}]")
        client.tell("a1", msg.Subs(1, version, [item], [version - 1] if version > 2 else []))
        fleet.run(0.05)
    assert client.of("a1", msg.Suback)[-1] == msg.Suback(1, 39, ["b"])
    assert len(fleet.head("a").routes.waits) <= 2
    fleet.start("b")
    fleet.run(5.0)
    assert client.of("a1", msg.Suback)[-1] == msg.Suback(1, 39, [])


def test_a_broken_link_between_heads_loses_and_repeats_nothing():
    fleet = tree([("a", "b")])
    client = fleet.client("x", "a", "b1")
    client.tell("b1", resume(1, "s"))
    publisher = Publishing(client, "a")
    fleet.run(1.0)
    for _ in range(3):
        publisher.publish(5)
        fleet.round()
        fleet.cut("a", "b")
        publisher.publish(5)
        fleet.run(3.0)
        fleet.mend("a", "b")
        fleet.run(3.0)
    assert client.numbers("b1", 1) == list(range(1, 31))
    assert client.gaps("b1", 1) == []


def test_a_neighbour_that_restarts_is_told_a_gap_for_what_it_had_not_acknowledged():
    fleet = tree([("a", "b")])
    client = fleet.client("x", "a", "b1")
    client.tell("b1", resume(1, "s"))
    publisher = Publishing(client, "a")
    fleet.run(1.0)
    publisher.publish(3)
    fleet.run(0.5)
    fleet.freeze("b")
    publisher.publish(2)
    fleet.run(0.2)
    fleet.thaw("b")
    fleet.crash("b")
    publisher.publish(2)
    fleet.run(1.0)
    fleet.start("b")
    fleet.run(5.0)
    publisher.publish(1)
    fleet.run(1.0)
    assert client.numbers("b1", 1)[:3] == [1, 2, 3]
    assert client.numbers("b1", 1)[-1] == 8
    lost = sorted({1, 2, 3, 4, 5, 6, 7, 8} - set(client.numbers("b1", 1)))
    assert len(client.numbers("b1", 1)) == len(set(client.numbers("b1", 1)))
    gaps = [*client.gaps("b1", 1), *(e.gap for e in client.of("b1", msg.Epoch))]
    assert lost == [] or gaps


def test_what_a_neighbour_had_handed_over_before_it_restarted_is_served_in_its_turn():
    slow = BrokerHardware(emulation=HardwareEmulation(base_seconds=0.5))
    fleet = tree([("a", "b")], hardware={"b": slow})
    client = fleet.client("x", "a", "b1")
    client.tell("b1", resume(1, "s"))
    publisher = Publishing(client, "a")
    fleet.run(1.0)
    publisher.publish(20)
    fleet.run(1.0)
    fleet.crash("a")
    fleet.start("a")
    fleet.run(1.0)
    assert 0 < len(client.numbers("b1", 1)) < 20, "the others wait for service, and their link is over"
    fleet.run(15.0)
    assert client.numbers("b1", 1) == list(range(1, 21))


def test_what_a_neighbour_delivered_before_it_restarted_is_not_sent_again():
    """It has not acknowledged it, and does not remember it: a gap, since its fate is unknown."""
    fleet = tree([("a", "b")])
    client = fleet.client("x", "a", "b1")
    client.tell("b1", resume(1, "s"))
    publisher = Publishing(client, "a")
    fleet.run(1.0)
    publisher.publish(2)
    fleet.settle()
    assert client.numbers("b1", 1) == [1, 2], "delivered, and the acknowledgement has not left yet"
    fleet.crash("b")
    fleet.run(0.2)
    fleet.start("b")
    fleet.run(6.0)
    publisher.publish(1)
    fleet.run(0.5)
    assert client.numbers("b1", 1) == [1, 2, 3]
    assert len(client.gaps("b1", 1)) + len(client.of("b1", msg.Epoch)) > 0
    assert fleet.head("b").counters["gaps_logged"] == 1


def test_a_middle_head_that_restarts_leaves_no_hole_untold():
    fleet = tree([("a", "b"), ("b", "c")])
    client = fleet.client("x", "a", "c1")
    client.tell("c1", resume(1, "s"))
    publisher = Publishing(client, "a")
    fleet.run(1.0)
    for step in range(40):
        if step == 10:
            fleet.crash("b")
        if step == 20:
            fleet.start("b")
        publisher.publish(1)
        fleet.run(0.2)
    fleet.run(4.0)
    numbers = client.numbers("c1", 1)
    assert numbers == sorted(set(numbers))
    assert numbers[-1] == 40
    items = client.items("c1", 1)
    for i, item in enumerate(items[1:], 1):
        before = items[i - 1]
        if isinstance(item, msg.PubOpen) and isinstance(before, msg.PubOpen):
            assert item.seq == before.seq + 1, "a hole without a gap in its place"


def test_what_is_lost_while_three_heads_are_down_in_turn_is_told():
    """Only a knew what it had, and m has never met a; and c was sent its own gap before that was lost."""
    fleet = tree([("a", "m"), ("m", "c")], lease_seconds=20.0)
    reader, writer = fleet.client("x", "c", "c1"), fleet.client("w", "a")
    reader.tell("c1", resume(1, "s"))
    publisher = Publishing(writer, "a")
    fleet.run(1.0)
    publisher.publish(1)
    fleet.run(0.5)
    fleet.crash("m")
    fleet.crash("c")
    fleet.run(0.2)
    fleet.start("c")
    fleet.run(3.0)
    assert len(reader.of("c1", msg.Epoch)) == 1, "c has told its gap, and waits for m"
    publisher.publish(2)
    fleet.run(0.5)
    assert publisher.accepted == 3
    fleet.crash("a")
    fleet.start("m")
    fleet.run(3.0)
    fleet.start("a")
    fleet.run(5.0)
    assert reader.numbers("c1", 1) == [1]
    assert reader.gaps("c1", 1), "2 and 3 are lost"


def test_covers_and_reports_larger_than_a_frame_travel_in_parts():
    """Many subscriptions: at the edge, across heads, after a lost link, and when their coverer goes."""
    fleet = tree([("a", "b")], max_frame_bytes=100_000)
    client = fleet.client("x", "a1", "b")
    fleet.nodes["x"].max_frame_bytes = 2**20
    count, name = 1500, "a-name-of-some-length-" + 60 * "x"
    items = [msg.SubscriptionItem(i, f"[class,=,'STOCK'],[symbol,=,'{name}-{i}']") for i in range(count)]
    client.tell("a1", msg.Resume(1, "many", (1, 1), 1, [], msg.Policy(), None, []))
    for i in range(0, count, 200):
        client.tell("a1", msg.Subs(1, 2 + i, items[i : i + 200], []))
    fleet.run(1.0)
    assert fleet.head("b").routes.size("a") == count
    client.tell("a1", *[resume(i, f"{name}-{i}") for i in range(2, 600)])
    fleet.run(1.0)
    assert fleet.head("b").routes.size("a") == 1, "one subscription covers all"
    client.tell("a1", *[msg.Detach([i], True) for i in range(2, 600)])
    fleet.run(2.0)
    assert fleet.head("b").routes.size("a") == count, "the cover is announced again in one step"
    client.tell("a1", *[resume(i, f"{name}-{i}", n=3) for i in range(2, 600)])
    fleet.run(1.0)
    for restarted in ("a", "b"):
        fleet.crash(restarted)
        fleet.run(0.2)
        fleet.start(restarted)
        fleet.run(6.0)
        assert fleet.head("b").routes.size("a") == 1
        assert len(fleet.head("a").owners.entries) == 599
    refusals = [key for node in fleet.nodes.values() for key in node.counters if "refused" in key]
    assert refusals == []
