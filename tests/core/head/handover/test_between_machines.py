"""Hand-over between real heads and real edges, commanded by a mediator; a client that follows the rules."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.fleet import STOCK, Client, Fleet, Mediator, Publishing, one_cluster, resume, tree
from tests.core.head.handover.script import is_empty, singly

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire

S = "1.1"


class Follower:
    """Subscribers of one client, each at one edge, that follow every redirect. `taken`: numbers of publications."""

    def __init__(self, client: Client, head: str, epoch: int, edge: str, *names: str) -> None:
        self.client, self.edge = client, edge
        self.names = dict(enumerate(names, 1))
        self.place = dict.fromkeys(names, edge)
        self.n = dict.fromkeys(names, 1)
        self.token: dict[str, wire.Token] = dict.fromkeys(names, (head, epoch, 0))
        self.taken: dict[str, list[int]] = {name: [] for name in names}
        self.targets: dict[str, str] = {}
        self.willing, self.across = True, False
        self.read: dict[str, int] = {}
        client.tell(edge, *[resume(i, name) for i, name in self.names.items()])

    def listen(self) -> None:
        for edge in list(self.client.heard):
            heard = self.client.heard[edge]
            for record in heard[self.read.get(edge, 0) :]:
                for number, said in singly(record):
                    if (name := self.names.get(number)) is not None:
                        self.hear(edge, name, said)
            self.read[edge] = len(heard)

    def hear(self, edge: str, x: str, record: object) -> None:
        number = next(i for i, name in self.names.items() if name == x)
        items = [msg.SubscriptionItem(1, STOCK)]
        if isinstance(record, msg.MoveTo) and self.willing:
            self.targets[x] = record.edge
            epoch = (1, self.n[x] + 1)
            self.client.tell(
                record.edge, msg.Attach(record.session, [msg.AttachItem(number, x, epoch, 1, items, msg.Policy())])
            )
        elif isinstance(record, msg.Deliver) and self.place[x] == edge and isinstance(record.item, msg.PubOpen):
            if not (self.across and record.item.seq <= max(self.taken[x], default=0)):
                self.taken[x].append(record.item.seq)
            self.token[x] = (*self.token[x][:2], record.item.position)
        elif isinstance(record, msg.End):
            self.place[x], self.n[x], self.token[x] = self.targets[x], self.n[x] + 1, record.token
            self.client.tell(self.place[x], msg.Go(record.session, [msg.GoItem(number)]))
            self.client.tell(edge, msg.Detach([number], False))
        elif isinstance(record, msg.Moved):
            self.place[x], self.n[x] = record.edge, self.n[x] + 2
            again = msg.Resume(
                number, x, (1, self.n[x]), 1, items, msg.Policy(), self.token[x], [], record.session
            )  # fmt: skip
            self.client.tell(record.edge, again)


class Play:
    """A fleet, a publisher at one of its heads, subscribers at `source`, and a mediator of `head`."""

    def __init__(
        self, fleet: Fleet, source: str, target: str, *names: str, heads: tuple[str, str] = ("h", "h")
    ) -> None:
        self.fleet, self.source, self.target, self.heads = fleet, source, target, heads
        client = fleet.client("subscribers", source, target)
        self.follower = Follower(client, heads[0], fleet.head(heads[0]).epoch, source, *names)
        self.follower.across = heads[0] != heads[1]
        self.publisher = Publishing(fleet.client("pub", heads[0]), heads[0])
        self.mediator: Mediator = fleet.mediator(heads[0])
        self.run(0.5)

    def run(self, seconds: float = 0.1, publish: bool = True) -> None:
        """Let time pass, with a publication every few milliseconds."""
        for _ in range(round(seconds * 100)):
            if publish:
                self.publisher.publish()
            self.fleet.run(0.01)
            self.follower.listen()

    def command(self, step: Any, replay: bool = False, drain_seconds: float = 5.0) -> None:
        plan = None
        if step == "prepare":
            names = list(self.follower.place)
            plan = msg.HandoverPlan(self.source, self.target, self.heads[1], names, replay, 5.0, drain_seconds)
        epoch = self.fleet.head(self.heads[0]).epoch
        self.mediator.say_control(self.heads[0], msg.Command(1, epoch, S, step, plan))
        self.run(0.3)

    def outcome(self) -> msg.Outcome:
        return [said for said in self.mediator.heard[self.heads[0]] if isinstance(said, msg.Outcome)][-1]

    def check(self) -> None:
        """Every subscriber has received every publication, once and in order."""
        self.run(1.0, publish=False)
        for name, taken in self.follower.taken.items():
            first = taken[0]
            assert taken == list(range(first, self.publisher.seq + 1)), name


@pytest.mark.parametrize("replay", [False, True])
def test_a_batch_moves_under_load(replay: bool):
    play = Play(one_cluster(), "e1", "e2", "x", "y", "z")
    play.command("prepare", replay)
    assert play.outcome().state == "ready"
    play.command("cut")
    assert play.outcome().state == "done"
    assert dict(play.outcome().members) == dict.fromkeys(["x", "y", "z"], "moved")
    play.check()
    assert is_empty(play.fleet.edge("e1"))
    assert {a.state.value for a in play.fleet.edge("e2").attachments.by_subscriber.values()} == {"live"}
    assert play.fleet.edge("e2").status()["slots"] == 0


def test_a_batch_moves_to_another_cluster():
    play = Play(tree([("a", "b"), ("b", "c")]), "a1", "c1", "x", "y", heads=("a", "c"))
    play.command("prepare")
    play.command("cut")
    play.run(0.5)
    assert play.outcome().state == "done"
    play.check()
    assert is_empty(play.fleet.edge("a1"))
    assert set(play.fleet.head("c").owners.entries) == {"x", "y"}
    assert play.fleet.head("a").owners.entries == {}


def test_what_is_aborted_leaves_no_trace():
    play = Play(one_cluster(), "e1", "e2", "x", "y")
    play.command("prepare")
    assert play.fleet.edge("e2").status()["subscribers"]["dark"] == 2
    play.command("abort")
    assert dict(play.outcome().members) == {"x": "stayed", "y": "stayed"}
    play.check()
    assert is_empty(play.fleet.edge("e2"))
    assert len(play.follower.client.of("e1", msg.Stay)) == 2


def test_a_member_that_does_not_attach_stays_and_delays_no_other():
    play = Play(one_cluster(), "e1", "e2", "x")
    play.follower.willing = False
    play.command("prepare")
    play.command("cut")
    play.run(5.5)
    assert play.outcome().state == "aborted"
    play.check()
    assert is_empty(play.fleet.edge("e2"))


def test_who_does_not_drain_is_detached_and_goes_on_from_its_token():
    play = Play(one_cluster(), "e1", "e2", "x")
    play.command("prepare", drain_seconds=1.0)
    play.follower.client.tell("e1", msg.Pause(1))
    play.run(0.2)
    play.command("cut")
    play.run(1.5)
    assert dict(play.outcome().members) == {"x": "detached"}
    assert [s.code for edge in ("e1", "e2") for s in play.follower.client.of(edge, msg.AttachmentClosed)] == [
        "parted",
        "parted",
    ]
    assert play.fleet.edge("e1").attachments.by_subscriber == {}
    play.follower.place["x"] = "e2"
    play.follower.client.tell("e2", resume(1, "x", n=4, token=play.follower.token["x"]))
    play.run(0.5)
    play.check()


@pytest.mark.parametrize("victim", ["e1", "e2"])
def test_the_loss_of_an_edge_before_the_cut_ends_the_session(victim: str):
    play = Play(one_cluster(), "e1", "e2", "x")
    play.command("prepare")
    play.fleet.crash(victim)
    play.run(3.0)
    assert play.outcome().state == "aborted"
    other = "e2" if victim == "e1" else "e1"
    assert play.fleet.edge(other).status()["slots"] == 0
    if victim == "e1":
        assert is_empty(play.fleet.edge("e2"))
    else:
        play.check()


def test_by_replay_the_place_of_a_client_that_never_answers_ends_with_its_lease():
    """The source lets it go at the cut, and the hand-over ends: nothing waits for the client."""
    play = Play(one_cluster(), "e1", "e2", "x", "y")
    play.follower.names.pop(1)  # the client of x reads all and answers nothing
    play.command("prepare", replay=True)
    play.command("cut")
    play.run(5.5)
    assert play.outcome().state == "done"
    assert dict(play.outcome().members) == {"x": "detached", "y": "moved"}
    play.run(play.fleet.limits.lease_seconds)
    assert is_empty(play.fleet.edge("e1"))
    assert set(play.fleet.head().owners.entries) == {"y"}
    assert play.fleet.edge("e2").status()["slots"] == 0


def test_by_replay_a_client_that_answers_late_goes_on_from_its_token():
    play = Play(one_cluster(), "e1", "e2", "x")
    follower, before = play.follower, dict(play.follower.read)
    silent = follower.names.pop(1)
    play.command("prepare", replay=True)
    play.command("cut")
    play.run(2.0)
    assert dict(play.outcome().members) == {"x": "cut"}
    follower.names[1], follower.read = silent, before
    play.run(1.0)
    play.check()
    assert dict(play.outcome().members) == {"x": "moved"}
