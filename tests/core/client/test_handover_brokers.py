"""The client machine, moved by real heads and real edges at the command of a mediator."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.fleet import Fleet, Mediator, one_cluster, tree

from plimsoll.core.client import (
    Acknowledged,
    Address,
    Attached,
    Client,
    ClientLimits,
    Delivery,
    Detached,
    Forgotten,
    GapNotice,
)
from plimsoll.core.protocol import messages as msg
from plimsoll.core.transport.link import LinkLimits

NAMES = ("x", "y", "z")


class Play:
    """An application with a publisher and three subscribers at `source`, and a mediator of its head."""

    def __init__(self, fleet: Fleet, source: str, *targets: str, head: str = "h", others: tuple[str, ...] = ()) -> None:
        self.fleet, self.source, self.head = fleet, source, head
        limits = ClientLimits(link=LinkLimits(heartbeat_seconds=0.5, dead_seconds=2.0), backoff_seconds=0.05)
        self.client = Client("app", 7, fleet.ids(), [Address(f"mem://{head}")], limits)
        self.publishing = Client("feed", 7, fleet.ids(), [Address(f"mem://{others[0] if others else head}")], limits)
        for client in (self.client, self.publishing):
            client.now = fleet.now
            fleet.nodes[client.info.name] = client
        self.told: dict[str, list[Any]] = {name: [] for name in NAMES}
        self.subscribers = {name: self.client.subscriber(name, prefer=source) for name in NAMES}
        for subscriber in self.subscribers.values():
            subscriber.subscribe("[n,>,0]")
        self.publisher = self.publishing.publisher("p")
        self.mediator: Mediator = fleet.mediator(head)
        self.number = self.said = 0
        self.run(1.0, publish=False)
        assert {s.current.port.edge for s in self.subscribers.values() if s.current} == {source}

    def run(self, seconds: float, publish: bool = True) -> None:
        """Let time pass, with a publication every 10 ms."""
        for _ in range(round(seconds * 100)):
            if publish:
                self.said += 1
                self.publisher.publish({"n": self.said}, sent_us=0)
            self.fleet.run(0.01)
            self.publishing.take_events()
            for owner, events in self.client.take_events():
                self.told[owner.name] += events

    def command(self, step: Any, target: str, *, head: str = "", replay: bool = False, seconds: float = 0.3) -> None:
        plan = None
        if step == "prepare":
            self.number += 1
            plan = msg.HandoverPlan(self.source, target, head or self.head, list(NAMES), replay, 5.0, 3.0)
        epoch = self.fleet.head(self.head).epoch
        said = msg.Command(1, epoch, f"1.{self.number}", step, plan)
        self.mediator.say_control(self.head, said)
        self.run(seconds)

    def move(self, target: str, **options: Any) -> None:
        self.command("prepare", target, **options)
        self.command("cut", target)
        self.run(0.5)

    def outcome(self) -> msg.Outcome:
        return [said for said in self.mediator.heard[self.head] if isinstance(said, msg.Outcome)][-1]

    def of(self, name: str, kind: type[Any]) -> list[Any]:
        return [event for event in self.told[name] if isinstance(event, kind)]

    def check(self, *, gaps: int = 0, seconds: float = 1.0) -> None:
        """Every subscriber has received every publication, once and in order."""
        self.run(seconds, publish=False)
        for name in NAMES:
            numbers = [each.attributes["n"] for each in self.of(name, Delivery)]
            assert len(self.of(name, GapNotice)) == gaps
            assert numbers == list(range(1, self.said + 1)), name

    def edges(self) -> set[str]:
        return {str(subscriber.statistics()["edge"]) for subscriber in self.subscribers.values()}


@pytest.fixture
def play() -> Play:
    return Play(one_cluster(edges=3), "e1")


@pytest.mark.parametrize("replay", [False, True])
def test_a_batch_is_moved_under_load(play: Play, replay: bool):
    play.run(0.3)
    play.move("e2", replay=replay)
    assert dict(play.outcome().members) == dict.fromkeys(NAMES, "moved")
    assert play.edges() == {"e2"}
    play.check()
    for subscriber in play.subscribers.values():
        told = subscriber.statistics()
        assert (told["moves"], told["duplicates_suppressed"], told["reconnects"]) == (1, 0, int(replay))
    if not replay:
        assert play.of("x", Detached) == []


def test_it_is_moved_on_and_back(play: Play):
    for source, target in (("e1", "e2"), ("e2", "e3"), ("e3", "e1")):
        play.source = source
        play.move(target)
        assert dict(play.outcome().members) == dict.fromkeys(NAMES, "moved")
        assert play.edges() == {target}
    play.check()
    assert play.subscribers["x"].statistics()["moves"] == 3


def test_it_is_moved_to_another_cluster_and_goes_on_there_from_its_token():
    play = Play(tree([("a", "b"), ("b", "c")]), "a1", head="a", others=("b",))
    play.run(0.3)
    play.move("c1", head="c")
    assert dict(play.outcome().members) == dict.fromkeys(NAMES, "moved")
    assert {subscriber.token[0] for subscriber in play.subscribers.values() if subscriber.token} == {"c"}
    play.run(0.3)
    play.fleet.crash("c1")
    play.fleet.start("c1")
    play.run(4.0)
    assert play.edges() == {"c1"}
    play.check()


def test_what_is_called_off_is_not_noticed(play: Play):
    play.command("prepare", "e2")
    assert play.outcome().state == "ready"
    play.command("abort", "e2")
    play.run(0.5)
    assert dict(play.outcome().members) == dict.fromkeys(NAMES, "stayed")
    assert [type(event) for event in play.told["x"] if type(event) not in (Delivery, Acknowledged)] == [Attached]
    play.check(seconds=2.0)
    assert set(play.client.edge_ports.by_edge) == {"e1"}


def test_changes_of_subscriptions_on_the_way_count_once(play: Play):
    play.command("prepare", "e2")
    subscriber = play.subscribers["x"]
    new = subscriber.subscribe("[m,=,1]")
    subscriber.unsubscribe(1)
    play.command("cut", "e2", seconds=0.0)
    later = subscriber.subscribe("[n,>,-5]")
    play.run(1.0)
    assert [each.ids for each in play.of("x", Acknowledged)][1:] in ([(new,), (later,)], [(new, later)])
    assert play.of("x", Forgotten) == [Forgotten((1,))]
    assert subscriber.subscription_list.is_settled
    assert subscriber.statistics()["edge"] == "e2"


def test_a_target_that_crashes_before_the_cut_is_not_missed(play: Play):
    play.command("prepare", "e2")
    play.fleet.crash("e2")
    play.command("cut", "e2")
    play.run(8.0)
    play.check(seconds=6.0)
    assert play.edges() <= {"e1", "e3"}


def test_a_target_that_crashes_after_the_cut_is_left_for_another(play: Play):
    play.command("prepare", "e2")
    play.command("cut", "e2", seconds=0.5)
    play.fleet.crash("e2")
    play.run(5.0)
    play.check(seconds=6.0)
    assert play.edges() <= {"e1", "e3"}
    assert play.subscribers["x"].statistics()["moves"] == 1


def test_a_source_that_crashes_on_the_way_is_left(play: Play):
    play.command("prepare", "e2")
    play.fleet.crash("e1")
    play.run(5.0)
    play.check(seconds=6.0)
    assert play.edges() <= {"e2", "e3"}


def test_who_is_paused_is_moved_when_it_goes_on(play: Play):
    play.subscribers["x"].pause()
    play.run(0.2)
    play.command("prepare", "e2")
    play.command("cut", "e2")
    assert play.subscribers["x"].statistics()["edge"] == "e1"
    play.subscribers["x"].resume()
    play.run(0.5)
    assert play.edges() == {"e2"}
    play.check()


def test_who_is_paused_for_too_long_comes_back_from_its_token(play: Play):
    play.subscribers["x"].pause()
    play.run(0.2)
    play.command("prepare", "e2")
    play.command("cut", "e2")
    play.run(6.0)
    assert dict(play.outcome().members)["x"] in ("detached", "returned")
    play.subscribers["x"].resume()
    play.check(seconds=3.0)


def test_closing_on_the_way_leaves_nothing_behind(play: Play):
    play.command("prepare", "e2")
    for subscriber in play.subscribers.values():
        subscriber.close()
    play.run(8.0)
    for edge in ("e1", "e2"):
        assert play.fleet.edge(edge).status()["cover"] == 0
    assert play.fleet.head().status()["subscribers"] == 0
    assert play.client.edge_ports.by_edge == {}
