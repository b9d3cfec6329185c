"""Commands are obeyed from the highest mediator epoch, for this head's epoch, and once the head knows its state."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.head.handover.hosts import A, FakeHost, coordinator_of, plan

from plimsoll.core.head.handover import commands as module
from plimsoll.core.head.handover.commands import MediatorCommands
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import WireError


class FakeFence:
    def __init__(self) -> None:
        self.epoch = 0
        self.raised: list[int] = []

    def raise_to(self, epoch: int) -> None:
        if epoch > self.epoch:
            self.epoch = epoch
            self.raised.append(epoch)


class FakeReporter:
    def __init__(self) -> None:
        self.mediators: dict[Any, float] = {b"m1": 0.0, b"m2": 0.0}


class CommandHost(FakeHost):
    def __init__(self) -> None:
        super().__init__()
        self.is_starting = False
        self.coordinator = coordinator_of(self)
        self.answers: list[tuple[Any, Any]] = []
        self.mediator_fence = FakeFence()
        self.reporter = FakeReporter()
        self.commands = MediatorCommands(self, self.served_by)

    def served_by(self, edge: str) -> list[str]:
        return sorted(self.owners.of(self.edges.get(edge, "")))

    def say_control(self, peer: Any, *said: Any) -> None:
        self.answers += [(peer, record) for record in said]

    def broadcast(self, outcome: msg.Outcome) -> None:
        self.commands.broadcast(outcome)

    def command(
        self, step: Any, session: str = "3.1", mediator: int = 3, head_epoch: int = 5, **given: Any
    ) -> msg.Outcome:
        self.commands.on_command(b"m1", msg.Command(mediator, head_epoch, session, step, **given))
        peer, answer = self.answers[-1]
        assert peer == b"m1"
        assert isinstance(answer, msg.Outcome)
        return answer


def code(outcome: msg.Outcome) -> tuple[str, str]:
    return outcome.state, outcome.reason.partition(":")[0]


@pytest.mark.parametrize("step", ["ask", "cut"])
def test_a_plan_alone_prepares_nothing(step: str):
    host = CommandHost()
    host.serve(A, "x")
    assert host.command(step, plan=plan("x")).state == "unknown"
    assert host.said == []


def test_a_command_is_obeyed_and_answered_with_the_mediator_epoch():
    host = CommandHost()
    host.serve(A, "x")
    assert host.command("ask").state == "unknown"
    answer = host.command("prepare", plan=plan("x"))
    assert (answer.state, answer.mediator, answer.head_epoch, answer.members) == (
        "preparing", 3, 5, [("x", "preparing")],
    )  # fmt: skip
    host.coordinator.on_attached(msg.TargetAttached("3.1", ["x"]))
    assert host.command("cut").state == "cutting"
    assert host.command("abort").members == [("x", "aborting")]
    host.answer(host.coordinator)
    assert host.command("ask").members == [("x", "stayed")]


def test_every_command_of_a_lower_mediator_epoch_is_refused():
    host = CommandHost()
    host.serve(A, "x")
    host.command("prepare", plan=plan("x"), mediator=4)
    for step in ("prepare", "cut", "abort", "ask"):
        answer = host.command(step, mediator=3, plan=plan("x"))
        assert code(answer) == ("failed", "mediator-epoch")
        assert answer.mediator == 4
    assert host.coordinator.table.outcome("3.1").state == "preparing"
    assert host.command("abort", mediator=4).members == [("x", "aborting")], "an equal one is obeyed"


def test_another_epoch_of_the_head_is_refused_but_may_be_asked():
    host = CommandHost()
    host.serve(A, "x")
    for step in ("prepare", "cut", "abort"):
        answer = host.command(step, head_epoch=4, plan=plan("x"))
        assert code(answer) == ("failed", "head-epoch")
        assert answer.head_epoch == 5
    assert host.command("ask", head_epoch=4).state == "unknown"
    assert host.coordinator.sessions == {}
    assert host.coordinator.table.outcome("3.1").state == "unknown", "no tombstone either"


def test_a_starting_head_obeys_no_mediator_and_lists_no_subscribers():
    host = CommandHost()
    host.serve(A, "x")
    host.is_starting = True
    for step in ("prepare", "cut", "abort", "ask"):
        assert code(host.command(step, plan=plan("x"))) == ("failed", "starting")
    before = len(host.answers)
    host.commands.on_list_subscribers(b"m1", msg.ListSubscribers(1, "a"))
    assert len(host.answers) == before, "a list of those who have reported so far would be taken for the whole"
    host.is_starting = False
    assert host.command("prepare", plan=plan("x")).state == "preparing"


@pytest.mark.parametrize("refused", ["starting", "head-epoch"])
def test_a_mediator_epoch_counts_even_if_its_command_cannot_be_obeyed(refused: str):
    host = CommandHost()
    host.is_starting = refused == "starting"
    assert code(host.command("abort", mediator=7, head_epoch=4)) == ("failed", refused)
    assert host.mediator_fence.raised == [7]
    assert code(host.command("abort", mediator=6)) == ("failed", "mediator-epoch")


def test_a_mediator_epoch_is_spread_once_and_taken_from_any_peer():
    host = CommandHost()
    host.mediator_fence.raise_to(0)
    host.mediator_fence.raise_to(9)
    host.mediator_fence.raise_to(9)
    host.mediator_fence.raise_to(8)
    assert host.mediator_fence.raised == [9]
    assert code(host.command("ask", mediator=8)) == ("failed", "mediator-epoch")


def test_a_prepare_without_a_plan_is_refused():
    assert code(CommandHost().command("prepare")) == ("failed", "plan")


@pytest.mark.parametrize("session", ["x", "1", "1.x", "1.1.1"])
def test_a_session_of_another_name_is_not_answered(session: str):
    host = CommandHost()
    with pytest.raises(WireError, match="EPOCH"):
        host.commands.on_command(b"m1", msg.Command(3, 5, session, "abort"))
    assert host.answers == []
    assert host.mediator_fence.epoch == 0


def test_what_changes_is_told_to_every_mediator():
    host = CommandHost()
    host.mediator_fence.raise_to(3)
    host.commands.broadcast(msg.Outcome("3.1", 0, 5, "cut", [("x", "cut")]))
    told = msg.Outcome("3.1", 3, 5, "cut", [("x", "cut")])
    assert host.answers == [(b"m1", told), (b"m2", told)]


def test_serving_is_answered_page_by_page(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "SUBSCRIBERS_PER_PAGE", 10)
    host = CommandHost()
    names = [f"s{i:02}" for i in range(25)]
    host.serve(A, *reversed(names))
    found, after, pages = [], "", 0
    while True:
        host.commands.on_list_subscribers(b"m1", msg.ListSubscribers(7, "a", after))
        peer, page = host.answers[-1]
        assert (peer, page.id, page.edge, page.head_epoch) == (b"m1", 7, "a", 5)
        found += page.subscribers
        pages += 1
        if not page.more:
            break
        after = page.subscribers[-1]
    assert (found, pages) == (names, 3)
    host.commands.on_list_subscribers(b"m1", msg.ListSubscribers(8, "nowhere"))
    assert host.answers[-1][1] == msg.SubscriberPage(8, "nowhere", 5, [], False)


def test_a_full_page_that_is_the_last_says_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "SUBSCRIBERS_PER_PAGE", 2)
    host = CommandHost()
    host.serve(A, "x", "y")
    host.commands.on_list_subscribers(b"m1", msg.ListSubscribers(7, "a"))
    assert host.answers[-1][1] == msg.SubscriberPage(7, "a", 5, ["x", "y"], False)
