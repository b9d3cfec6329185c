"""Which sessions are open, in which order, and which the store does not have yet."""

from __future__ import annotations

from typing import Any

from plimsoll.core.session.state import Session
from plimsoll.core.session.table import SessionTable


def session(uid: str, queued_at: float = 0.0, **fields: Any) -> Session:
    given = {"requested_at": 0.0, "phase_at": 0.0, "deadline_at": 9.0, "name": uid, **fields}
    return Session(uid=uid, queued_at=queued_at, **given)


def test_open_ones_come_in_order_of_arrival():
    table = SessionTable()
    for one in (session("c", 2.0), session("b", 1.0), session("a", 2.0), session("z", 0.0, ended_at=1.0)):
        table.put(one)
    assert [one.uid for one in table.open_sessions()] == ["b", "a", "c"]
    table.put(session("b", 5.0))
    assert [one.uid for one in table.open_sessions()] == ["a", "c", "b"]
    table.put(session("a", ended_at=3.0))
    assert [one.uid for one in table.open_sessions()] == ["c", "b"]
    table.drop("c")
    assert [one.uid for one in table.open_sessions()] == ["b"]
    assert set(table.sessions) == {"a", "b", "z"}


def test_who_keeps_its_brokers_stays_open_until_it_is_closed():
    table = SessionTable()
    one = session("a", ended_at=1.0, holds_until=5.0)
    table.put(one)
    assert table.open_sessions() == [one]
    table.release(one)
    assert table.open_sessions() == []
    assert table.get("a") is one


def test_children_by_their_parent():
    table = SessionTable()
    table.put(session("p"))
    table.put(session("y", parent="p"))
    table.put(session("x", parent="p", ended_at=1.0))
    assert [one.uid for one in table.children("p")] == ["x", "y"]
    table.drop("x")
    assert [one.uid for one in table.children("p")] == ["y"]
    assert list(table.children("unknown")) == []
    assert table.drop("unknown") is None


def test_what_the_store_does_not_have():
    table = SessionTable()
    old, new = session("a"), session("a", attempt=2)
    table.put(old, saved_at=3.0)
    assert table.unsaved() == []
    table.put(new)
    assert table.unsaved() == [(new, old, 3.0)]
    table.put(new, saved_at=4.0)
    assert table.unsaved() == []
    table.put(session("b"))
    assert table.unsaved() == [(session("b"), None, float("-inf"))]
    table.drop("b")
    assert table.unsaved() == []


def test_a_new_message_of_a_session_that_waits_is_saved_in_its_turn():
    table = SessionTable()
    for uid in "abc":
        table.put(session(uid), saved_at=3.0)
        table.put(session(uid, reason="Queued", message="place 3"))
    assert table.unsaved() == []
    assert [one.uid for one in table.untold(2, 3.0)] == ["a", "b"]
    assert table.untold(2, 2.9) == []
    table.put(session("a", reason="Queued"), saved_at=4.0)
    table.put(session("b", attempt=2))
    table.drop("c")
    assert table.untold(2, 9.0) == []
    assert [one.uid for one, _, _ in table.unsaved()] == ["b"]


def test_the_queue_is_walked_from_any_place_and_begins_again_at_its_end():
    table = SessionTable()
    for number, uid in enumerate("abcd"):
        table.put(session(uid, float(number), sources=["e"]))
    table.put(session("r", 0.0, phase="Draining"))
    assert [one.uid for one in table.next_resting((1, 1.0, "b"), 3)] == ["c", "d", "a"]
    assert [one.uid for one in table.next_resting((0, 0.0, ""), 9)] == ["a", "b", "c", "d"]
    assert [one.uid for one in table.first_waiting(2)] == ["a", "b"]
    assert [one.uid for one in table.holding()] == ["r"]
    assert [one.uid for one in table.waiting_at("e", (1, 2.0, "c"))] == ["a", "b"]
    assert table.place(session("c", 2.0)) == (3, 4)


def test_who_was_dropped_and_comes_again_is_not_in_the_store():
    table = SessionTable()
    table.put(session("a"), saved_at=3.0)
    assert table.drop("a") == session("a")
    table.put(session("a"))
    assert table.unsaved() == [(session("a"), None, float("-inf"))]


def test_a_dropped_one_has_no_place_in_the_order():
    table = SessionTable()
    table.put(session("a", parent="p"))
    table.put(session("b"))
    assert [one.uid for one in table.open_sessions()] == ["a", "b"]
    table.drop("a")
    assert [one.uid for one in table.open_sessions()] == ["b"]
    assert list(table.children("p")) == []
    assert table.get("a") is None
