"""Hand-overs between real heads, edges and client machines, with faults at every step: what is left is as it should be.

Each fault is tried at many moments of one session. Whenever it strikes, when all has settled every subscriber is
served by one edge, gets each publication once and in order, and no broker remembers the session.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.core.fleet import STOCK, Fleet, one_cluster, tree

from plimsoll.core.client import Address, Client, ClientLimits, Delivery
from plimsoll.core.client.events import Answered, GapNotice
from plimsoll.core.edge.machine import Edge
from plimsoll.core.protocol import messages as msg
from plimsoll.core.transport.link import LinkLimits

LIMITS = ClientLimits(
    link=LinkLimits(heartbeat_seconds=0.5, dead_seconds=2.0), stream_seconds=3.0, attach_seconds=1.0,
    answer_seconds=4.0, failover_seconds=2.0, away_seconds=1.0, backoff_max_seconds=0.5,
)  # fmt: skip
S = "1.1"


class Play:
    """Subscribers of one client machine at `source`, a publisher at `heads`' last, and a mediator of the first."""

    def __init__(
        self, fleet: Fleet, source: str, target: str, *names: str, heads: tuple[str, str] = ("h", "h")
    ) -> None:
        self.fleet, self.source, self.target, self.heads = fleet, source, target, heads
        addresses = [Address(f"mem://{head}") for head in dict.fromkeys(heads)]
        self.apps = Client("apps", 1, fleet.ids(), addresses, LIMITS)
        self.apps.now = fleet.now
        fleet.nodes["apps"] = self.apps
        self.taken: dict[str, list[int]] = {name: [] for name in names}
        self.gaps: dict[str, int] = dict.fromkeys(names, 0)
        for name in names:
            self.apps.subscriber(name, prefer=source).subscribe(STOCK)
        self.quotes = Client("quotes", 1, fleet.ids(), addresses[-1:], LIMITS)
        self.quotes.now = fleet.now
        fleet.nodes["quotes"] = self.quotes
        self.publisher = self.quotes.publisher("p")
        self.accepted: set[int] = set()
        self.states: list[str] = []
        self.mediator = fleet.mediator(heads[0])
        self.run(1.0)
        assert self.places() == dict.fromkeys(names, source)
        self.run(0.2, every=0.02)

    # -- what happens

    def run(self, seconds: float, every: float = 0.0) -> None:
        """Let time pass, with regular publications."""
        end = self.fleet.now + seconds
        while self.fleet.now < end:
            if every:
                self.publish()
            self.fleet.run(min(every or 0.25, end - self.fleet.now))
            self.listen()

    def publish(self) -> None:
        n = self.publisher.buffer.number + 1
        assert self.publisher.publish({"class": "STOCK", "n": n}, sent_us=0) == n

    def listen(self) -> None:
        for _, answers in self.quotes.take_events():
            for answer in answers:
                if isinstance(answer, Answered) and answer.answer == "accepted":
                    self.accepted.update(range(answer.first, answer.last + 1))
        for owner, events in self.apps.take_events():
            for event in events:
                if isinstance(event, Delivery):
                    self.taken[owner.name].append(int(event.attributes["n"]))
                elif isinstance(event, GapNotice):
                    self.gaps[owner.name] += 1

    def command(self, step: Any, replay: bool = False, session: str = S, **changed: Any) -> None:
        plan = None
        if step == "prepare":
            given: dict[str, Any] = {"prepare_seconds": 2.0, "drain_seconds": 3.0, **changed}
            plan = msg.HandoverPlan(
                self.source, self.target, self.heads[1], list(self.taken), replay,
                given["prepare_seconds"], given["drain_seconds"],
            )  # fmt: skip
        head = self.heads[0]
        if head in self.fleet.nodes:
            command = msg.Command(1, self.fleet.head(head).epoch, session, step, plan)
            self.mediator.say_control(head, msg.Identify("mediator", "mediator", 1), command)

    def strike(self, moment: int, fault: Callable[[Fleet], None], replay: bool = False) -> None:
        """Prepare and cut, with a fault after this number of rounds, in each of which a frame moves on by one hop."""
        self.command("prepare", replay)
        for step in range(80):
            self.states.append(self.state())
            if step == moment:
                fault(self.fleet)
            if step % 4 == 3:
                self.command("cut")
            self.publish()
            self.fleet.round()
            self.fleet.now += 0.0005
            self.listen()
        self.run(0.1)

    def state(self) -> str:
        head = self.heads[0]
        return self.fleet.head(head).coordinator.table.outcome(S).state if head in self.fleet.nodes else ""

    # -- what is left

    def outcome(self) -> dict[str, str]:
        return dict(self.fleet.head(self.heads[0]).coordinator.table.outcome(S).members)

    def places(self) -> dict[str, str]:
        """Where each is served, by the edges."""
        found: dict[str, str] = {}
        for edge in self.edges():
            for x, record in edge.attachments.by_subscriber.items():
                if record.state.value == "live":
                    assert x not in found, f"{x} is served by {found[x]} and {edge.config.name}"
                    found[x] = edge.config.name
        return found

    def edges(self) -> list[Edge]:
        return [node for node in self.fleet.nodes.values() if isinstance(node, Edge)]

    def settle(self) -> None:
        """Let leases, deadlines and everything remembered for a limited time expire."""
        self.run(12.0, every=0.5)
        self.run(8.0)

    def check(self, may_gap: bool) -> None:
        fleet = self.fleet
        before = {name: len(taken) for name, taken in self.taken.items()}
        first = self.publisher.buffer.number + 1
        for _ in range(10):
            self.publish()
        self.run(2.0)
        probes = list(range(first, first + 10))
        assert self.accepted >= set(probes)
        for name, taken in self.taken.items():
            assert taken[before[name] :] == probes, f"{name} is not served as it should be"
            assert taken == sorted(set(taken)), f"{name} had something twice, or out of order"
            lost = {n for n in self.accepted if n > taken[0]} - set(taken)
            assert not lost or (may_gap and self.gaps[name]), f"{name} has lost {lost}"
            assert may_gap or not self.gaps[name], f"{name} was told of a gap"
        places = self.places()
        assert set(places) == set(self.taken)
        owned: dict[str, str] = {}
        for config in fleet.configs.values():
            if config.role == "head":
                self.check_head(fleet.head(config.name), places, owned)
        assert set(owned) == set(self.taken)
        for edge in self.edges():
            assert set(edge.attachments.by_subscriber) == {x for x, at in places.items() if at == edge.config.name}
            assert edge.handover_target.slots == {}
            assert all(
                record.outgoing_session == record.incoming_session == ""
                for record in edge.attachments.by_subscriber.values()
            )

    def check_head(self, head: Any, places: dict[str, str], owned: dict[str, str]) -> None:
        assert (head.coordinator.sessions, head.coordinator.table.busy) == ({}, {})
        assert (len(head.remote_members), head.remote_members._sessions_of) == (0, {})
        assert head.membership.ghosts == {}
        for x, entry in head.owners.entries.items():
            assert x not in owned, f"{x} is owned at {owned[x]} and at {head.name}"
            owned[x] = head.name
            assert entry.key.partition("#")[0] == places[x]
        assert head.owners.keys() == {entry.key for entry in head.owners.entries.values()}


@pytest.fixture(autouse=True)
def _short_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plimsoll.core.head.parts.KEPT_SECONDS", 4.0)


# -- without faults


@pytest.mark.parametrize("replay", [False, True])
def test_a_batch_moves_within_a_cluster(replay: bool):
    play = Play(one_cluster(), "e1", "e2", "x", "y", "z")
    play.strike(-1, lambda _: None, replay)
    assert play.outcome() == dict.fromkeys("xyz", "moved")
    assert play.places() == dict.fromkeys("xyz", "e2")
    play.settle()
    play.check(may_gap=False)


@pytest.mark.parametrize("links", [[("a", "b")], [("a", "b"), ("b", "c")], [("a", "m"), ("m", "n"), ("n", "c")]])
def test_a_batch_moves_along_a_chain_of_heads(links: list[tuple[str, str]]):
    last = links[-1][1]
    play = Play(tree(links), "a1", f"{last}1", "x", "y", "z", heads=("a", last))
    play.strike(-1, lambda _: None)
    assert play.outcome() == dict.fromkeys("xyz", "moved")
    assert play.places() == dict.fromkeys("xyz", f"{last}1")
    play.settle()
    play.check(may_gap=False)


def test_there_and_back_again():
    play = Play(tree([("a", "b")]), "a1", "b1", "x", "y", heads=("a", "b"))
    play.strike(-1, lambda _: None)
    assert play.places() == {"x": "b1", "y": "b1"}
    play.source, play.target, play.heads = "b1", "a1", ("b", "a")
    play.mediator = play.fleet.mediator("b")
    play.run(0.1)
    play.strike(-1, lambda _: None)
    assert play.outcome() == {"x": "moved", "y": "moved"}
    assert play.places() == {"x": "a1", "y": "a1"}
    play.settle()
    play.check(may_gap=False)


def test_a_subscriber_can_be_moved_again_after_a_session_that_was_undone_behind_its_cut_at_the_target():
    """H2 had become its owner; H1 had given up before the marker came."""
    fleet = tree([("a", "b")])
    play = Play(fleet, "a1", "b1", "x", heads=("a", "b"))
    play.command("prepare")
    play.run(0.1, every=0.02)
    marker, head = msg.Marker, fleet.head("a")
    real = head.router.deliver

    def late(source: str, edge: str, record: Any) -> None:
        if isinstance(record, marker):
            head.coordinator.abort(S, "a deadline that came first")
        real(source, edge, record)

    head.router.deliver = late
    play.command("cut")
    play.run(0.2, every=0.02)
    head.router.deliver = real
    assert play.outcome() == {"x": "stayed"}
    play.run(0.2, every=0.02)
    play.command("prepare", session="1.2")
    play.run(0.1, every=0.02)
    play.command("cut", session="1.2")
    play.run(0.3, every=0.02)
    assert dict(head.coordinator.table.outcome("1.2").members) == {"x": "moved"}
    play.settle()
    play.check(may_gap=False)


# -- with them

LOCAL_MOMENTS, ACROSS_MOMENTS = (3, 6, 9, 10, 11), (3, 8, 11, 13, 14, 15, 16, 18)
ALL_STATES = {"preparing", "ready", "cutting", "cut"}


def test_the_moments_are_those_at_which_something_can_go_wrong():
    play = Play(one_cluster(), "e1", "e2", "x", "y")
    play.strike(-1, lambda _: None)
    assert {play.states[moment] for moment in LOCAL_MOMENTS} >= ALL_STATES
    play = Play(tree([("a", "b"), ("b", "c")]), "a1", "c1", "x", "y", heads=("a", "c"))
    play.strike(-1, lambda _: None)
    assert {play.states[moment] for moment in ACROSS_MOMENTS} >= ALL_STATES


def crash(name: str) -> Callable[[Fleet], None]:
    def strike(fleet: Fleet) -> None:
        fleet.crash(name)

    return strike


def restart(name: str) -> Callable[[Fleet], None]:
    def strike(fleet: Fleet) -> None:
        fleet.crash(name)
        fleet.start(name)

    return strike


def flap(one: str, other: str, seconds: float) -> Callable[[Fleet], None]:
    """The connection is lost for this long."""

    def strike(fleet: Fleet) -> None:
        fleet.cut(one, other)
        fleet.run(seconds)
        fleet.mend(one, other)

    return strike


LOCAL = {
    "source crashes": (crash("e1"), False),
    "target crashes": (crash("e2"), False),
    "target restarts": (restart("e2"), False),
    "head restarts": (restart("h"), True),
    "client loses the target": (flap("apps", "e2", 3.0), False),
    "client loses the source": (flap("apps", "e1", 3.0), False),
    "target loses its head": (flap("e2", "h", 3.0), False),
}


@pytest.mark.sampled(18)
@pytest.mark.parametrize("replay", [False, True])
@pytest.mark.parametrize("fault", LOCAL)
@pytest.mark.parametrize("moment", LOCAL_MOMENTS)
def test_a_fault_at_any_moment_of_a_local_session(moment: int, fault: str, replay: bool):
    strike, may_gap = LOCAL[fault]
    play = Play(one_cluster(3), "e1", "e2", "x", "y")
    play.strike(moment, strike, replay)
    play.settle()
    play.check(may_gap)


ACROSS = {
    "source crashes": (restart("a1"), False),
    "target crashes": (restart("c1"), False),
    "head of the source restarts": (restart("a"), True),
    "head of the target restarts": (restart("c"), True),
    "head between restarts": (restart("b"), True),
    "link of the source's head is away": (flap("a", "b", 3.0), False),
    "link of the target's head is away": (flap("b", "c", 3.0), False),
    "client loses the target": (flap("apps", "c1", 3.0), False),
    "client loses the source": (flap("apps", "a1", 3.0), False),
}


@pytest.mark.sampled(18)
@pytest.mark.parametrize("fault", ACROSS)
@pytest.mark.parametrize("moment", ACROSS_MOMENTS)
def test_a_fault_at_any_moment_of_a_session_across(moment: int, fault: str):
    strike, may_gap = ACROSS[fault]
    play = Play(tree([("a", "b"), ("b", "c")]), "a1", "c1", "x", "y", heads=("a", "c"))
    play.strike(moment, strike)
    play.settle()
    play.check(may_gap)
