"""Which sessions are open, in which order, and which the store does not have yet."""

from __future__ import annotations

from typing import Any

from plimsoll.core.session.book import Book
from plimsoll.core.session.record import Session


def session(uid: str, queued_at: float = 0.0, **fields: Any) -> Session:
    given = {"requested_at": 0.0, "phase_at": 0.0, "deadline_at": 9.0, "name": uid, **fields}
    return Session(uid=uid, queued_at=queued_at, **given)


def test_open_ones_come_in_order_of_arrival():
    book = Book()
    for one in (session("c", 2.0), session("b", 1.0), session("a", 2.0), session("z", 0.0, ended_at=1.0)):
        book.put(one)
    assert [one.uid for one in book.open()] == ["b", "a", "c"]
    book.put(session("b", 5.0))
    assert [one.uid for one in book.open()] == ["a", "c", "b"]
    book.put(session("a", ended_at=3.0))
    assert [one.uid for one in book.open()] == ["c", "b"]
    book.drop("c")
    assert [one.uid for one in book.open()] == ["b"]
    assert set(book.sessions) == {"a", "b", "z"}


def test_who_keeps_its_brokers_stays_open_until_it_is_closed():
    book = Book()
    one = session("a", ended_at=1.0, holds_until=5.0)
    book.put(one)
    assert book.open() == [one]
    book.close(one)
    assert book.open() == []
    assert book.get("a") is one


def test_children_by_their_parent():
    book = Book()
    book.put(session("p"))
    book.put(session("y", parent="p"))
    book.put(session("x", parent="p", ended_at=1.0))
    assert [one.uid for one in book.children("p")] == ["x", "y"]
    book.drop("x")
    assert [one.uid for one in book.children("p")] == ["y"]
    assert list(book.children("nobody")) == []
    assert book.drop("nobody") is None


def test_what_the_store_does_not_have():
    book = Book()
    old, new = session("a"), session("a", reason="Queued")
    book.put(old, stored_at=3.0)
    assert book.unstored() == []
    book.put(new)
    assert book.unstored() == [(new, old, 3.0)]
    book.put(new, stored_at=4.0)
    assert book.unstored() == []
    book.put(session("b"))
    assert book.unstored() == [(session("b"), None, float("-inf"))]
    book.drop("b")
    assert book.unstored() == []


def test_who_was_dropped_and_comes_again_is_not_in_the_store():
    book = Book()
    book.put(session("a"), stored_at=3.0)
    assert book.drop("a") == session("a")
    book.put(session("a"))
    assert book.unstored() == [(session("a"), None, float("-inf"))]


def test_a_dropped_one_has_no_place_in_the_order():
    book = Book()
    book.put(session("a", parent="p"))
    book.put(session("b"))
    assert [one.uid for one in book.open()] == ["a", "b"]
    book.drop("a")
    assert [one.uid for one in book.open()] == ["b"]
    assert list(book.children("p")) == []
    assert book.get("a") is None
