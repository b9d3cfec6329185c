"""Publishers of a real head whose edges and neighbours are slow, stop, go and come back, in virtual time."""

from __future__ import annotations

import random

import pytest
from tests.core.fleet import Client, Fleet, Publishing, one_cluster, resume

from plimsoll.core.head.client_share import FIRST_WINDOW
from plimsoll.core.protocol import messages as msg


def publish_all(client: Client, publisher: Publishing, count: int) -> None:
    """Publish what the credit allows, up to a number."""
    said = [r for r in client.heard["h"] if isinstance(r, msg.Opened | msg.Credit) and r.handle == publisher.handle]
    credit = max((each.through for each in said), default=0)
    publisher.publish(max(0, min(count, credit) - publisher.seq))


def flood_until(fleet: Fleet, client: Client, publisher: Publishing, count: int, seconds: float) -> None:
    until = fleet.now + seconds
    while fleet.now < until and publisher.accepted < count:
        publish_all(client, publisher, count)
        fleet.run(0.02)


def two_publishers(identity: str = "app") -> tuple[Fleet, Client, Publishing, Publishing]:
    """Of one client; of two if they have no keys."""
    fleet = one_cluster(edges=2)
    fleet.identity = identity
    client, light = fleet.client("c", "h", "e1", "e2"), fleet.client("d", "h")
    client.tell("e1", resume(1, "s1"))
    flood, quiet = Publishing(client, "h", "flood"), Publishing(light, "h", "quiet")
    fleet.run(0.5)
    return fleet, client, flood, quiet


def test_a_flood_waits_for_a_slow_edge_and_leaves_room_for_the_other_publisher():
    """Acknowledgements of the edge come late; what is under way to it stays within two windows of the flood."""
    fleet, client, flood, quiet = two_publishers(identity="")
    head = fleet.head()
    most = 0
    for n in range(100):
        fleet.freeze("e1")
        publish_all(client, flood, 10**6)
        fleet.run(0.02)
        publish_all(client, flood, 10**6)
        fleet.run(0.1)
        publish_all(client, flood, 10**6)
        outbox = next(o for o in head.outboxes.by_key.values() if o.name == "e1")
        most = max(most, outbox.offered - outbox.acked) if n > 20 else 0
        quiet.publish()
        fleet.thaw("e1")
        fleet.run(0.01)
    assert most <= 3 * FIRST_WINDOW, "without the wait, the whole backlog of the flood"
    assert head.publishers.credits.times_held_for_links > 20
    share = head.publishers.by_name["flood"].client.share
    assert share.granted <= 2 * FIRST_WINDOW
    assert head.publishers.by_name["quiet"].client.share.was_held is False
    assert quiet.accepted == 100


def test_an_edge_that_stands_still_again_and_again_does_not_set_the_pace():
    """It is busy with what a subscriber asks for. After a burst the other edge gets 200 publications a second still."""
    fleet, client, steady, _ = two_publishers()
    other = fleet.client("o", "e2")
    other.tell("e2", resume(1, "s2"))
    fleet.run(0.5)
    due = 0
    for n in range(900):
        (fleet.freeze if n % 44 == 0 else fleet.thaw if n % 44 == 40 else str)("e1")
        due += 2 if n else 3_000
        publish_all(client, steady, due)
        fleet.run(0.01)
    assert due - steady.seq <= 10, "with a window that each stand-still cuts further, more and more"
    fleet.run(0.5)
    assert len(other.of("e2", msg.Deliver)) == due


@pytest.mark.parametrize("fault", ["freeze", "crash", "cut", "restart"])
def test_an_edge_that_stops_stops_no_publisher(fault: str):
    fleet, client, flood, _ = two_publishers()
    flood_until(fleet, client, flood, 2_000, 5.0)
    assert flood.accepted == 2_000
    match fault:
        case "freeze":
            fleet.freeze("e1")
        case "cut":
            fleet.cut("h", "e1")
        case "crash":
            fleet.crash("e1")
        case _:
            fleet.crash("e1")
            fleet.start("e1")
    flood_until(fleet, client, flood, 6_000, 20.0)
    assert flood.accepted == 6_000
    assert fleet.head().publishers.credits.times_held_for_links or fault == "restart", "the links are waited for"


def test_a_publisher_that_opens_again_while_it_is_held_goes_on_at_its_new_link():
    fleet, client, flood, _ = two_publishers()
    flood_until(fleet, client, flood, 1_000, 2.0)
    fleet.freeze("e1")
    for _ in range(20):
        publish_all(client, flood, 10**6)
        fleet.run(0.02)
    assert fleet.head().publishers.by_name["flood"].client.share.is_held
    again = fleet.client("c2", "h")
    again.tell("h", msg.Open(5, "flood", 1))
    fleet.run(0.05)
    opened = again.of("h", msg.Opened)[0]
    assert opened.through == opened.last_seq, "it is held here, too"
    fleet.thaw("e1")
    fleet.run(0.1)
    assert again.of("h", msg.Credit)[0].through > opened.through


def test_a_newer_incarnation_inherits_what_links_have_still_to_acknowledge():
    fleet, client, flood, _ = two_publishers()
    flood_until(fleet, client, flood, 1_000, 2.0)
    fleet.freeze("e1")
    for _ in range(20):
        publish_all(client, flood, 10**6)
        fleet.run(0.02)
    client.tell("h", msg.Open(7, "flood", 2))
    fleet.run(0.05)
    assert [each.through for each in client.of("h", msg.Opened) if each.handle == 7] == [0]
    fleet.run(1.1)
    assert [each.through > 0 for each in client.of("h", msg.Credit) if each.handle == 7] == [True]


# -- any order of faults


class Unrest:
    """A head with two edges and a neighbour, which has an edge too; each step something happens to one of them."""

    def __init__(self, seed: int, identity: str, publishers: int) -> None:
        self.draw = random.Random(seed)
        self.fleet = Fleet(seed, {"lease_seconds": 2.0, "window_bytes": 4_000, "publisher_window": 32})
        self.fleet.cluster("h", ["e1", "e2"], neighbors=("k",))
        self.fleet.cluster("k", ["f1"], neighbors=("h",))
        self.fleet.identity = identity
        self.fleet.start()
        self.fleet.run(1.0)
        self.publishers: list[tuple[Client, Publishing]] = []
        for i in range(publishers):
            client = self.fleet.client(f"~c{i}", "h")
            self.publishers.append((client, Publishing(client, "h", f"p{i}")))
        self.subscribe()

    def subscribe(self) -> None:
        for edge in ("e1", "e2", "f1"):
            if edge in self.fleet.nodes and edge not in self.fleet.frozen:
                name = f"s{self.draw.randrange(10**9)}"
                client = self.fleet.client(name, edge)
                client.tell(edge, resume(1, name))

    def step(self) -> None:
        fleet, draw = self.fleet, self.draw
        name = draw.choice(["e1", "e2", "k", "f1"])
        match draw.choice(["freeze", "thaw", "crash", "cut", "mend", "subscribe", "open", "nothing"]):
            case "freeze":
                fleet.freeze(name)
            case "thaw":
                fleet.thaw(name)
            case "crash" if name in fleet.nodes:
                fleet.crash(name)
                if draw.random() < 0.7:
                    fleet.start(name)
            case "cut":
                fleet.cut("h", name)
            case "mend":
                fleet.mend("h", name)
            case "subscribe":
                self.subscribe()
            case "open":
                self.open_again()
        for _ in range(3):
            for client, publisher in self.publishers:
                publish_all(client, publisher, 10**6)
            fleet.run(draw.choice([0.01, 0.05, 0.3]))

    def open_again(self) -> None:
        """On another link, in the same incarnation or the next."""
        i = self.draw.randrange(len(self.publishers))
        _, old = self.publishers[i]
        client = self.fleet.client(f"~c{self.draw.randrange(10**9)}", "h")
        publisher = Publishing(client, "h", old.name, 1, old.incarnation + self.draw.randrange(2))
        self.fleet.run(0.1)
        opened = client.of("h", msg.Opened)
        if opened:
            publisher.seq = opened[0].last_seq
            self.publishers[i] = client, publisher


@pytest.mark.parametrize(("identity", "publishers"), [("app", 3), ("", 3), ("app", 40)])
@pytest.mark.parametrize("seed", range(3))
def test_whatever_links_do_no_publisher_stands_still_for_more_than_a_second(seed: int, identity: str, publishers: int):
    """Of one client or of several whose names were made up; 40 have more publishers than a window has numbers."""
    unrest = Unrest(seed, identity, publishers)
    fleet, head = unrest.fleet, unrest.fleet.head()
    for _ in range(8):
        unrest.step()
        assert head.publishers.answers.wake_at(fleet.now) >= fleet.now
    before = {publisher.name: publisher.seq for _, publisher in unrest.publishers}
    fleet.run(1.1)
    for client, publisher in unrest.publishers:
        publish_all(client, publisher, 10**6)
        assert publisher.seq > before[publisher.name], "it has no credit, a second after the last change"
    fleet.run(0.5)
    for client, publisher in unrest.publishers:
        assert publisher.accepted == publisher.seq
        assert client.of("h", msg.Refused) == []
