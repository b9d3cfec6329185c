"""Messages of reservations, rule by rule: when they are sent, repeated, and stopped."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.core.session.alone import batch_of, context_at, session_of

from plimsoll.core.protocol import messages as msg
from plimsoll.core.session import Session
from plimsoll.core.session.context.command_outbox import CommandOutbox
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.context.reservations import (
    AnsweredReservation,
    ReservedState,
    SentReservation,
    SessionReservations,
)
from plimsoll.core.session.events import SendMessage
from plimsoll.core.session.inputs import FleetView, Timings
from plimsoll.core.session.session_plan import Offer
from plimsoll.core.session.state import NOTHING_TO_MOVE, SessionKind


def told(context: EngineContext) -> list[msg.Reservation]:
    """The messages to edges now."""
    context.outbox.effects = []
    context.reservations.send(context.fleet, context.table)
    return [
        effect.message
        for effect in context.outbox.effects
        if isinstance(effect, SendMessage) and isinstance(effect.message, msg.Reservation)
    ]


def context_of(now: float, *sessions: Session) -> EngineContext:
    context = context_at(now, with_policy=True)
    for session in sessions:
        context.table.put(session)
    return context


def say(context: EngineContext, word: ReservedState, answer: Any = "", *, at: float = 100.0) -> None:
    """As if the edge a had been sent a state for session s, and had answered."""
    context.reservations.sent["a"] = SentReservation("u", "s", word, 1, at, 1, at, is_answered=bool(answer))
    if answer:
        context.reservations.answered["a"] = AnsweredReservation("s", answer, {}, at)


@pytest.mark.parametrize(("uid", "word", "is_so"), [("u", "ASK", True), ("u", "BUSY", False), ("v", "ASK", False)])
def test_an_answer_is_to_one_word_of_one_session(uid: str, word: ReservedState, is_so: bool):
    answer = AnsweredReservation("s", "OK", {}, 100.0)
    states = SessionReservations(CommandOutbox(4, Timings()))
    states.sent["a"] = SentReservation("u", "s", "ASK", 1, 100.0, 1, 100.0, is_answered=True)
    states.answered["a"] = answer
    assert states.answer_for(session_of(uid=uid), "a", word) is (answer if is_so else None)


@pytest.mark.parametrize(("now", "count"), [(100.25, 0), (100.5, 1)])
def test_an_unanswered_message_is_sent_again_after_half_a_second(now: float, count: int):
    context = context_of(now, session_of(targets=[]))
    say(context, "BUSY")
    assert len(told(context)) == count


@pytest.mark.parametrize(("now", "count"), [(104.9, 0), (105.0, 1)])
def test_who_has_said_that_it_is_busy_is_told_so_three_times_in_its_time(now: float, count: int):
    context = context_of(now, session_of(targets=[]))
    say(context, "BUSY", "BUSY")
    assert len(told(context)) == count


def test_a_parent_leaves_it_to_its_children_to_tell_edges():
    assert told(context_of(101.0, session_of(kind="drain"))) == []
    assert {one.edge for one in told(context_of(101.0, session_of()))} == {"a", "b"}


OFFERS = [Offer(edge="b", metric="output", difference=0.4, overloaded=["output"], answer="OK"),
          Offer(edge="c", metric="output", difference=0.3, answer="BUSY")]  # fmt: skip


@pytest.mark.parametrize(
    ("reason", "is_futile", "sources", "targets"),
    [
        (NOTHING_TO_MOVE, True, ["a"], ["b"]),
        ("Stopped", True, ["a"], []),
        (NOTHING_TO_MOVE, False, ["a"], []),
        (NOTHING_TO_MOVE, True, ["c"], []),
    ],
)
def test_only_what_came_to_nothing_for_good_is_told_as_tried_and_to_its_source_alone(
    reason: str, is_futile: bool, sources: list[str], targets: list[str]
):
    offers = [replace(OFFERS[0], is_futile=is_futile), OFFERS[1]]
    context = context_of(
        101.0, session_of(phase="Rejected", reason=reason, ended_at=100.5, offers=offers, sources=sources)
    )
    say(context, "BUSY", "BUSY")
    [said] = told(context)
    assert (said.state, [item.target for item in said.tried]) == ("OK", targets)


def test_an_edge_that_agreed_is_released_and_one_that_refused_needs_no_message():
    context = context_of(101.0)
    say(context, "ASK", "OK")
    assert [one.state for one in told(context)] == ["OK"]
    context = context_of(101.0)
    say(context, "ASK", "BUSY")
    assert told(context) == []
    assert not context.reservations.sent


def test_an_edge_that_moved_a_subscriber_stabilises():
    moved = batch_of(members={"x": "moved", "y": "stayed"}, ended_at=100.5)
    context = context_of(101.0, session_of(phase="Failed", ended_at=100.5, batches=[moved]))
    say(context, "BUSY", "BUSY")
    assert [one.state for one in told(context)] == ["STABILIZING"]


@pytest.mark.parametrize(("now", "count"), [(100.25, 0), (100.5, 1)])
def test_a_release_is_sent_again_after_half_a_second(now: float, count: int):
    context = context_of(now)
    say(context, "OK")
    assert len(told(context)) == count


@pytest.mark.parametrize(
    ("kind", "phase", "words"),
    [
        ("balance", "Negotiating", {"a": "BUSY", "b": "ASK"}),
        ("move", "Negotiating", {"a": "BUSY", "b": "BUSY"}),
        ("balance", "Sampling", {"a": "BUSY", "b": "BUSY"}),
    ],
)
def test_only_a_policy_asks_an_edge_and_only_while_it_negotiates(kind: SessionKind, phase: Any, words: dict[str, str]):
    context = context_of(101.0, session_of(phase=phase, kind=kind, plan=None))
    assert {one.edge: one.state for one in told(context)} == words


def test_an_edge_that_is_not_in_the_view_is_told_nothing():
    context = context_of(101.0)
    context.fleet = context_at(101.0, with_policy=True, a=None).fleet
    say(context, "BUSY", "BUSY")
    assert told(context) == []
    context.fleet, context.fleet_observed_at = FleetView(), float("-inf")
    assert told(context) == []
    context.fleet = context_at(101.0, with_policy=True).fleet
    assert [one.state for one in told(context)] == ["OK"], "it is back"
