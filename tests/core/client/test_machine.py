"""The client machine against real heads and edges, over a wire in memory."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any
from unittest import mock

import pytest

from plimsoll.core.client import (
    Acknowledged,
    Answered,
    Attached,
    Client,
    Detached,
    Forgotten,
    GapNotice,
    Renumbered,
)
from plimsoll.core.config import BrokerConfig, BrokerLimits, PeerBroker
from plimsoll.core.edge import subscription_table
from plimsoll.core.edge.attachment import AttachmentState
from plimsoll.core.edge.machine import Edge
from plimsoll.core.head.machine import Head
from plimsoll.core.permissions import NO_PERMISSIONS
from plimsoll.core.policies.placement import PlacementTarget, PlacementUnit

EDGES = ("e1", "e2")


class Cluster:
    """A head, two edges, and a client with one publisher."""

    def __init__(self, kit: Any, seed: int = 1, **limits: Any) -> None:
        self.kit, self.draw = kit, random.Random(seed)
        self.limits = BrokerLimits(lease_seconds=3.0, **limits)
        self.wire = kit.wire()
        self.epoch = 10
        self.head: Head = self.start_head()
        self.edges: dict[str, Edge] = {name: self.start_edge(name) for name in EDGES}
        self.client: Client = self.wire.add(kit.client())
        self.app = kit.app(self.client)

    def start_head(self) -> Head:
        self.epoch += 1
        config = BrokerConfig(
            name="h",
            role="head",
            cluster="c",
            data="tcp://head",
            control="tcp://head:c",
            edges=EDGES,
            limits=self.limits,
        )
        return self.wire.add(Head(config, self.epoch, self._id), config.data, config.control)

    def start_edge(self, name: str) -> Edge:
        self.epoch += 1
        head = PeerBroker(name="h", data="tcp://head", control="tcp://head:c")
        data = f"tcp://{name}"
        config = BrokerConfig(
            name=name, role="edge", cluster="c", data=data, control=f"{data}:c", head=head, limits=self.limits
        )
        return self.wire.add(Edge(config, self.epoch, self._id), config.data, config.control)

    def _id(self) -> int:
        return self.draw.getrandbits(32)

    def run(self, seconds: float) -> None:
        self.wire.run(seconds)
        self.app.take()

    def subscribe(self, name: str, text: str = "[n,>,0]", **options: Any) -> Any:
        subscriber = self.client.subscriber(name, **options)
        subscriber.subscribe(text)
        self.wire.run(20, until=lambda: self.app.of(Acknowledged, name))
        return subscriber

    def publish(self, publisher: Any, *values: int) -> None:
        for n in values:
            publisher.publish({"n": n}, sent_us=0)

    def numbers(self, name: str) -> list[int]:
        return [each.attributes["n"] for each in self.app.of(self.kit.delivery, name)]


@pytest.fixture
def cluster(kit: Any) -> Cluster:
    return Cluster(kit)


def test_what_matches_is_delivered_and_everything_is_answered(cluster: Cluster):
    subscriber = cluster.subscribe("s", "[n,>,3]")
    publisher = cluster.client.publisher("p")
    cluster.publish(publisher, *range(10))
    cluster.run(1.0)
    assert cluster.numbers("s") == [4, 5, 6, 7, 8, 9]
    assert cluster.app.of(Answered) == [Answered(1, 10, "accepted", publisher.incarnation, 1)]
    assert subscriber.token == ("h", 11, 10)
    assert subscriber.statistics()["delivered"] == 6


def test_many_subscribers_share_a_link_for_each_edge(cluster: Cluster):
    names = [f"s{i}" for i in range(40)]
    for name in names:
        cluster.client.subscriber(name).subscribe("[n,>,0]")
    cluster.wire.run(20, until=lambda: len(cluster.app.of(Acknowledged)) == 40)
    cluster.publish(cluster.client.publisher("p"), 1, 2, 3)
    cluster.run(1.0)
    assert {tuple(cluster.numbers(name)) for name in names} == {(1, 2, 3)}
    assert len(cluster.client.links) == 1 + len(EDGES)


def test_an_edge_that_dies_is_left_for_another_without_loss_or_repetition(cluster: Cluster):
    subscriber = cluster.subscribe("s")
    publisher = cluster.client.publisher("p")
    cluster.publish(publisher, 1, 2, 3)
    cluster.run(1.0)
    edge = cluster.app.of(Attached)[-1].edge
    cluster.wire.remove(cluster.edges[edge])
    cluster.publish(publisher, 4, 5, 6)
    cluster.wire.run(30, until=lambda: len(cluster.app.of(Attached)) == 2)
    cluster.publish(publisher, 7)
    cluster.run(3.0)
    assert cluster.app.of(Attached)[-1].edge != edge
    assert cluster.numbers("s") == [1, 2, 3, 4, 5, 6, 7]
    assert cluster.app.of(GapNotice) == []
    assert subscriber.statistics()["reconnects"] == 1


def test_a_lost_connection_is_not_noticed(cluster: Cluster):
    cluster.subscribe("s")
    publisher = cluster.client.publisher("p")
    for n in range(1, 40, 2):
        cluster.publish(publisher, n, n + 1)
        cluster.wire.round()
        cluster.wire.drop("tcp://head", "tcp://e1", "tcp://e2")
        cluster.run(0.01 * n)
    cluster.run(15.0)
    assert cluster.numbers("s") == list(range(1, 41))
    assert sum(each.last - each.first + 1 for each in cluster.app.of(Answered)) == 40
    assert {each.answer for each in cluster.app.of(Answered)} == {"accepted"}
    assert cluster.app.of(Detached) == []


def test_an_edge_that_leaves_sends_its_subscribers_on(cluster: Cluster):
    subscriber = cluster.subscribe("s")
    publisher = cluster.client.publisher("p")
    cluster.publish(publisher, 1, 2)
    cluster.run(0.5)
    cluster.edges[cluster.app.of(Attached)[-1].edge].leave(cluster.wire.now)
    cluster.publish(publisher, 3)
    cluster.run(3.0)
    cluster.publish(publisher, 4)
    cluster.run(1.0)
    assert cluster.numbers("s") == [1, 2, 3, 4]
    assert subscriber.statistics()["redirects"] == 1
    assert cluster.app.of(GapNotice) == []


def test_a_head_that_restarts_leaves_no_publication_without_an_answer(cluster: Cluster):
    cluster.subscribe("s")
    publisher = cluster.client.publisher("p")
    cluster.publish(publisher, 1, 2)
    cluster.run(1.0)
    cluster.publish(publisher, 3)
    cluster.wire.remove(cluster.head)
    cluster.publish(publisher, 4)
    cluster.head = cluster.start_head()
    cluster.run(20.0)
    cluster.publish(publisher, 5)
    cluster.run(2.0)
    answers = {n: each.answer for each in cluster.app.of(Answered) for n in range(each.first, each.last + 1)}
    assert answers == {1: "accepted", 2: "accepted", 3: "unknown", 4: "unknown", 5: "accepted"}
    assert cluster.numbers("s") == [1, 2, 5]
    assert [each.reason for each in cluster.app.of(GapNotice)] == ["restart"]
    assert cluster.app.of(Renumbered) == [Renumbered(5, publisher.incarnation)]
    assert cluster.app.of(kit_delivery(cluster))[-1].identity == ("p", publisher.incarnation, 1)


def kit_delivery(cluster: Cluster) -> Any:
    return cluster.kit.delivery


def test_a_withdrawn_subscription_is_forgotten(cluster: Cluster):
    subscriber = cluster.subscribe("s", "[n,>,5]")
    second = subscriber.subscribe("[n,<,3]")
    subscriber.unsubscribe(1)
    cluster.wire.run(5, until=lambda: cluster.app.of(Forgotten))
    cluster.publish(cluster.client.publisher("p"), 1, 4, 9)
    cluster.run(1.0)
    assert cluster.app.of(Forgotten) == [Forgotten((1,))]
    assert cluster.app.of(Acknowledged)[-1].ids == (second,)
    assert cluster.numbers("s") == [1]


def test_a_paused_subscriber_disturbs_no_other_and_gets_everything_later(cluster: Cluster):
    cluster.subscribe("fast", prefer="e1")
    slow = cluster.subscribe("slow", prefer="e1")
    slow.pause()
    publisher = cluster.client.publisher("p")
    cluster.run(0.1)
    cluster.publish(publisher, *range(1, 200))
    cluster.run(1.0)
    assert cluster.numbers("fast") == list(range(1, 200))
    assert len(cluster.numbers("slow")) == 0
    slow.resume()
    cluster.run(1.0)
    assert cluster.numbers("slow") == list(range(1, 200))


def test_an_application_that_does_not_take_its_deliveries_is_paused_alone(cluster: Cluster, kit: Any):
    slow = cluster.subscribe("slow", holds=True)
    slow.stream.queue.high_records = 50
    cluster.subscribe("fast")
    publisher = cluster.client.publisher("p")
    for start in range(1, 401, 20):
        cluster.publish(publisher, *range(start, start + 20))
        cluster.run(0.1)
    assert 50 < slow.stream.queue.depth < 100
    assert len(cluster.numbers("fast")) == 400
    while slow.stream.queue.depth:
        slow.stream.queue.consumed(10)
        cluster.run(0.2)
    assert cluster.numbers("slow") == list(range(1, 401))
    assert slow.statistics()["pauses"] >= 1


def test_closing_leaves_nothing_behind(cluster: Cluster):
    cluster.subscribe("s")
    cluster.client.publisher("p")
    cluster.run(1.0)
    cluster.client.close_all(cluster.wire.now)
    cluster.run(1.0)
    assert cluster.client.is_quiet
    cluster.client.leave(cluster.wire.now)
    cluster.run(1.0)
    assert cluster.client.links == {}
    assert [edge.status()["cover"] for edge in cluster.edges.values()] == [0, 0]
    assert cluster.head.status()["subscribers"] == 0


def test_the_brokers_of_what_a_fault_has_ended_are_told(cluster: Cluster, kit: Any):
    subscriber, other = cluster.subscribe("a"), cluster.subscribe("b")
    publisher, bad = cluster.client.publisher("p"), cluster.client.publisher("q")
    cluster.run(2.0)
    served = [edge for edge in cluster.edges.values() if "a" in edge.attachments.by_subscriber]

    def fault(*_: Any) -> None:
        raise RuntimeError("broken")

    subscriber.current.take = fault
    cluster.publish(publisher, 1)
    cluster.client.guard(bad, fault)
    cluster.run(1.0)
    assert [each.failed and each.failed.code for each in (subscriber, bad, other)] == ["fault", "fault", None]
    assert cluster.numbers("b") == [1]
    assert [edge.attachments.by_subscriber["a"].state for edge in served] == [AttachmentState.CLOSED]
    assert [each.link is None for each in cluster.head.publishers.by_name.values()] == [False, True]


def test_an_idle_link_to_an_edge_is_closed(cluster: Cluster):
    cluster.subscribe("s").close()
    cluster.run(3.0)
    assert len(cluster.client.links) == 1


def test_a_token_and_watermarks_carry_over_to_the_next_life(cluster: Cluster, kit: Any):
    subscriber = cluster.subscribe("s")
    publisher = cluster.client.publisher("p")
    cluster.publish(publisher, 1, 2, 3)
    cluster.run(1.0)
    token, marks = subscriber.token, subscriber.stream.marks()
    subscriber.close(withdraw=False)
    cluster.publish(publisher, 4, 5)
    cluster.run(1.0)
    again = cluster.client.subscriber("s", token=token, watermarks=marks)
    again.number = 10
    again.subscribe("[n,>,0]")
    cluster.run(2.0)
    assert cluster.numbers("s") == [1, 2, 3, 4, 5]
    assert cluster.app.of(GapNotice) == []


def test_who_may_not_subscribe_or_publish_is_told_for_good(cluster: Cluster):
    for broker in cluster.wire.nodes:
        broker.grant_of = lambda peer: NO_PERMISSIONS
    subscriber, publisher = cluster.client.subscriber("s"), cluster.client.publisher("p")
    subscriber.subscribe("[n,>,0]")
    publisher.publish({"n": 1}, sent_us=0)
    cluster.run(2.0)
    assert subscriber.failed is not None
    assert publisher.failed is not None
    assert (subscriber.failed.code, publisher.failed.code) == ("role", "role")
    assert "may not subscribe" in subscriber.failed.text
    assert "may not publish" in publisher.failed.text


def test_where_a_subscriber_is_goes_with_its_join(cluster: Cluster):
    class Recording:
        def __init__(self) -> None:
            self.locations: list[Any] = []

        def place(self, unit: PlacementUnit, ports: Sequence[PlacementTarget]) -> PlacementTarget | None:
            self.locations.append(unit.location)
            return ports[0]

    cluster.head.placement.placer = recording = Recording()
    cluster.subscribe("s", location=(33.5, -117.75))
    cluster.subscribe("t")
    assert recording.locations == [(33.5, -117.75), None]


def test_a_location_that_is_none_is_refused(cluster: Cluster):
    with pytest.raises(ValueError, match="two finite coordinates"):
        cluster.client.subscriber("s", location=(float("nan"), 0.0))


def test_nothing_that_is_published_behind_an_acknowledged_withdrawal_is_delivered_for_it(cluster: Cluster):
    """The withdrawals before it are spread over many rounds of the edge, and so is its own."""
    subscriber = cluster.subscribe("s", "[n,>,9000]")
    ids = [subscriber.subscribe(f"[n,=,{n}]") for n in range(201)]
    cluster.wire.run(20, until=lambda: subscriber.is_acknowledged)
    publisher = cluster.client.publisher("p")
    cluster.publish(publisher, *range(201))
    cluster.run(1.0)
    with mock.patch.object(subscription_table, "REMOVED_CONSTRAINTS", 1):  # so few in each round
        for each in ids:
            subscriber.unsubscribe(each)
        cluster.wire.run(20, until=lambda: any(ids[-1] in each.ids for each in cluster.app.of(Forgotten)))
        (edge,) = (each for each in cluster.edges.values() if "s" in each.attachments.by_subscriber)
        assert len(edge.index) > 100, "the edge is still taking them out of its index"
        cluster.publish(publisher, *(n % 201 for n in reversed(range(5000))), 9001)
        cluster.wire.run(60, until=lambda: 9001 in cluster.numbers("s"))
    assert cluster.numbers("s") == [*range(201), 9001]
