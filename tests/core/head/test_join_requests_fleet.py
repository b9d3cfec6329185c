"""A cluster without an edge for subscribers: the other clusters serve them, at the price of a gap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.core.fleet import Fleet, tree

from plimsoll.core.client import Address, Client, ClientLimits, ClientSubscriber, Delivery, GapNotice
from plimsoll.core.head.join_requests import PATIENCE_SECONDS
from plimsoll.core.transport.link import LinkLimits

STREAM_SECONDS = 3.0
LIMITS = ClientLimits(
    link=LinkLimits(heartbeat_seconds=0.5, dead_seconds=2.0), stream_seconds=STREAM_SECONDS, attach_seconds=1.0,
    answer_seconds=4.0, away_seconds=1.0, backoff_max_seconds=0.5,
)  # fmt: skip
SEEK_SECONDS = PATIENCE_SECONDS + STREAM_SECONDS + 4.0
"""To see that the edge is gone, to insist on the stream, and to find an edge elsewhere."""


class Play:
    """Clusters `a`, `b`, `c` in a chain. Subscribers live with `a`, and a publisher with `c`."""

    def __init__(self, *names: str, lease_seconds: float = 0.0) -> None:
        self.fleet: Fleet = tree([("a", "b"), ("b", "c")])
        self.apps = Client("apps", 1, self.fleet.ids(), [Address("mem://a")], LIMITS)
        self.feed = Client("feed", 1, self.fleet.ids(), [Address("mem://c")], LIMITS)
        for client in (self.apps, self.feed):
            client.now = self.fleet.now
            self.fleet.nodes[client.info.name] = client
        self.told: dict[str, list[Any]] = {name: [] for name in names}
        self.subscribers = {name: self.apps.subscriber(name, lease_seconds=lease_seconds) for name in names}
        for subscriber in self.subscribers.values():
            subscriber.subscribe("[n,>,0]")
        self.publisher = self.feed.publisher("p")
        self.said = 0

    def run(self, seconds: float) -> None:
        """Let time pass, with a publication every 50 ms."""
        for _ in range(round(seconds * 20)):
            self.said += 1
            self.publisher.publish({"n": self.said}, sent_us=0)
            self.fleet.run(0.05)
            self.feed.take_events()
            for owner, events in self.apps.take_events():
                self.told.setdefault(owner.name, []).extend(events)

    def run_until(self, reached: Callable[[], bool], seconds: float) -> None:
        end = self.fleet.now + seconds
        while not reached():
            assert self.fleet.now < end
            self.run(0.1)

    def close(self, *clusters: str) -> None:
        """Cordon the edges of these clusters, and start their processes again."""
        for name in clusters:
            self.fleet.head(name).placement.cordoned = frozenset({f"{name}1"})
            self.fleet.crash(f"{name}1")
            self.fleet.start(f"{name}1")

    def edge(self, name: str) -> str:
        return edge_of(self.subscribers[name])

    def numbers(self, name: str) -> list[int]:
        return [each.attributes["n"] for each in self.told[name] if isinstance(each, Delivery)]

    def gaps(self, name: str) -> list[GapNotice]:
        return [each for each in self.told[name] if isinstance(each, GapNotice)]


def edge_of(subscriber: ClientSubscriber) -> str:
    return str(subscriber.statistics()["edge"] or "")


@pytest.mark.parametrize("lease_seconds", [0.0, 600.0])
def test_subscribers_of_a_cluster_without_an_open_edge_are_served_by_another_one(lease_seconds: float):
    play = Play("x", "y", lease_seconds=lease_seconds)
    play.run(1.0)
    assert [play.edge("x"), play.edge("y")] == ["a1", "a1"]
    play.close("a", "b")
    play.run_until(lambda: [play.edge("x"), play.edge("y")] == ["c1", "c1"], SEEK_SECONDS)
    first = play.said + 20
    play.run(3.0)
    for name in ("x", "y"):
        numbers = play.numbers(name)
        assert len(play.gaps(name)) == 1
        assert numbers == sorted(set(numbers)), "nothing is repeated"
        assert set(range(first, play.said - 10)) <= set(numbers), "all that came since is here"
    play.fleet.head("a").placement.cordoned = frozenset()
    play.run(2.0)
    assert play.edge("x") == "c1", "who is served stays"


def test_newcomers_wait_a_little_for_an_edge_at_home():
    play = Play("x")
    play.run(1.0)
    play.close("a")
    late = play.apps.subscriber("late")
    late.subscribe("[n,>,0]")
    play.run(PATIENCE_SECONDS - 1.0)
    assert edge_of(late) == ""
    play.run_until(lambda: edge_of(late) == "b1", 5.0)
    play.run(1.0)
    numbers = play.numbers("late")
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
