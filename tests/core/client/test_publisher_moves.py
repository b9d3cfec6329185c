"""Publishers of the client machine, moved between real heads at the command of a mediator."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.core.fleet import Fleet, Mediator, tree

from plimsoll.core.client import Address, Answered, Client, ClientLimits, Delivery, GapNotice
from plimsoll.core.client.machine import TakenEvents
from plimsoll.core.client.publisher import ClientPublisher
from plimsoll.core.protocol import messages as msg
from plimsoll.core.transport.link import LinkLimits

CHAIN = [("a", "b"), ("b", "c")]
LIMITS = ClientLimits(
    link=LinkLimits(heartbeat_seconds=0.5, dead_seconds=2.0), backoff_seconds=0.05, move_seconds=1.0, idle_seconds=0.2
)


class Moves:
    """Three heads in a chain, a subscriber at each, two publishers at `a`, and a mediator."""

    def __init__(self, fleet: Fleet, names: tuple[str, ...] = ("p", "q"), home: str = "a") -> None:
        self.fleet = fleet
        self.reader = Client("reader", 7, fleet.ids(), [Address("mem://b")], LIMITS)
        self.app = Client("app", 7, fleet.ids(), [Address(f"mem://{home}")], LIMITS)
        for client in (self.reader, self.app):
            client.now = fleet.now
            fleet.nodes[client.info.name] = client
        self.subscribers = {f"s-{head}": self.reader.subscriber(f"s-{head}", prefer=f"{head}1") for head in "abc"}
        for subscriber in self.subscribers.values():
            subscriber.subscribe("[n,>,0]")
        self.publishers = {name: self.app.publisher(name) for name in names}
        self.mediator: Mediator = fleet.mediator("a", "b", "c")
        self.said = dict.fromkeys(names, 0)
        self.got: dict[str, list[Any]] = {name: [] for name in self.subscribers}
        self.answers: dict[str, list[Answered]] = {name: [] for name in names}
        self.number = 0
        self.run(1.0, publish=False)

    def run(self, seconds: float, publish: bool = True) -> None:
        """Let time pass, with a publication of each publisher every 10 ms."""
        for _ in range(round(seconds * 100)):
            if publish:
                self.publish()
            self.fleet.run(0.01)
            self._take(self.app.take_events())
            for owner, events in self.reader.take_events():
                self.got[owner.name] += events

    def publish(self) -> None:
        for name, publisher in self.publishers.items():
            self.said[name] += 1
            publisher.publish({"n": self.said[name], "by": name}, sent_us=0)

    def _take(self, taken: TakenEvents) -> None:
        for owner, events in taken:
            if isinstance(owner, ClientPublisher):
                self.answers[owner.name] += [each for each in events if isinstance(each, Answered)]

    def command(self, source: str, target: str, *names: str, seconds: float = 2.0, step: Any = "move") -> str:
        self.number += step == "move"
        plan = msg.PublisherPlan(target, f"mem://{target}", "", list(names or self.publishers), seconds)
        command = msg.PublisherCommand(1, self.fleet.head(source).epoch, f"1.{self.number}", step, plan)
        self.mediator.say_control(source, command)
        return command.session

    def outcome(self, session: str) -> dict[str, str]:
        said = [
            each
            for heard in self.mediator.heard.values()
            for each in heard
            if isinstance(each, msg.PublisherOutcome) and each.session == session
        ]
        return {name: state.partition(":")[0] for name, state in said[-1].publishers}

    def heads(self) -> set[str]:
        return {publisher.head for publisher in self.publishers.values()}

    def count(self, name: str, answer: str) -> int:
        return sum(each.last - each.first + 1 for each in self.answers[name] if each.answer == answer)

    def received(self, subscriber: str, name: str) -> list[int]:
        return [
            each.attributes["n"]
            for each in self.got[subscriber]
            if isinstance(each, Delivery) and each.attributes["by"] == name
        ]

    def check(self, *, may_lose: bool = False) -> None:
        """Every subscriber has every publication of each publisher, once and in order."""
        self.run(1.5, publish=False)
        for publisher in self.publishers.values():
            assert publisher.is_open, publisher.statistics()
            assert (publisher.move, len(publisher.buffer)) == (None, 0), publisher.statistics()
        for name, said in self.said.items():
            assert may_lose or self.count(name, "accepted") == said
            for subscriber in self.subscribers:
                numbers = self.received(subscriber, name)
                if may_lose:
                    assert numbers == sorted(set(numbers)), (subscriber, name)
                else:
                    assert numbers == list(range(1, said + 1)), (subscriber, name)
        gaps = [each for got in self.got.values() for each in got if isinstance(each, GapNotice)]
        assert may_lose or not gaps
        for head in "abc":
            assert not self.fleet.head(head).publisher_arrivals.standbys


@pytest.fixture
def moves() -> Moves:
    return Moves(tree(CHAIN))


@pytest.mark.parametrize("target", ["b", "c"])
def test_publishers_move_under_load_and_every_subscriber_gets_their_order(moves: Moves, target: str):
    moves.run(0.2)
    session = moves.command("a", target)
    moves.run(0.5)
    assert moves.outcome(session) == {"p": "moved", "q": "moved"}
    assert moves.heads() == {target}
    moves.check()
    assert moves.publishers["p"].statistics()["moves"] == 1


def test_they_move_on_and_back_over_the_home_link(moves: Moves):
    for source, target in (("a", "b"), ("b", "c"), ("c", "a"), ("a", "c"), ("c", "a")):
        session = moves.command(source, target)
        moves.run(0.4)
        assert moves.outcome(session) == {"p": "moved", "q": "moved"}
        assert moves.heads() == {target}
    moves.run(0.5)
    assert moves.app.status()["other_heads"] == {}, "links that are not needed are closed"
    assert all(publisher.port is None for publisher in moves.publishers.values())
    moves.check()


def test_only_those_that_are_named_move(moves: Moves):
    session = moves.command("a", "c", "q", "not-there")
    moves.run(0.5)
    assert moves.outcome(session) == {"q": "moved", "not-there": "gone"}
    assert (moves.publishers["p"].head, moves.publishers["q"].head) == ("a", "c")
    moves.check()


def test_a_head_that_cannot_be_reached_by_the_client_changes_nothing(moves: Moves):
    moves.fleet.cut("app", "c")
    plan = msg.PublisherPlan("c", "mem://nowhere", "", ["p", "q"], 0.5)
    moves.mediator.say_control("a", msg.PublisherCommand(1, moves.fleet.head("a").epoch, "1.7", "move", plan))
    moves.run(1.5)
    assert moves.outcome("1.7") == {"p": "stayed", "q": "stayed"}
    assert moves.heads() == {"a"}
    moves.check()


def test_a_publisher_that_is_not_opened_in_time_goes_back(moves: Moves):
    """The other head hears nothing of the decision."""
    moves.fleet.head("c").publisher_arrivals.on_marker = lambda source, marker: None
    session = moves.command("a", "c")
    moves.run(2.5)
    assert moves.outcome(session) == {"p": "returned", "q": "returned"}
    assert moves.heads() == {"a"}
    moves.check()


def test_confirmed_publications_are_answered_before_the_move(moves: Moves):
    for name, publisher in moves.publishers.items():
        publisher.confirm = "edges"
        assert moves.said[name] == 0
    session = moves.command("a", "c")
    moves.run(0.6)
    assert moves.outcome(session) == {"p": "moved", "q": "moved"}
    moves.check()


def test_the_last_number_is_remembered_for_a_link_that_was_lost_behind_go(moves: Moves):
    """LEFT is lost with the link; the publisher opens again at its old head, and is sent LEFT again."""
    head = moves.fleet.head("a")
    cut: list[bool] = []
    leave = head.publishers.leave

    def leave_and_cut(publisher: Any) -> None:
        leave(publisher)
        cut.append(True)
        moves.fleet.cut("app", "a")

    head.publishers.leave = leave_and_cut
    session = moves.command("a", "c", "p")
    moves.run(0.1)
    moves.fleet.mend("app", "a")
    moves.run(1.5)
    assert cut
    assert moves.outcome(session) == {"p": "moved"}
    moves.check()


def test_a_publisher_whose_new_head_is_gone_begins_anew_at_home(moves: Moves):
    moves.command("a", "c")
    moves.run(0.5)
    moves.fleet.crash("c")
    moves.run(20.0)
    assert moves.heads() == {"a"}
    assert {publisher.incarnation for publisher in moves.publishers.values()} == {8}
    moves.fleet.start("c")
    moves.run(2.0)
    moves.check(may_lose=True)


def test_a_client_whose_home_leads_to_the_head_of_a_port_uses_one_link(moves: Moves):
    """Two links of one client to one head would end each other."""
    moves.app.home.addresses = (*moves.app.home.addresses, Address("mem://c"))
    moves.command("a", "c")
    moves.run(0.5)
    moves.fleet.crash("a")
    moves.run(20.0)
    assert moves.app.status()["head"] == "c"
    assert moves.app.status()["other_heads"] == {}
    assert moves.heads() == {"c"}
    assert moves.app.counters["heads_tried"] == 1
    moves.fleet.start("a")
    moves.run(1.0)
    moves.check(may_lose=True)


FAULTS = ("cut app a", "cut app c", "cut app b", "cut a b", "freeze a", "freeze c", "crash a", "crash b", "crash c")


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "seed", [*range(18), *(pytest.param(seed, marks=pytest.mark.sweep) for seed in range(18, 120))]
)
def test_any_fault_in_any_round(seed: int):
    """A fault in a random round of one of four moves: each publication once and in order; all, if no head has died."""
    draw = random.Random(seed)
    moves, fault = Moves(tree(CHAIN)), FAULTS[seed % len(FAULTS)].split()
    at = draw.randrange(4)
    where = "a"
    for turn, target in enumerate(draw.sample("bc", 2) + draw.sample("abc", 2)):
        moves.publish()
        moves.command(where, target, seconds=1.0)
        if turn == at:
            for _ in range(draw.randrange(16)):
                moves.fleet.round()
            _begin(moves, fault)
            moves.run(draw.choice([0.0, 0.05, 0.7, 3.0]))
            _end(moves, fault)
            moves.run(draw.choice([0.0, 0.1, 8.0]))
        moves.run(0.3)
        where = moves.publishers["p"].head or "a"
    moves.run(8.0)
    # A link between heads that is lost may cost a gap, and so may one that is silent for too long.
    moves.check(may_lose=fault[0] != "cut" or fault[1] != "app")


def _begin(moves: Moves, fault: list[str]) -> None:
    getattr(moves.fleet, fault[0])(*fault[1:])


def _end(moves: Moves, fault: list[str]) -> None:
    if fault[0] == "cut":
        moves.fleet.mend(*fault[1:])
    elif fault[0] == "freeze":
        moves.fleet.thaw(fault[1])
    else:
        moves.fleet.start(fault[1])
