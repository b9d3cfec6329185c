"""What edges are told, rule by rule: when, again when, and when no more."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.session.alone import batch_of, plan_of, session_of, turn_at

from plimsoll.core import records as r
from plimsoll.core.session import Session
from plimsoll.core.session.events import Send
from plimsoll.core.session.record import Offer
from plimsoll.core.session.states import NOTHING, Answer, Said, States, Word, speak
from plimsoll.core.session.turn import Turn


def told(turn: Turn) -> list[r.State]:
    """What edges are told at this turn."""
    turn.effects = []
    speak(turn)
    return [effect.record for effect in turn.effects if isinstance(effect, Send) and isinstance(effect.record, r.State)]


def turn_of(now: float, *sessions: Session) -> Turn:
    turn = turn_at(now, with_policy=True)
    for session in sessions:
        turn.book.put(session)
    return turn


def say(turn: Turn, word: Word, answer: str = "", *, at: float = 100.0) -> None:
    """As if the edge a had been told a word for session s, and had answered."""
    turn.states.said["a"] = Said("u", "s", word, 1, at, 1, at, is_answered=bool(answer))
    if answer:
        turn.states.answers["a"] = Answer("s", word, answer, {}, at)  # type: ignore[arg-type]


@pytest.mark.parametrize(("uid", "word", "is_so"), [("u", "ASK", True), ("u", "BUSY", False), ("v", "ASK", False)])
def test_an_answer_is_to_one_word_of_one_session(uid: str, word: Word, is_so: bool):
    answer = Answer("s", "ASK", "OK", {}, 100.0)
    states = States(1, {"a": Said("u", "s", "ASK", 1, 100.0, 1, 100.0, is_answered=True)}, {"a": answer})
    assert states.answer_to(session_of(uid=uid), "a", word) is (answer if is_so else None)


@pytest.mark.parametrize(("now", "count"), [(100.25, 0), (100.5, 1)])
def test_what_is_not_answered_is_said_again_after_half_a_second(now: float, count: int):
    turn = turn_of(now, session_of(targets=[]))
    say(turn, "BUSY")
    assert len(told(turn)) == count


@pytest.mark.parametrize(("now", "count"), [(104.9, 0), (105.0, 1)])
def test_who_has_said_that_it_is_busy_is_told_so_three_times_in_its_time(now: float, count: int):
    turn = turn_of(now, session_of(targets=[]))
    say(turn, "BUSY", "BUSY")
    assert len(told(turn)) == count


def test_a_parent_leaves_it_to_its_children_to_tell_edges():
    assert told(turn_of(101.0, session_of(is_parent=True))) == []
    assert {one.edge for one in told(turn_of(101.0, session_of()))} == {"a", "b"}


OFFERS = [Offer(edge="b", metric="output", difference=0.4, overloaded=["output"], answer="OK"),
          Offer(edge="c", metric="output", difference=0.3, answer="BUSY")]  # fmt: skip


@pytest.mark.parametrize(
    ("reason", "rejected", "targets"),
    [
        (NOTHING, {}, ["b"]),
        ("Stopped", {}, []),
        (NOTHING, {"MovedRecently": ["x"]}, []),
        (NOTHING, {"Off": ["x"]}, ["b"]),
    ],
)
def test_only_what_came_to_nothing_for_good_is_told_as_tried(reason: str, rejected: dict[str, Any], targets: list[str]):
    plan = plan_of(rejected=rejected)
    turn = turn_of(101.0, session_of(phase="Rejected", reason=reason, ended_at=100.5, offers=OFFERS, plan=plan))
    say(turn, "BUSY", "BUSY")
    [said] = told(turn)
    assert (said.state, [item.target for item in said.tried]) == ("OK", targets)


def test_who_agreed_is_let_go_and_who_refused_needs_no_word():
    turn = turn_of(101.0)
    say(turn, "ASK", "OK")
    assert [one.state for one in told(turn)] == ["OK"]
    turn = turn_of(101.0)
    say(turn, "ASK", "BUSY")
    assert told(turn) == []
    assert not turn.states.said


def test_who_has_moved_somebody_stabilises():
    moved = batch_of(members={"x": "moved", "y": "stayed"}, ended_at=100.5)
    turn = turn_of(101.0, session_of(phase="Failed", ended_at=100.5, batches=[moved]))
    say(turn, "BUSY", "BUSY")
    assert [one.state for one in told(turn)] == ["STABILIZING"]


@pytest.mark.parametrize(("now", "count"), [(100.25, 0), (100.5, 1)])
def test_who_is_let_go_is_told_again_after_half_a_second(now: float, count: int):
    turn = turn_of(now)
    say(turn, "OK")
    assert len(told(turn)) == count


@pytest.mark.parametrize(
    ("by_policy", "phase", "words"),
    [
        (True, "Negotiating", {"a": "BUSY", "b": "ASK"}),
        (False, "Negotiating", {"a": "BUSY", "b": "BUSY"}),
        (True, "Sampling", {"a": "BUSY", "b": "BUSY"}),
    ],
)
def test_only_a_policy_asks_an_edge_and_only_while_it_negotiates(by_policy: bool, phase: Any, words: dict[str, str]):
    turn = turn_of(101.0, session_of(phase=phase, by_policy=by_policy, plan=None))
    assert {one.edge: one.state for one in told(turn)} == words


def test_an_edge_that_is_not_in_the_view_is_told_nothing():
    turn = turn_of(101.0)
    turn.view = turn_at(101.0, with_policy=True, a=None).view
    say(turn, "BUSY", "BUSY")
    assert told(turn) == []
    turn.view = None
    assert told(turn) == []
    turn.view = turn_at(101.0, with_policy=True).view
    assert [one.state for one in told(turn)] == ["OK"], "it is back"
