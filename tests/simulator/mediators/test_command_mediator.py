"""A mediator repeats the commands of its plan until each hand-over has a final outcome."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import msgspec

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.verify import observations as seen
from plimsoll.simulator.mediators.command_mediator import CommandedHandovers, CommandMediator
from plimsoll.simulator.mediators.handover_plan import PlannedHandover

MOVE = PlannedHandover(0, 1.0, "h0", "h0e0", "h0", "h0e1", 2, 7, 0, False, "cut", 3.0, 1.0, 1.0, False)
HEAD_EPOCH = 11


class World:
    """A mediator whose head is this test."""

    def __init__(self, store: CommandedHandovers | None = None, **move: Any) -> None:
        self.store = store or CommandedHandovers()
        self.journal: list[seen.Observation] = []
        self.now = 1.0
        moves = [replace(MOVE, **move)]
        self.mediator = CommandMediator(
            "m", self.store, ["h0"], moves, ["elsewhere"], 0.0, random.Random(1), self.journal.append
        )

    def sent(self, seconds: float = 0.0) -> list[Any]:
        """Let time pass; returns the messages that the mediator has sent to its head."""
        self.now += seconds
        self.mediator.poll(self.now)
        frames = [wire.decode_frame(frame) for _, frame in self.mediator.control_to_send()]
        records = [
            msg.decode(msg.control, raw) for frame in frames if isinstance(frame, wire.Control) for raw in frame.records
        ]
        return [record for record in records if not isinstance(record, msg.Identify)]

    def answer(self, *records: Any) -> list[Any]:
        for record in records:
            self.mediator.receive_control("h0", wire.control_frame(record), self.now)
        return self.sent()

    def start(self) -> msg.Command:
        """Answer the mediator's query for subscribers; returns its PREPARE."""
        self.sent()
        return self.answer(msg.SubscriberPage(0, "h0e0", HEAD_EPOCH, ["a", "b", "c"], False))[0]

    def outcome(
        self, state: Any, *members: tuple[str, str], mediator: int = 1, reason: str = "", **more: Any
    ) -> msg.Outcome:
        return msg.Outcome("1.1", mediator, more.get("head_epoch", HEAD_EPOCH), state, list(members), reason)


def test_a_hand_over_from_query_to_outcome():
    world = World()
    assert world.sent() == [msg.ListSubscribers(0, "h0e0")]
    prepare = world.start()
    assert (prepare.mediator, prepare.head_epoch, prepare.session, prepare.step) == (1, HEAD_EPOCH, "1.1", "prepare")
    assert prepare.plan is not None
    assert set(prepare.plan.members) < {"a", "b", "c"}
    assert world.answer(world.outcome("preparing"))[0].step == "prepare"
    assert [one.step for one in world.answer(world.outcome("ready"))] == ["cut"]
    assert world.sent(1.0)[0].step in ("cut", "ask"), "it repeats the command or asks for the state"
    members = [(name, "moved") for name in prepare.plan.members]
    assert world.answer(world.outcome("done", *members)) == []
    assert world.sent(9.0) == []
    kinds = [type(one) for one in world.journal]
    assert kinds == [
        seen.SessionStartObserved,
        seen.HandoverStartObserved,
        seen.SessionEndObserved,
        seen.HandoverResultObserved,
    ]


def test_a_message_without_an_answer_is_repeated():
    world = World()
    assert len(world.sent()) == len(world.sent(1.0)) == 1
    first = world.start()
    assert world.sent(1.0) == [first]


def test_a_hand_over_is_cut_when_the_patience_of_its_plan_ends():
    world = World(patience_seconds=0.5)
    world.start()
    assert world.sent(1.0)[0].step == "cut"


def test_a_hand_over_is_aborted_at_the_step_that_its_plan_names():
    for end, state in (("abort-preparing", "preparing"), ("abort-ready", "ready"), ("abort-late", "cut")):
        world = World(end=end, pick=3)
        if world.start().step == "prepare":
            steps = {one.step for _ in range(20) for one in [*world.answer(world.outcome(state)), *world.sent(0.3)]}
            assert "abort" in steps


def test_the_next_mediator_asks_for_the_state_and_continues():
    world = World()
    world.start()
    world.answer(world.outcome("ready"))
    later = World(world.store)
    later.mediator.poll(5.0)
    asked = later.sent(5.0)[0]
    assert (asked.mediator, asked.session, asked.step) == (2, "1.1", "ask")
    assert later.answer(later.outcome("ready", mediator=2))[0].step == "cut"


def test_a_hand_over_whose_prepare_was_lost_is_aborted():
    world = World(patience_seconds=0.1)
    world.start()
    world.sent(1.0)
    assert world.answer(world.outcome("unknown"))[0].step == "abort"


def test_a_mediator_stops_when_it_learns_of_a_later_one():
    outcomes: list[dict[str, Any]] = [
        {"state": "ready", "mediator": 2},
        {"state": "failed", "mediator": 2, "reason": "mediator-epoch: x"},
    ]
    for outcome in outcomes:
        world = World()
        world.start()
        assert world.answer(world.outcome(**outcome)) == []
        assert world.sent(9.0) == []
        assert world.mediator.wake_at() == float("inf")


def test_the_store_refuses_writes_of_a_deposed_mediator():
    world = World()
    world.start()
    World(world.store)
    world.answer(world.outcome("done", ("a", "moved")))
    assert not world.store.handovers["1.1"].is_final


def test_a_failed_stale_command_does_not_end_the_hand_over():
    world = World(stale=True)
    world.start()
    stale = [one for _ in range(30) for one in world.sent(0.4) if (one.mediator, one.head_epoch) != (1, HEAD_EPOCH)]
    assert {(one.mediator, one.head_epoch) for one in stale} == {(0, HEAD_EPOCH), (1, HEAD_EPOCH - 1)}
    for reason in ("mediator-epoch: 1", "head-epoch: 11", "starting: x"):
        world.answer(world.outcome("failed", reason=reason))
    assert not world.store.handovers["1.1"].is_final
    world.answer(world.outcome("failed", reason="head-epoch: 12", head_epoch=12))
    assert world.store.handovers["1.1"].state == "failed"


def test_an_outcome_that_changes_later_is_recorded():
    world = World()
    world.start()
    world.answer(*[world.outcome("done", ("a", "moved"))] * 3, world.outcome("done", ("a", "stayed")))
    assert sum(isinstance(one, seen.HandoverResultObserved) for one in world.journal) == 2
    assert msgspec.json.encode(world.journal[-1])
