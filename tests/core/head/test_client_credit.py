"""One window for all publishers of a client: how it is divided, what it bounds, and that every one of them goes on."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from plimsoll.core.config import BrokerLimits
from plimsoll.core.head.client_credit import UNUSED_SECONDS, Alarms
from plimsoll.core.head.client_share import FIRST_WINDOW, SILENT_SECONDS, SMALLEST_WINDOW, ClientShares
from plimsoll.core.head.open_publisher import OpenPublisher
from plimsoll.core.head.publishers import PublisherTable
from plimsoll.core.permissions import ClientPermissions
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import Info
from plimsoll.core.transport.link import Link, LinkLimits


@dataclass
class Edge:
    """A link of the head: what it was offered, and what it has acknowledged."""

    key: str
    offered: int = 0
    acked: int = 0

    def ask(self) -> None:
        """Acknowledgements come when the test says so."""


def client_link(name: str, identity: str) -> Link:
    link = Link(
        name.encode(), local=Info("h", "head", 1), limits=LinkLimits(), initiator=False, new_id=lambda: 1, now=0.0
    )
    link.remote, link.identity = Info(name, "client", 1), identity
    return link


@dataclass
class Desk:
    """A table of publishers, the links of its head, and the time."""

    limits: dict[str, Any] = field(default_factory=dict)
    now: float = 0.0
    position: int = 0

    def __post_init__(self) -> None:
        self.edges = {key: Edge(key) for key in ("a", "b")}
        self.table = PublisherTable(BrokerLimits(**self.limits), ClientShares(self.edges))
        self.handles = 0

    def open(self, link: Link, name: str, incarnation: int = 1) -> OpenPublisher:
        self.handles += 1
        assert self.table.open(link, msg.Open(self.handles, name, incarnation), "h", 1, self.now) is not None
        return self.table.by_name[name]

    def publish(self, publisher: OpenPublisher, count: int = 10**9, *keys: str) -> int:
        """Publish what the credit allows, up to a number."""
        count = min(count, publisher.unused)
        for _ in range(count):
            self.position += 1
            self.table.took(publisher, publisher.last_seq + 1, 100, self.now)
            publisher.client.share.needed_by.update(keys or ("a",))
            for key in keys or ("a",):
                if key in self.edges:
                    self.edges[key].offered = self.position
        return count

    def round(self) -> list[str]:
        """The publishers that have got credit in this round."""
        names = {(each.link, each.handle): each.name for each in self.table.by_name.values()}
        return [
            names[link, answer.handle]
            for link, answer in self.table.answers.due(self.now)
            if isinstance(answer, msg.Credit)
        ]

    def acknowledge(self, key: str = "a") -> list[str]:
        self.edges[key].acked = self.edges[key].offered
        self.table.credits.go_on(self.table.credits.shares.acknowledged(self.edges[key], self.now))
        return self.round()


def flood(count: int, **limits: Any) -> tuple[Desk, list[OpenPublisher]]:
    desk, link = Desk(limits), client_link("flood", "ann")
    return desk, [desk.open(link, f"p{i:03}") for i in range(count)]


# -- the division


def test_the_first_publisher_has_the_whole_window_and_each_one_after_it_its_part():
    desk, publishers = flood(4)
    assert [each.through for each in publishers] == [FIRST_WINDOW // n for n in (1, 2, 3, 4)]
    assert desk.round() == []


def test_publishers_of_one_identity_share_over_all_its_links_and_others_do_not():
    desk = Desk()
    one, two = (desk.open(client_link(name, "ann"), name) for name in ("c", "d"))
    other = desk.open(client_link("e", "bob"), "e")
    assert one.client is two.client is not other.client
    assert other.through == FIRST_WINDOW


def test_names_that_were_made_up_are_clients_of_their_own():
    desk = Desk()
    one, two = (desk.open(client_link(name, "~"), name) for name in ("~c", "~d"))
    assert one.client is not two.client
    assert one.through == two.through == FIRST_WINDOW


def test_one_that_publishes_alone_has_what_the_others_do_not_use():
    """Idle publishers keep what they have been given, and no more is given to them."""
    desk, publishers = flood(20, publisher_window=1024)
    busy = publishers[-1]
    for _ in range(12):
        desk.publish(busy)
        desk.round()
        desk.acknowledge()
    idle = sum(each.unused for each in publishers[:-1])
    assert busy.client.share.granted == 1024
    assert busy.unused == 1024 - idle > 512


def test_a_turn_gives_a_window_at_most_and_the_next_one_serves_those_that_were_left():
    desk, publishers = flood(200)
    desk.now = 1.0
    desk.round()
    client = publishers[0].client
    for each in publishers:
        desk.publish(each)
    desk.round()  # nothing was under way before, so nothing is waited for
    for each in publishers:
        desk.publish(each)
    client.share.window, client.share.was_held = SMALLEST_WINDOW, True
    assert desk.round() == []
    served = [desk.acknowledge()]
    for _ in range(24):
        for each in publishers:
            desk.publish(each)
        served.append([*desk.round(), *desk.acknowledge()])
    assert max(map(len, served)) <= 2 * client.share.granted
    assert {name for names in served for name in names} == set(desk.table.by_name)


def test_a_client_with_200_publishers_that_all_publish_has_two_windows_under_way_at_most():
    desk, publishers = flood(200, publisher_window=64)
    desk.now = 1.0
    desk.round()
    most = 0
    for n in range(300):
        for each in publishers:
            desk.publish(each)
        desk.round()
        for each in publishers:
            desk.publish(each)
        if n > 20:
            most = max(most, desk.edges["a"].offered - desk.edges["a"].acked)
        desk.acknowledge()
        desk.now += 0.001
    assert most <= 2 * 64
    assert min(each.last_seq for each in publishers) >= max(each.last_seq for each in publishers) // 2


def test_what_was_never_used_is_bounded_by_the_window_and_one_for_each_publisher():
    """Each asks for more when it is the only one that does, which is when it is given most."""
    desk, publishers = flood(500)
    for _ in range(10):
        for each in publishers:
            desk.publish(each, max(1, each.unused - each.granted // 2))
            desk.round()
            desk.acknowledge()
            desk.now += 0.001
    client = publishers[0].client
    assert client.unused == sum(each.unused for each in publishers)
    assert client.unused <= 1024 * (1 + math.log(500)) + 500
    assert client.unused < 500 * FIRST_WINDOW // 8, "without the sharing, each of them has a window"


def test_credit_that_is_not_used_holds_others_back_for_a_moment_only():
    desk = Desk({"publisher_window": 4})
    link = client_link("c", "ann")
    for i in range(12):
        desk.open(link, f"p{i}")
    waiting = [each for each in desk.table.by_name.values() if not each.through]
    assert waiting
    looks = 0
    while (at := desk.table.answers.wake_at(desk.now)) < 1.0:
        desk.now, looks = at, looks + 1
        desk.round()
    assert all(each.through for each in waiting)
    assert desk.now <= 12 * UNUSED_SECONDS
    assert looks <= 12
    assert desk.table.answers.wake_at(desk.now) == math.inf


def test_a_turn_costs_those_that_get_credit_and_not_those_that_are_open(monkeypatch: pytest.MonkeyPatch):
    desk, publishers = flood(2_000)
    for _ in range(100):
        desk.now += 1.0
        desk.round()
    looked: list[OpenPublisher] = []
    opens_at = OpenPublisher.quota_opens_at

    def look(publisher: OpenPublisher, now: float) -> float:
        looked.append(publisher)
        return opens_at(publisher, now)

    monkeypatch.setattr(OpenPublisher, "quota_opens_at", look)
    for each in publishers[:10]:
        desk.publish(each)
    desk.round()
    assert 10 <= len(looked) <= 50


# -- who comes and goes


def test_a_publisher_that_is_closed_gives_its_credit_back():
    desk, (first, second) = flood(2)
    desk.table.close(first.link, first.handle)  # type: ignore[arg-type]  # it is open
    assert (first.through, first.client.sharers, first.client.unused) == (0, 1, second.unused)
    for i in range(500):
        each = desk.open(client_link("c", "ann"), f"q{i}")
        assert each.through == FIRST_WINDOW // 2
        desk.table.close(each.link, each.handle)  # type: ignore[arg-type]  # it is open


def test_one_whose_link_was_lost_keeps_its_credit_which_counts():
    desk, publishers = flood(64)
    through = [each.through for each in publishers]
    client = publishers[0].client
    desk.table.lost(publishers[0].link)  # type: ignore[arg-type]  # it is open
    assert client.unused == sum(through)
    link = client_link("again", "ann")
    assert [desk.open(link, each.name).through for each in publishers] == through
    assert desk.open(link, "new").through == FIRST_WINDOW // 65


def test_a_newer_incarnation_does_not_have_the_credit_of_the_one_before():
    desk, publishers = flood(3)
    again = desk.open(client_link("c", "ann"), "p000", 2)
    client = again.client
    assert client is publishers[1].client
    assert (client.publishers, client.sharers) == (3, 3)
    assert client.unused == sum(each.unused for each in desk.table.by_name.values())


def test_clients_are_forgotten_with_their_last_publisher():
    desk = Desk()
    for i in range(100):
        link = client_link(f"~{i}", "~")
        desk.open(link, f"p{i}")
        desk.table.lost(link)
    assert len(desk.table.credits.by_name) == 100
    desk.table.forget_idle(1000.0, 300.0)
    assert desk.table.credits.by_name == {}
    assert desk.round() == []


def test_a_client_that_comes_back_under_another_made_up_name_has_what_it_had_under_way():
    desk = Desk()
    publisher = desk.open(client_link("~c", "~"), "p")
    for _ in range(2):
        desk.publish(publisher)
        desk.round()
    assert publisher.client.share.is_held
    again = desk.open(client_link("~d", "~"), "p", 2)
    assert (again.through, list(desk.table.credits.by_name)) == (0, ["~d"])
    assert desk.acknowledge() == ["p"]


# -- quotas


def test_a_quota_of_a_publishers_own_holds_that_one_alone():
    desk, (one, two) = flood(2, publisher_rate_per_second=10.0)
    desk.publish(one, 10)
    desk.round()
    assert desk.table.credits.times_held == 1
    desk.publish(two, 6)
    assert desk.round() == ["p001"]
    assert desk.acknowledge() == []
    desk.now = desk.table.answers.wake_at(desk.now)
    assert desk.now == pytest.approx(0.1, abs=0.01)
    assert desk.round() == ["p000"]


def test_above_the_quota_of_their_identity_all_wait_together_with_one_alarm():
    desk, link = Desk(), client_link("c", "ann")
    link.grant = ClientPermissions("ann", publications_per_second=50.0)
    publishers = [desk.open(link, f"p{i}") for i in range(100)]
    desk.now = 1.0
    desk.round()
    while sum(desk.publish(each) for each in publishers):
        desk.round()
    assert len(publishers[0].client.asking) == 100
    assert desk.table.credits._held.next_at == math.inf
    desk.now = desk.table.answers.wake_at(desk.now)
    assert sorted(desk.round()) == sorted(desk.table.by_name)


def test_an_alarm_is_at_the_earliest_time_that_was_asked_for():
    alarms = Alarms[str]()
    for at in (3.0, 1.0, 2.0):
        alarms.set("x", at)
    assert alarms.next_at == 1.0
    assert alarms.due(1.0) == ["x"]
    assert alarms.due(5.0) == []
    assert alarms.next_at == math.inf


# -- any order of events


class Walk:
    """Clients with many publishers, and links that acknowledge, stall, go and come; some publishers are idle."""

    def __init__(self, seed: int) -> None:
        self.draw = draw = random.Random(seed)
        limits: dict[str, Any] = {"publisher_window": draw.choice([1, 3, 16, 200, 1024])}
        if draw.random() < 0.3:
            limits["publisher_rate_per_second"] = draw.choice([5.0, 100.0])
        self.desk = Desk(limits)
        self.away: dict[str, Edge] = {}
        self.links = [client_link(f"~{i}", draw.choice(["ann", "bob", "~"])) for i in range(5)]
        self.owners: dict[str, str] = {}
        quota = draw.choice([None, None, 20.0, 500.0])
        for link in self.links:
            if link.identity == "ann":
                link.grant = ClientPermissions("ann", publications_per_second=quota)
        self.incarnation = 1
        for i in range(draw.choice([1, 5, 40])):
            self.open(f"p{i}")

    def open(self, name: str) -> None:
        link = self.draw.choice(self.links)
        if self.owners.setdefault(name, link.identity) != link.identity:
            return
        known = self.desk.table.by_name.get(name)
        self.incarnation += 1
        if known is None or self.draw.random() < 0.5:
            self.desk.open(link, name, self.incarnation)
        else:
            self.desk.open(link, name, known.incarnation)

    def step(self) -> None:
        draw, desk, table = self.draw, self.desk, self.desk.table
        every = list(table.by_name.values())
        match draw.choice(["publish"] * 4 + ["ack"] * 3 + ["pass"] * 2 + ["lose", "back", "open", "close", "drop"]):
            case "publish":
                for each in draw.sample(every, draw.randint(1, len(every))):
                    if each.link is not None:
                        desk.publish(each, draw.choice([1, 5, 10**9]), *draw.choice([("a",), ("b",), ("a", "b")]))
            case "ack" if desk.edges:
                edge = draw.choice(list(desk.edges.values()))
                edge.acked += math.ceil((edge.offered - edge.acked) * draw.random())
                table.credits.go_on(table.credits.shares.acknowledged(edge, desk.now))
            case "lose" if desk.edges:
                key = draw.choice(list(desk.edges))
                self.away[key] = desk.edges.pop(key)
                table.credits.go_on(table.credits.shares.lost(key, desk.now))
            case "back":
                desk.edges.update(self.away)
                self.away.clear()
            case "open":
                self.open(f"p{draw.randrange(60)}")
            case "close":
                each = draw.choice(every)
                if each.link is not None:
                    table.close(each.link, each.handle)
            case "drop":
                table.lost(draw.choice(self.links))
            case "pass":
                self.let_pass(desk.now + draw.choice([0.001, 0.05, 0.7]))
        if draw.random() < 0.7:
            desk.round()

    def let_pass(self, until: float) -> None:
        """Look only when the table has asked for that."""
        desk = self.desk
        for _ in range(3_000):
            if (at := desk.table.answers.wake_at(desk.now)) > until:
                break
            desk.now = at
            desk.round()
        else:
            raise AssertionError("it wakes without an end")
        desk.now = until

    def check(self) -> None:
        table = self.desk.table
        for client in table.credits.by_name.values():
            own = [each for each in table.by_name.values() if each.client is client]
            sharers = [each for each in own if each.is_sharer]
            assert (client.publishers, client.sharers) == (len(own), len(sharers))
            assert client.unused == sum(each.unused for each in sharers)
            assert all(each.client is client and each.link is not None for each in client.asking)
            largest = table.limits.publisher_window
            assert client.unused <= largest * (1 + math.log(len(own))) + len(own)
        assert all(each.client is table.credits.by_name[each.client.name] for each in table.by_name.values())


@pytest.mark.parametrize("part", range(4))
def test_in_no_order_of_events_does_a_publisher_wait_for_ever(part: int):
    """In the end no link acknowledges anything; credit must come through the wake-ups that the table asks for."""
    for seed in range(part * 150, part * 150 + 150):
        walk = Walk(seed)
        desk = walk.desk
        for _ in range(60):
            walk.step()
            walk.check()
        desk.round()
        for _ in range(2):
            idle = walk.draw.sample(sorted(desk.table.by_name), len(desk.table.by_name) // 2)
            walk.let_pass(desk.now + SILENT_SECONDS + 20.0)
            busy = [each for each in desk.table.by_name.values() if each.link is not None]
            assert all(each.unused > 0 for each in busy), f"seed {seed}: one has no credit, and none comes"
            for each in busy:
                if each.name not in idle:
                    desk.publish(each, 5, "a", "b")
            desk.round()
            walk.check()
